"""Softmax and its logarithm along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import Kernels, compiled, run

_kernels = Kernels("softmax")
_LEAST = 1 << 10


def _rows(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


def _forward(name: str) -> None:
    @compiled(name, least=_LEAST)
    def forward(x: np.ndarray, *, axis: int) -> Any:
        if axis != x.ndim - 1:
            return NotImplemented
        y = np.empty_like(x)
        rows = _rows(x)
        run(getattr(_kernels, name), *rows.shape, rows, _rows(y))
        return y


def _backward(name: str) -> None:
    @compiled(name, least=_LEAST)
    def backward(g: np.ndarray, y: np.ndarray, *, axis: int) -> Any:
        if axis != y.ndim - 1 or g.dtype != y.dtype or not y.flags.c_contiguous:
            return NotImplemented
        gx = np.empty_like(y)
        rows = _rows(y)
        run(getattr(_kernels, name), *rows.shape, _rows(g), rows, _rows(gx))
        return gx


for _name in ("softmax", "log_softmax"):
    _forward(_name)
    _backward(f"{_name}_backward")
