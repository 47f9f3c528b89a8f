"""How a program spells the call that is being recorded, from the code of the frame that makes it."""

from __future__ import annotations

import bisect
import dis
import functools
from types import CodeType, FrameType

_ASSIGNS = frozenset(("STORE_FAST", "STORE_DEREF"))
_SKIPPED = frozenset(("NOP", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS"))


class Site:
    """One instruction of a program's code, and what becomes of its result.

    `names` are the variables that the result is assigned to (of an unpacked one, several),
    `discarded` says that nobody gets it, and `returned` that the caller of the frame does.
    """

    __slots__ = ("discarded", "names", "returned")

    def __init__(self, following: list[dis.Instruction]) -> None:
        self.names: list[str] = []
        first = following[0].opname if following else ""
        self.discarded = first == "POP_TOP"
        self.returned = first == "RETURN_VALUE"
        count = 1
        if first == "UNPACK_SEQUENCE":
            count = following[0].arg or 0
            following = following[1:]
        for one in following[:count]:
            if one.opname not in _ASSIGNS:
                break
            self.names.append(str(one.argval))


@functools.lru_cache(maxsize=4096)
def _site(code: CodeType, offset: int) -> Site:
    instructions = [one for one in dis.get_instructions(code) if one.opname not in _SKIPPED]
    # Inside of a call the offset may be that of a cache behind the instruction.
    place = bisect.bisect_right([one.offset for one in instructions], offset)
    return Site(instructions[place : place + 12])


def site_of(frame: FrameType) -> Site:
    """The instruction that a frame is at."""
    return _site(frame.f_code, frame.f_lasti)
