"""Ops that are one word of NumPy's in the usual case: without the layers between, which cost more.

They never decline. Of many elements words of F do the work.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.small_inputs import SMALL, constant
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.table import override

_LARGE = tuning.blas_sum_elements  # read once: these are the shortest calls
_MIN_DEVIATION = 1e-17  # deviations below have squares that lose digits of float32, or all


@override("sum", backend="numpy", declines=False)
def sum(F: Any, x: Any, *, axis: tuple, keepdims: bool, shape: tuple, dtype: Any = None) -> Any:
    whole = not keepdims and len(axis) == len(shape)
    native = x.dtype
    if whole and 4 < x.size <= SMALL and native.char in "fd" and dtype is None:
        # Fewer are added below, in PyTorch's order.
        return np.array(x.ravel().dot(constant(1, (x.size,), native)))
    if dtype is None and native.itemsize > 2 and x.size < _LARGE:
        if whole and native.kind in "fc":
            # Into an array, as NumPy's own numbers would have to be made arrays.
            return np.add.reduce(x, axis, None, np.empty((), native))
        return np.add.reduce(x, axis, None, None, keepdims)
    return F.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


@override("mean", backend="numpy", declines=False)
def mean(F: Any, x: Any, *, axis: tuple, keepdims: bool, shape: tuple) -> Any:
    if x.itemsize > 2 and x.size < _LARGE:
        total = np.add.reduce(x, axis, None, None, keepdims)
        return total / (x.size // (total.size or 1))
    return F.mean(x, axis=axis, keepdims=keepdims)


@override("amax", backend="numpy", declines=False)
def amax(F: Any, x: Any, *, axis: tuple, keepdims: bool, shape: tuple) -> Any:
    if len(axis) == x.ndim and not keepdims and x.size < _LARGE:
        return np.maximum.reduce(x, axis, None, np.empty((), x.dtype))
    return F.max(x, axis=axis, keepdims=keepdims)


@override("amin", backend="numpy", declines=False)
def amin(F: Any, x: Any, *, axis: tuple, keepdims: bool, shape: tuple) -> Any:
    if len(axis) == x.ndim and not keepdims and x.size < _LARGE:
        return np.minimum.reduce(x, axis, None, np.empty((), x.dtype))
    return F.min(x, axis=axis, keepdims=keepdims)


_WIDE = {"f": np.dtype(np.float64), "F": np.dtype(np.complex128)}


@override("std", backend="numpy", declines=False)
def std(F: Any, x: Any, **parameters: Any) -> Any:
    generic = TABLE["std"].forward  # type: ignore[union-attr]
    y = generic(F, x, **parameters)
    wide = _WIDE.get(x.dtype.char)
    if (
        wide is not None and ((y == np.inf) | (y < _MIN_DEVIATION)).any()
    ):  # the squares left the dtype
        return generic(F, x.astype(wide), **parameters).astype(y.dtype)
    return y


@override("view", backend="numpy", declines=False)
def view(F: Any, x: Any, *, shape: tuple, source: tuple) -> Any:
    if x.flags.c_contiguous and (1 not in shape or 1 not in source):
        return x.reshape(shape)
    return TABLE["view"].forward(F, x, shape=shape, source=source)  # type: ignore[union-attr]


@override("unsqueeze", backend="numpy", declines=False)
def unsqueeze(F: Any, x: Any, *, axis: int) -> Any:
    if x.flags.c_contiguous:
        return x.reshape(*x.shape[:axis], 1, *x.shape[axis:])
    return TABLE["unsqueeze"].forward(F, x, axis=axis)  # type: ignore[union-attr]


@override("squeeze", backend="numpy", declines=False)
def squeeze(F: Any, x: Any, *, axis: tuple, shape: tuple) -> Any:
    return x.squeeze(axis)


@override("permute", backend="numpy", declines=False)
@override("transpose", backend="numpy", declines=False)
def permute(F: Any, x: Any, *, axes: tuple) -> Any:
    return x.transpose(axes)


@override("mm", backend="numpy", declines=False)
def mm(F: Any, x: Any, y: Any) -> Any:
    return x.dot(y) if x.ndim == 2 and x.dtype.char in "fd" else F.matmul(x, y)


@override("linear", backend="numpy", declines=False)
def linear(F: Any, x: Any, w: Any, b: Any) -> Any:
    if x.ndim == 2 and x.dtype.char in "fd":
        y = x.dot(w.T)
    elif _is_half(x) and b is not None:
        return np.add(np.matmul(_single(x), _single(w).T), b).astype(x.dtype)
    else:
        y = F.matmul(x, w.T)
    if b is not None:
        np.add(y, b, y)
    return y


# A product of halves is not rounded before something is added to it, as in PyTorch.


def _is_half(x: Any) -> bool:
    return x.itemsize == 2 and x.dtype.kind not in "iu"


def _single(x: Any) -> Any:
    return x.astype(np.float32)


def _added_product(name: str) -> Any:
    generic: Any = TABLE[name]

    def call(F: Any, x: Any, y: Any, z: Any, *, beta: Any, alpha: Any) -> Any:
        if not _is_half(y):
            return generic.forward(F, x, y, z, beta=beta, alpha=alpha)
        product = np.matmul(_single(y), _single(z)) * np.float32(alpha)
        if beta != 0:
            product += _single(x) * np.float32(beta)
        return product.astype(x.dtype)

    return call


for _name in ("addmm", "baddbmm"):
    override(_name, backend="numpy", declines=False)(_added_product(_name))


@override("linear_backward_weight", backend="numpy", declines=False)
def linear_backward_weight(F: Any, g: Any, x: Any) -> Any:
    if x.ndim != 2:
        rows = prod(x.shape[:-1])
        g, x = g.reshape(rows, g.shape[-1]), x.reshape(rows, x.shape[-1])
    if x.dtype.kind == "c":
        x = x.conj()
    if g.size <= SMALL and g.dtype.char in "fd":
        return g.T.dot(x), constant(1, (len(g),), g.dtype).dot(g)
    return F.matmul(g.T, x), F.sum(g, 0)
