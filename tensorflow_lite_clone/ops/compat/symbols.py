"""Numbers that PyTorch's compiler keeps as symbols: here every size is a Python number."""

from __future__ import annotations

import builtins
import math
from typing import Any

from tensorflow_lite_clone.core.public import public


@public("torch")
class SymInt:
    """An integer that a compiler has not fixed yet; there are none, so nothing is an instance."""


@public("torch")
class SymFloat:
    """A number that a compiler has not fixed yet; there are none, so nothing is an instance."""


@public("torch")
class SymBool:
    """A condition that a compiler has not decided yet; there are none."""

    def _expect_true(self) -> bool:
        """Whether it holds; one that only values decide is taken to, and checked with them."""
        return bool(self)


@public("torch")
def sym_int(a: Any) -> int:
    """``int(a)``."""
    return int(a)


@public("torch")
def sym_float(a: Any) -> float:
    """``float(a)``."""
    return float(a)


@public("torch")
def sym_not(a: Any) -> bool:
    """``not a``."""
    return not a


@public("torch")
def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """``t if b else f``."""
    return t if b else f


@public("torch")
def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return math.sqrt(a)


@public("torch")
def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return builtins.sum(args)


def _common(a: Any, b: Any, chosen: Any) -> Any:
    return float(chosen) if isinstance(a, float) or isinstance(b, float) else chosen


@public("torch")
def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float where one of them is."""
    return _common(a, b, builtins.max(a, b))


@public("torch")
def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float where one of them is."""
    return _common(a, b, builtins.min(a, b))
