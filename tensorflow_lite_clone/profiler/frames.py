"""Which lines of the program are running: those outside of this package."""

from __future__ import annotations

import sys
from typing import Any

_PACKAGE = __name__.partition(".")[0]
_DEEPEST = 64

#: A line as it is noted: the function's code object and the line's number.
Line = tuple[Any, int]


def stack(deepest: int = _DEEPEST) -> tuple[Line, ...]:
    """The lines under way, the innermost first, `deepest` of them at most."""
    frame: Any = sys._getframe(1)
    found: list[Line] = []
    while frame is not None and len(found) < deepest:
        if not frame.f_globals.get("__name__", "").startswith(_PACKAGE):
            found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def innermost() -> Line | None:
    """The program's line that is under way; None if there is none."""
    return next(iter(stack(1)), None)


def place(line: Line | None) -> str:
    """``file:line`` of a line."""
    return "" if line is None else f"{line[0].co_filename}:{line[1]}"


def described(line: Line) -> str:
    """A line as PyTorch's profiler shows it: ``file(line): function``."""
    return f"{line[0].co_filename}({line[1]}): {line[0].co_name}"
