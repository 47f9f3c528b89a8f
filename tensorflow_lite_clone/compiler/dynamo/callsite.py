"""What a program does with the result of a call, from the code of the frame that makes the call."""

from __future__ import annotations

import bisect
import dis
import functools
from types import CodeType, FrameType

_ASSIGNS = frozenset(("STORE_FAST", "STORE_DEREF"))
_SKIPPED = frozenset(("NOP", "CACHE", "EXTENDED_ARG"))
#: What takes values from the stack and leaves one; others leave what they add.
_COMPUTES = ("BINARY_", "BUILD_", "CALL", "COMPARE_OP", "CONTAINS_OP", "FORMAT_", "IS_OP", "UNARY_")
_WINDOW = 60  # instructions that are looked at


class Site:
    """A place in a program's code where a value has just been computed.

    `names` are the variables that the value is assigned to (of an unpacked one, several),
    `discarded` says that nobody gets it, and `returned` that the caller of the frame does.
    """

    __slots__ = ("discarded", "names", "returned")

    def __init__(self, following: list[dis.Instruction]) -> None:
        first = following[0].opname if following else ""
        self.discarded = first == "POP_TOP"
        self.returned = first == "RETURN_VALUE"
        self.names = _assigned(following)


def _assigned(following: list[dis.Instruction]) -> list[str]:
    """The variables that the value on top of the stack is assigned to."""
    above = 0  # how many values lie on top of it
    for place, one in enumerate(following):
        name, argument = one.opname, one.arg or 0
        if name in _ASSIGNS and not above:
            return [str(one.argval)]
        if name == "UNPACK_SEQUENCE" and not above:
            parts = following[place + 1 : place + 1 + argument]
            stored = [str(part.argval) for part in parts if part.opname in _ASSIGNS]
            return stored if len(stored) == argument else []
        if "JUMP" in name or name in ("RETURN_VALUE", "FOR_ITER", "SEND", "YIELD_VALUE"):
            return []
        if name == "SWAP":
            above = argument - 1 if not above else 0 if above == argument - 1 else above
            continue
        effect = dis.stack_effect(one.opcode, one.arg)
        left = 1 if name.startswith(_COMPUTES) else max(0, effect)
        if left - effect > above:
            return []
        above += effect
    return []


@functools.lru_cache(maxsize=4096)
def _site(code: CodeType, offset: int) -> Site:
    instructions = [one for one in dis.get_instructions(code) if one.opname not in _SKIPPED]
    # Inside of a call the offset may be that of a cache behind the instruction.
    place = bisect.bisect_right([one.offset for one in instructions], offset)
    return Site(instructions[place : place + _WINDOW])


def site_of(frame: FrameType) -> Site:
    """Where a frame is, once what it calls has returned."""
    return _site(frame.f_code, frame.f_lasti)
