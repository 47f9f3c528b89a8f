"""What an export raises, and where in the program."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from tensorflow_lite_clone.compiler.dynamo import errors
from tensorflow_lite_clone.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

_PACKAGE = str(Path(__file__).parents[1])

#: What PyTorch adds to every error of its export.
_HINT = "\n\nThe error above occurred when calling torch.export.export."


class UserError(errors.UserError):
    """A program, or arguments of `export`, that cannot be exported as they are."""

    def __init__(self, message: str) -> None:
        super().__init__(message + _HINT)


def violated(names: str, problems: str, fixes: Sequence[str] = ()) -> UserError:
    """The error of dynamic dimensions that are not free, and what to write instead."""
    suggested = "\nSuggested fixes:\n" + "\n".join(fixes) if fixes else ""
    return UserError(
        f"Constraints violated ({names})! For more information, run with "
        f'TORCH_LOGS="+dynamic".\n{problems}{suggested}'
    )


def place() -> str:
    """The line of the program that runs now, outside of this package."""
    frame = user_frame()
    if frame is None:
        return ""
    code = frame.f_code
    line = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}\n    {line}'


def user_frame() -> FrameType | None:
    """The innermost frame outside of this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _is_inside(path: str) -> bool:
    return path.startswith((_PACKAGE, "<"))


def stack_trace(until: FrameType | None) -> str:
    """The calls of the program that lead to the one that runs now, the innermost last.

    Modules of this package count, for they are the program's layers; what they call does not.
    """
    lines = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame is not until:
        code = frame.f_code
        if not _is_inside(code.co_filename) or code.co_name == "forward":
            text = linecache.getline(code.co_filename, frame.f_lineno).strip()
            where = f'  File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'
            lines.append(f"{where}\n    {text}\n")
        frame = frame.f_back
    return "".join(reversed(lines))


def data_dependent(what: str) -> GuardOnDataDependentSymNode:
    """The error of a program that asks for a value that no tensor has while it is exported."""
    return GuardOnDataDependentSymNode(
        f"Could not guard on data-dependent expression {what}: a program that is exported runs "
        "without values, so what it does cannot depend on those of tensors. Use "
        f"torch.where.\n\nThe following call raised this error:\n{place()}\n"
    )
