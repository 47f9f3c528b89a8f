"""What differs between devices where formulas become kernels, and the dtypes, which do not.

Dtypes follow NumPy's rules, under which Python's numbers are weak.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.fuse.symbol import NotPointwise, Symbol

BOOL = np.dtype(bool)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_INT64 = np.dtype(np.int64)
_NUMBERS = (bool, int, float)
#: Of numbers these take what two-byte operands beside them hold.
_COMPARING = ("maximum", "minimum")


class Target:
    """What a device can do with symbols; a device derives its own."""

    xp: Any  # the array namespace, for its constants
    native: Any  # DType -> NumPy dtype
    widens = False  # its kernels compute in float32 with two-byte floats, which are cast before
    clips_by_steps = False  # its `clip` to two bounds is the larger of, then the smaller of

    def kinds(self, name: str) -> Collection[str]:
        """The kinds of the dtypes for which a kernel can have a primitive or op: "f", "i", ..."""
        raise NotImplementedError

    def constant(self, value: Any, dtype: Any) -> Any:
        """As `Backend.constant`."""
        raise NotImplementedError

    def cast(self, value: Any, dtype: Any) -> Symbol:
        """A symbol or number as an operand of what computes in `dtype`."""
        raise NotImplementedError

    def own(self, name: str, result: Any, values: tuple, parameters: dict[str, Any]) -> Any:
        """The `result` of a formula that is an op, as the device says it if it has a kernel."""
        raise NotImplementedError

    def apply(self, name: str, *values: Any) -> Symbol:
        """The symbol of a primitive, or of an op with a text of its own, of symbols and numbers."""
        kinds, (arity, truth) = self.kinds(name), _signature(name)
        if len(values) != arity:
            raise NotPointwise(f"'{name}' of {len(values)} operands")
        first: tuple = ()
        if name == "where":
            condition, *values = values  # type: ignore[assignment]
            if not isinstance(condition, Symbol) or condition.dtype != BOOL:
                raise NotPointwise("a condition that is no array of bools")
            first = (condition,)
        elif truth or name in _COMPARING:
            values = _rounded(values)
        dtype = self._common(values)
        operands = [self.cast(value, dtype) for value in values]
        if name == "divide" and dtype.kind in "biu":
            dtype = FLOAT64
            operands = [self.cast(operand, dtype) for operand in operands]
        if dtype.kind not in kinds:
            raise NotPointwise(f"'{name}' of kind '{dtype.kind}'")
        return Symbol(self, name, BOOL if truth else dtype, (*first, *operands))

    def _common(self, values: tuple) -> Any:
        """The dtype of symbols and numbers together; NotPointwise for anything else."""
        dtype: Any = None
        weak: Any = None
        for value in values:
            if isinstance(value, Symbol) or _is_constant(value):
                value = value.dtype
            elif isinstance(value, _NUMBERS):
                weak = value if weak is None or isinstance(weak, (bool, int)) else weak
                continue
            else:
                raise NotPointwise(f"a {type(value).__name__} as an operand")
            is_narrow = value.kind == "f" and value.itemsize == 2
            if value.kind not in "biuf" or is_narrow and self.widens:
                raise NotPointwise(f"arithmetic in {value}")
            dtype = value if dtype is None else np.promote_types(dtype, value)
        if dtype is None:
            raise NotPointwise("numbers alone")
        if isinstance(weak, float) and dtype.kind != "f":
            dtype = FLOAT64
        elif weak is not None and dtype.kind == "b" and not isinstance(weak, bool):
            dtype = _INT64
        return dtype


def _is_constant(value: Any) -> bool:
    return isinstance(value, (np.generic, np.ndarray)) and not value.ndim


def _signature(name: str) -> tuple[int, bool]:
    """How many operands a primitive or op takes, and whether it gives truth values."""
    record = PRIMITIVES.get(name)
    if record is not None:
        return record.arity, record.dtypes == ("bool",)
    op: Any = TABLE[name]
    return len(op.inputs), False


def _rounded(values: tuple) -> tuple:
    """Numbers as two-byte operands beside them hold them, for which comparisons take them."""
    narrow = [v.memory for v in values if isinstance(v, Symbol) and v.memory.itemsize < 4]
    narrow = [dtype for dtype in narrow if dtype.kind in "fV"]
    if not narrow:
        return values
    return tuple([float(narrow[0].type(v)) if type(v) in (int, float) else v for v in values])
