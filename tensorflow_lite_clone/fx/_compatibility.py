"""The mark of what programs may rely on, as PyTorch's own sources and packages write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

#: What is marked, and of these what is promised to stay.
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Decorator that notes whether a function or class keeps its interface; changes nothing."""

    def mark(marked: _T) -> _T:
        _MARKED_WITH_COMPATIBILITY.setdefault(marked)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(marked)
        return marked

    return mark
