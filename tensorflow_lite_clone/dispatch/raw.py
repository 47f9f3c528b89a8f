"""The namespace ``F`` over plain arrays.

A word of ``F`` is, in this order: the backend's own word (its kit), the array API standard's word
(``F.exp is numpy.exp``), or an op or composite of the table. Nothing else is visible, so that
code over ``F`` runs on every device and over Tensors as well.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.dispatch.op import TABLE

#: The functions and constants of the array API standard, version 2024.12 (data-apis.org).
STANDARD = frozenset(
    """
    e inf nan newaxis pi
    arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like
    tril triu zeros zeros_like
    astype broadcast_arrays broadcast_to can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp
    expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal
    log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
    multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit
    sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis matmul matrix_transpose tensordot vecdot
    broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack
    tile unstack argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var all any diff
    bool complex64 complex128 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64
    linalg fft
    """.split()
)


class Raw:
    """``F`` over one backend's arrays; words are looked up once and then plain attributes."""

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        table.namespaces.append(self)

    def run(self, op: Any, *arrays: Any, **parameters: Any) -> Any:
        """Run an op of the table, for words whose name the kit or the standard gives another."""
        return table.run(op, self.backend, arrays, parameters)

    def forget(self) -> None:
        """Look all words up anew."""
        with hooks.changing:
            words = vars(self)
            for name in [name for name in words if name != "backend"]:
                del words[name]

    def __getattr__(self, name: str) -> Any:
        with hooks.changing:
            word = self._find(name)
            setattr(self, name, word)
        return word

    def _find(self, name: str) -> Any:
        word = getattr(self.backend.kit, name, None)
        if word is not None and not name.startswith("_"):
            return self.backend.guarded(self.backend.foreign(word))
        if name in STANDARD:
            return self.backend.guarded(self.backend.foreign(getattr(self.backend.xp, name)))
        if name in TABLE:
            return table.resolve(TABLE[name], self.backend)
        raise AttributeError(f"F has no word '{name}' in the standard, the kit or the op table")

    def __repr__(self) -> str:
        return f"<F over {self.backend.name} arrays>"
