"""Sums and other combinations written at indices, repeated ones combined."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

_ADDABLE = frozenset("iIlLqQefd")


def add_at(x: Any, index: Any, value: Any) -> None:
    kind = x.dtype.kind
    if x.dtype.char in _ADDABLE and kind != "V":
        cupy.add.at(x, index, value)
        return
    if kind == "c":
        real, imag = x.real.copy(), x.imag.copy()
        value = cupy.asarray(value, x.dtype)
        cupy.add.at(real, index, value.real)
        cupy.add.at(imag, index, value.imag)
        x.real, x.imag = real, imag
        return
    wide = x.astype(np.float32 if kind == "V" else np.int32)
    cupy.add.at(wide, index, cupy.asarray(value).astype(wide.dtype))
    x[...] = wide.astype(x.dtype)


def combine_at(x: Any, index: Any, value: Any, *, how: str) -> None:
    raise NotImplementedError
