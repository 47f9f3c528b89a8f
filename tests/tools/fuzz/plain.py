"""A call that is the same text on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.op_db._case import tree_leaves
from tests.op_db._device import Side
from tests.tools.fuzz.drawing import Drawn, on
from tests.tools.fuzz.judging import (
    SIDES,
    afterwards,
    alike,
    dtype_tolerance,
    outcome,
    refusals,
    said,
)


class PlainCall:
    """A call of drawn arguments; results are compared, and what is in the arguments afterwards."""

    def __init__(self, name: str, *arguments: Any, **options: Any) -> None:
        self.name, self.arguments, self.options = name, arguments, options

    def __repr__(self) -> str:
        words = [repr(argument) for argument in self.arguments]
        words += [f"{key}={value!r}" for key, value in self.options.items()]
        return f"{self.name}({', '.join(words)})"

    def run(self, side: Side, *arguments: Any, **options: Any) -> Any:
        """The result."""
        raise NotImplementedError

    def tolerance(self, dtype: str) -> tuple[float, float]:
        """How far a result of the dtype may be from PyTorch's."""
        return dtype_tolerance(dtype)

    def _both(self, side: Side) -> tuple[Any, Any]:
        """The result, or the exception, and the arguments afterwards."""
        arguments, options = on((self.arguments, self.options), side)
        result = outcome(lambda: side.call(self.run, side, *arguments, **options))
        return result, tree_leaves((list(arguments), options), side.module.Tensor)

    def judge(self) -> str | None:
        """None, or how the outcome differs."""
        (ours, left), (theirs, right) = (self._both(side) for side in SIDES)
        refused = refusals(ours, theirs, exact=True)
        if isinstance(refused, str):
            return refused
        if not refused:
            found = said(lambda: alike(ours, theirs, self.tolerance))
            if found:
                return found
        if isinstance(theirs, Exception) and not isinstance(ours, Exception):
            return None  # PyTorch lacks a kernel
        before = [drawn.array for drawn in tree_leaves([self.arguments, self.options], Drawn)]
        return afterwards(ours, left, right, before)


Random = np.random.Generator
