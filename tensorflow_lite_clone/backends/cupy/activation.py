"""Activations and their gradients in one pass each: `kernels/activation.cu`."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import (
    ACCUMULATORS,
    aligned,
    in_order,
    out_of_order,
    stored,
)
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.backends.cupy.softmax import MOST_BLOCKS
from tensorflow_lite_clone.dispatch.table import override

_FILE = "activation.cu"
_FORWARD = Kernel(_FILE, "activation_forward", params=("T", "A", "F", "VEC", "PACKS"))
_BACKWARD = Kernel(_FILE, "activation_backward", params=("T", "A", "F", "VEC", "PACKS"))
_GLU = Kernel(_FILE, "glu_forward", params=("T", "VEC"))
_GLU_BACKWARD = Kernel(_FILE, "glu_backward", params=("T", "VEC"))
_LARGE = 1 << 18  # elements
_NONE = (0.0, 0.0, 0.0)


def _launch(kernel: Kernel, functor: str, inputs: tuple, packs: int, numbers: tuple) -> Any:
    """`functor` of inputs that lie in memory like the last of them, whose layout the result has."""
    like = inputs[-1]
    dtype, count = like.dtype, like.size
    if dtype not in ACCUMULATORS or not count:
        return NotImplemented
    last, order = stored(like)
    if len(inputs) == 2:
        g = inputs[0]
        if g.dtype != dtype or g.shape != like.shape:
            return NotImplemented
        inputs = (in_order(g, order), last)
    else:
        inputs = (last,)
    vec = 16 // dtype.itemsize if aligned(*inputs) else 1
    each = packs if count >= _LARGE else 1
    grid = -(-count // (256 * vec * each))
    if grid > MOST_BLOCKS:
        return NotImplemented
    out = cupy.empty(last.shape, dtype)
    kernel[dtype, ACCUMULATORS[dtype], functor, vec, each](
        grid, 256, *inputs, count, *numbers, out
    )
    return out_of_order(out, order)


def _serve(
    name: str,
    functor: str,
    numbers: Callable[..., tuple] | None = None,
    rounded: bool = False,
    backward: bool = True,
) -> None:
    """Override `name`, and `name`_backward unless told otherwise; an existing name ends so.

    `numbers` turns the parameters into those of the functor; `rounded` ones are of x's dtype, as
    PyTorch compares with them.
    """

    def given(x: Any, parameters: dict) -> tuple:
        if numbers is None:
            return _NONE
        made = (*numbers(**parameters), 0.0, 0.0)[:3]
        if rounded and x.dtype.itemsize == 2:
            with np.errstate(over="ignore"):
                made = tuple([float(x.dtype.type(value)) for value in made])
        return made

    if name.endswith("_backward"):

        def gradient(F: Any, g: Any, x: Any, **parameters: Any) -> Any:
            return _launch(_BACKWARD, functor, (g, x), 2, given(x, parameters))

        override(name, backend="cupy")(gradient)
        return

    def forward(F: Any, x: Any, **parameters: Any) -> Any:
        return _launch(_FORWARD, functor, (x,), 4, given(x, parameters))

    override(name, backend="cupy")(forward)
    if backward:
        _serve(f"{name}_backward", f"{functor}Backward", numbers, rounded)


def _elu(*, alpha: float, scale: float, rate: float) -> tuple:
    return scale * alpha, scale, rate


def _elu_backward(*, alpha: float, scale: float, rate: float) -> tuple:
    return scale * alpha * rate, scale, rate


def _softplus(*, beta: float, threshold: float) -> tuple:
    return beta, threshold, 1.0 / beta if beta else math.inf


def _shrink(*, lambd: float) -> tuple:
    return (lambd,)


def _threshold(*, threshold: float, value: float = 0.0) -> tuple:
    return threshold, value


_serve("relu", "Relu", backward=False)
_serve("threshold", "Threshold", _threshold, rounded=True)
_serve("hardtanh", "Hardtanh", lambda *, low, high: (low, high), rounded=True)
_serve("leaky_relu", "LeakyRelu", lambda *, slope: (slope,))
_serve("elu", "Elu", _elu, backward=False)
_serve("celu", "Elu", _elu, backward=False)
_serve("elu_backward", "EluBackward", _elu_backward)
_serve("hardsigmoid", "Hardsigmoid")
_serve("hardswish", "Hardswish")
_serve("hardshrink", "Hardshrink", _shrink, rounded=True, backward=False)
_serve("softshrink", "Softshrink", _shrink, rounded=True, backward=False)
_serve("shrink_backward", "ShrinkBackward", _shrink, rounded=True)
_serve("gelu", "Gelu")
_serve("gelu_tanh", "GeluTanh")
_serve("silu", "Silu")
_serve("mish", "Mish")
_serve("softplus", "Softplus", _softplus)
_serve("log_sigmoid", "LogSigmoid")
_serve("sigmoid", "Sigmoid")
_serve("tanh", "Tanh")


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
