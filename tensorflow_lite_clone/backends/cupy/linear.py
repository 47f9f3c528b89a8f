"""Matrix products, `addmm` and `linear` by cuBLASLt; few rows by `kernels/linear.cu`."""

from __future__ import annotations

from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import aligned, ceil_div
from tensorflow_lite_clone.backends.cupy.gemm import matmul
from tensorflow_lite_clone.backends.cupy.gemm_plan import KINDS
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.dispatch.table import override

_FILE = "linear.cu"
_FORWARD = Kernel(_FILE, "linear_forward", params=("T", "VEC"))
_BACKWARD_INPUT = Kernel(_FILE, "linear_backward_input", params=("T", "VEC"))
_BACKWARD_WEIGHT = Kernel(_FILE, "linear_backward_weight", params=("T", "VEC"))
_BACKWARD = Kernel(_FILE, "linear_backward", params=("T", "VEC_G", "VEC_X"))
_float32 = np.dtype(np.float32)
# Of the layers that our kernels serve: rows, rows times weights, and for the gradient of the input.
_MOST_ROWS, _MOST_WORK = 128, 1 << 25
_MOST_WEIGHTS_BACK, _MOST_WORK_BACK = 1 << 18, 1 << 24
_TILE = 8  # rows and outputs of a block


def product(F: Any, x: Any, y: Any) -> Any:
    """x @ y in the operands' own dtype; the generic form would widen bfloat16."""
    return matmul(x, y) if x.dtype in KINDS else NotImplemented


for _name in ("mm", "bmm", "mv", "dot"):
    override(_name, backend="cupy")(product)


@override("addmm", backend="cupy")
def addmm(F: Any, x: Any, y: Any, z: Any, *, beta: Any, alpha: Any) -> Any:
    dtype = x.dtype
    if dtype not in KINDS or y.dtype != dtype or z.dtype != dtype:
        return NotImplemented
    real = dtype.kind != "c"
    if real and (isinstance(beta, complex) or isinstance(alpha, complex)):
        return NotImplemented
    if beta == 0:
        return matmul(y, z, alpha=alpha)
    if real and beta == 1 and x.shape == z.shape[-1:]:
        return matmul(y, z, alpha=alpha, bias=x)
    return matmul(y, z, alpha=alpha, beta=beta, addend=x)


override("baddbmm", backend="cupy")(addmm)


def _is_small(rows: int, inputs: int, outputs: int, *arrays: Any) -> bool:
    """Whether our kernels serve a layer of contiguous arrays: cuBLASLt's tiles are too large."""
    return (
        0 < rows <= _MOST_ROWS
        and 0 < rows * inputs * outputs <= _MOST_WORK
        and all([array.dtype == _float32 and array.flags.c_contiguous for array in arrays])
    )


def _vec(width: int, *arrays: Any) -> int:
    """Elements that are loaded at once from rows of that width."""
    return 4 if width % 4 == 0 and aligned(*arrays) else 1


@override("linear", backend="cupy")
def linear(F: Any, x: Any, w: Any, b: Any) -> Any:
    if x.dtype not in KINDS:
        return NotImplemented
    outputs, inputs = w.shape
    if b is not None and (b.shape != (outputs,) or x.dtype.kind == "c"):
        return NotImplemented
    rows = prod(x.shape[:-1])
    arrays = (x, w) if b is None else (x, w, b)
    if x.shape[-1] != inputs or not _is_small(rows, inputs, outputs, *arrays):
        return matmul(x, w.T) if b is None else matmul(x, w.T, bias=b)
    vec = _vec(inputs, x, w)
    y = cupy.empty((*x.shape[:-1], outputs), _float32)
    grid = ceil_div(outputs, _TILE), ceil_div(rows, _TILE)
    block = min(256, 32 * ceil_div(inputs, 32 * vec))
    _FORWARD[_float32, vec](grid, block, x, w, b, rows, inputs, outputs, y)
    return y


def _is_small_backwards(rows: int, inputs: int, outputs: int, g: Any, w: Any) -> bool:
    """Whether our kernel computes the gradient of the input."""
    weights = inputs * outputs
    fits = weights <= _MOST_WEIGHTS_BACK and rows * weights <= _MOST_WORK_BACK
    return fits and _is_small(rows, inputs, outputs, g, w)


def _input_grid(rows: int, inputs: int) -> tuple[int, int]:
    return ceil_div(inputs, 32), ceil_div(rows, _TILE)


def _weight_blocks(inputs: int, outputs: int, vec: int) -> int:
    return ceil_div(inputs, 64 * vec) * ceil_div(outputs, _TILE)


@override("linear_backward_input", backend="cupy")
def linear_backward_input(F: Any, g: Any, w: Any) -> Any:
    if w.dtype not in KINDS or w.dtype.kind == "c" or g.dtype != w.dtype:
        return NotImplemented
    outputs, inputs = w.shape
    rows = prod(g.shape[:-1])
    if not _is_small_backwards(rows, inputs, outputs, g, w):
        return matmul(g, w)
    gx = cupy.empty((*g.shape[:-1], inputs), _float32)
    instance = _BACKWARD_INPUT[_float32, _vec(outputs, g)]
    instance(_input_grid(rows, inputs), 256, g, w, rows, inputs, outputs, gx)
    return gx


@override("linear_backward_weight", backend="cupy")
def linear_backward_weight(F: Any, g: Any, x: Any) -> Any:
    dtype = x.dtype
    if dtype not in KINDS or dtype.kind == "c" or g.dtype != dtype:
        return NotImplemented
    rows, outputs, inputs = prod(x.shape[:-1]), g.shape[-1], x.shape[-1]
    if not _is_small(rows, inputs, outputs, g, x):
        return matmul(g.reshape(rows, outputs).T, x.reshape(rows, inputs), epilogue="sums")
    vec = _vec(inputs, x)
    gw, gb = cupy.empty((outputs, inputs), _float32), cupy.empty(outputs, _float32)
    blocks = _weight_blocks(inputs, outputs, vec)
    _BACKWARD_WEIGHT[_float32, vec](blocks, 256, g, x, rows, inputs, outputs, gw, gb)
    return gw, gb


@override("linear_backward", backend="cupy")
def linear_backward(F: Any, g: Any, x: Any, w: Any) -> Any:
    """Both of the above, in one launch where it is our kernels that serve them."""
    outputs, inputs = w.shape
    rows = prod(x.shape[:-1])
    if not (
        _is_small_backwards(rows, inputs, outputs, g, w) and _is_small(rows, inputs, outputs, x)
    ):
        return NotImplemented
    vec = _vec(inputs, x)
    gx, gw = cupy.empty(x.shape, _float32), cupy.empty(w.shape, _float32)
    gb = cupy.empty(outputs, _float32)
    grid = prod(_input_grid(rows, inputs)) + _weight_blocks(inputs, outputs, vec)
    instance = _BACKWARD[_float32, _vec(outputs, g), vec]
    instance(grid, 256, g, x, w, rows, inputs, outputs, gx, gw, gb)
    return gx, gw, gb
