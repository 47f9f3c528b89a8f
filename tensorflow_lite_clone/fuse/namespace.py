"""``F`` over symbols."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.op import OF_PRIMITIVES, TABLE, is_op
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.fuse.symbol import NotPointwise, Symbol
from tensorflow_lite_clone.fuse.target import Target


class _Backend:
    """What formulas may ask of ``F.backend``."""

    def __init__(self, target: Target) -> None:
        self.native, self.constant = target.native, target.constant

    def __getattr__(self, name: str) -> Any:
        raise NotPointwise(f"the backend's '{name}'")


class Namespace:
    """``F`` over the symbols of a target; what has no symbol raises NotPointwise."""

    def __init__(self, target: Target) -> None:
        self.target, self.backend = target, _Backend(target)

    def __getattr__(self, name: str) -> Any:
        if self.target.kinds(name):
            return partial(self._apply, name)
        if name in TABLE and name not in PRIMITIVES:
            return partial(self.run, TABLE[name])
        value = getattr(self.target.xp, name, None)
        if isinstance(value, (float, type)):
            return value
        raise NotPointwise(f"the primitive '{name}'")

    def _apply(self, name: str, *values: Any) -> Any:
        op = OF_PRIMITIVES.get(name)
        result = self.target.apply(name, *values)
        return self.target.own(name if op is None else op.name, result, values, {})

    def run(self, entry: Any, *values: Any, **parameters: Any) -> Any:
        """The formula of an op or composite of the table, in place of calling it."""
        name, body = (entry.name, entry.forward) if is_op(entry) else (entry.__name__, entry)
        result = body(self, *values, **parameters)
        return self.target.own(name, result, values, parameters)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        """`x` where the condition holds, else `y`, of which one may be a number."""
        return self._apply("where", condition, x, y)

    def astype(self, x: Any, dtype: Any, *, copy: bool = False) -> Symbol:
        """`x` in another dtype."""
        native = np.dtype(self.target.native.get(dtype, dtype))
        if not isinstance(x, Symbol) or native.kind == "c" or x.dtype.kind == "c" or copy:
            raise NotPointwise("complex numbers or copies")
        return x if x.dtype == native else Symbol(self.target, "astype", native, (x,))

    def clip(self, x: Any, min: Any = None, max: Any = None) -> Any:
        """`x` between two bounds, of which one may be None."""
        if min is not None and max is not None and not self.target.clips_by_steps:
            raise NotPointwise("two bounds at once")
        if min is not None:
            x = self.target.apply("maximum", x, min)
        return x if max is None else self.target.apply("minimum", x, max)

    def copy(self, x: Any) -> Any:
        """Another array of the same values."""
        return self.target.apply("positive", x)

    def conj(self, x: Any) -> Any:
        """Real numbers are their own conjugates."""
        return x

    real = positive = conj

    def sgn(self, x: Any) -> Any:
        """The sign, 0 for NaN."""
        y = self.target.apply("sign", x)
        return y if y.dtype.kind in "iu" else self.target.apply("where", y == y, y, 0)
