"""The gated linear unit and its gradient in one pass each: `kernels/activation.cu`.

Other activations are pointwise formulas, for which kernels are generated.
"""

from __future__ import annotations

from math import prod
from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, aligned
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.softmax import MOST_BLOCKS
from tensorflow_lite_clone.dispatch.table import override

_FILE = "activation.cu"
_GLU = Kernel(_FILE, "glu_forward", params=("T", "VEC"))
_GLU_BACKWARD = Kernel(_FILE, "glu_backward", params=("T", "VEC"))


def _halves(x: Any, axis: int, vectors: tuple) -> tuple[int, int]:
    """How many elements half of `axis` holds, with the axes after it; and VEC."""
    half = x.shape[axis] // 2 * prod(x.shape[axis + 1 :])
    full = 16 // x.itemsize
    return half, full if half % full == 0 and aligned(*vectors) else 1


@override("glu", backend="cupy")
def glu(F: Any, x: Any, *, axis: int) -> Any:
    if x.dtype not in ACCUMULATORS or not x.size:
        return NotImplemented
    x = cupy.ascontiguousarray(x)
    half, vec = _halves(x, axis, (x,))
    y = cupy.empty((*x.shape[:axis], x.shape[axis] // 2, *x.shape[axis + 1 :]), x.dtype)
    grid = -(-y.size // (256 * vec))
    if grid > MOST_BLOCKS:
        return NotImplemented
    _GLU[x.dtype, vec](grid, 256, x, y.size, half, y)
    return y


@override("glu_backward", backend="cupy")
def glu_backward(F: Any, g: Any, x: Any, *, axis: int) -> Any:
    if x.dtype not in ACCUMULATORS or not x.size or g.dtype != x.dtype:
        return NotImplemented
    g, x = cupy.ascontiguousarray(g), cupy.ascontiguousarray(x)
    half, vec = _halves(x, axis, (g, x))
    grid = -(-g.size // (256 * vec))
    if grid > MOST_BLOCKS or 2 * g.size != x.size:
        return NotImplemented
    gx = cupy.empty(x.shape, x.dtype)
    _GLU_BACKWARD[x.dtype, vec](grid, 256, g, x, g.size, half, gx)
    return gx
