"""Exception types that Python has no word for, and whom a warning is addressed to."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

#: Whose frames are passed over, by the first part of the module's name.
_NOBODY = (__name__.partition(".")[0], "contextlib", "importlib")
#: The folder of the package, in which the files of such frames lie.
PACKAGE_FOLDER = os.path.dirname(os.path.dirname(__file__))
_IMPORTING = ("importlib._bootstrap", "importlib._bootstrap_external")


def level_outside() -> int:
    """The `stacklevel`, for a warning of the calling function, of the code outside the package.

    Frames of context managers and decorators written with `contextlib` lie between and are
    nobody's line either. Frames of imports are not counted, as `warnings` does not count them.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _NOBODY:
        frame = frame.f_back
        if frame.f_globals.get("__name__") not in _IMPORTING:
            level += 1
    return level


def values_missing(name: str) -> NotImplementedError:
    """The error of PyTorch's operator `name` for tensors without values, on which it depends."""
    return NotImplementedError(
        f"aten::{name}: attempted to run this operator with Meta tensors, but there was no fake "
        "impl or Meta kernel registered: its result depends on values, and they have none"
    )


class Interruption(Exception):
    """Ends a computation from within, because enough of it has run; whoever asked for it knows."""


class OutOfMemoryError(RuntimeError):
    """A device has no room left for an allocation."""


#: How NumPy and CuPy begin when they say, as ValueError or OverflowError, that no array has a size.
_SIZE_ERRORS = (
    "array is too big",
    "broadcast dimensions too large",
    "iterator is too large",
    "Maximum allowed",
    "negative dimensions",
    "Negative dimensions",
    "cannot fit 'int' into an index-sized integer",
    "Python int too large to convert to C",
    "maximum supported dimension",
)


def size_error(name: str, error: Exception, arguments: Iterable[Any]) -> Exception:
    """PyTorch's exception for a size that overflowed within `name`, or `error` if it is another.

    >>> str(size_error("tile", ValueError("array is too big; ..."), [(2**40, 2**40)]))
    'tile: Storage size calculation overflowed with sizes=[[1099511627776, 1099511627776]]'
    """
    if isinstance(error, OutOfMemoryError):
        return error
    if isinstance(error, MemoryError):
        return OutOfMemoryError(f"{name}: not enough memory for sizes={_sizes(arguments)}")
    if not str(error).startswith(_SIZE_ERRORS):
        return error
    return RuntimeError(
        f"{name}: Storage size calculation overflowed with sizes={_sizes(arguments)}"
    )


def _sizes(values: Iterable[Any]) -> list[Any]:
    """The numbers among `values`, and the shapes of tensors and arrays, as lists."""
    found: list[Any] = []
    for value in values:
        if hasattr(value, "shape"):
            found.append(list(value.shape))
        elif isinstance(value, (list, tuple)):
            found.append(_sizes(value))
        elif isinstance(value, (int, float)):
            found.append(value)
    return found


class AcceleratorError(RuntimeError):
    """Something went wrong on a device, which is known only now."""


class BackendUnavailableError(AssertionError, RuntimeError):
    """A device was asked for whose packages or hardware are not there.

    It is what PyTorch raises without CUDA, and what it raises without a GPU.
    """


class CaptureError(RuntimeError):
    """Work that cannot be part of a CUDA graph was asked for while one is captured."""


class LinAlgError(RuntimeError):
    """A matrix is not what a function of linear algebra needs, such as regular."""


class NotStrided(NotImplementedError):
    """A function was given a tensor without a storage, whose class has `functions` of its own."""

    def __init__(self, functions: dict[str, Callable[..., Any]], message: str) -> None:
        super().__init__(message)
        self.functions = functions

    def answer(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """What the function `name` of that layout gives; raises the error itself without one."""
        if name not in self.functions:
            raise self
        return self.functions[name](*args, **kwargs)
