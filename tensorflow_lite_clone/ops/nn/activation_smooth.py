"""Smooth activations: GELU, SiLU, Mish, softplus and the gated linear unit.

Gradients are composites, which a device may fuse.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.dispatch.result_layout import row_major
from tensorflow_lite_clone.ops._formulas import conj, widened
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise, pointwise
from tensorflow_lite_clone.ops.pointwise.elementary import tanh
from tensorflow_lite_clone.tensor import Tensor

_GELU_RATE = math.sqrt(2 / math.pi)
_GELU_CUBIC = 0.044715


@composite
@widened
def gelu_backward(F, g, x):
    """g (Phi(x) + x phi(x)) with the normal distribution's function and density"""
    distribution = 0.5 * (1 + F.erf(x * math.sqrt(0.5)))
    density = F.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    return g * (distribution + x * density)


@composite
@widened
def gelu_tanh_backward(F, g, x):
    """the gradient of 0.5 x (1 + tanh(u)), u = rate (x + cubic x^3)"""
    square = x * x
    t = F.tanh(_GELU_RATE * x * (1 + _GELU_CUBIC * square))
    slope = _GELU_RATE * (1 + 3 * _GELU_CUBIC * square)
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)


class Gelu(Pointwise):
    """x times the normal distribution function of x."""

    refuses = "biuc"

    @widened
    def forward(F, x):
        return 0.5 * x * (1 + F.erf(x * math.sqrt(0.5)))

    def backward_x(F, g, x):
        return F.gelu_backward(g, x)


class GeluTanh(Pointwise):
    """Gelu's approximation by tanh."""

    label = "Gelu"
    refuses = "biuc"

    @widened
    def forward(F, x):
        return 0.5 * x * (1 + F.tanh(_GELU_RATE * x * (1 + _GELU_CUBIC * x * x)))

    def backward_x(F, g, x):
        return F.gelu_tanh_backward(g, x)


@public("functional")
def gelu(input: Tensor, approximate: str = "none", *, out: Tensor | None = None) -> Tensor:
    """``input * Phi(input)``, Phi the normal distribution function or ("tanh") near it."""
    if approximate == "none":
        return pointwise(Gelu, input, out=out)
    if approximate == "tanh":
        return pointwise(GeluTanh, input, out=out)
    raise RuntimeError("approximate argument must be either none or tanh.")


@composite
@widened
def silu_backward(F, g, x):
    """g s (1 + x (1 - s)), s = sigmoid(x)"""
    s = F.sigmoid(x)
    return g * conj(F, s * (1 + x * (1 - s)))


class Silu(Pointwise):
    """x sigmoid(x)."""

    refuses = "biu"

    @widened
    def forward(F, x):
        return x / (1 + F.exp(-x))

    def backward_x(F, g, x):
        return F.silu_backward(g, x)


@public("functional")
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * sigmoid(input)``."""
    return pointwise(Silu, input, inplace=inplace)


@composite
@widened
def mish_backward(F, g, x):
    """g (t + x s (1 - t t)), s = sigmoid(x), t = tanh(softplus(x))"""
    t = F.tanh(_softplus(F, x))
    return g * (t + x * (1 - t * t) * F.sigmoid(x))


def _softplus(F, x):
    return F.log1p(F.exp(-F.abs(x))) + F.maximum(x, 0)


class Mish(Pointwise):
    """x tanh(softplus(x))."""

    refuses = "biuc"

    @widened
    def forward(F, x):
        return x * F.tanh(_softplus(F, x))

    def backward_x(F, g, x):
        return F.mish_backward(g, x)


@public("functional")
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * tanh(softplus(input))``."""
    return pointwise(Mish, input, inplace=inplace)


@composite
@widened
def softplus_backward(F, g, x, *, beta, threshold):
    """g sigmoid(beta x), g past the threshold"""
    z = x * beta
    return F.where(z > threshold, g, g * F.sigmoid(z))


class Softplus(Pointwise):
    """log(1 + exp(beta x)) / beta, x itself past the threshold."""

    refuses = "biuc"

    @widened
    def forward(F, x, *, beta, threshold):
        z = x * beta
        return F.where(z > threshold, x, F.log1p(F.exp(z)) / beta)

    def backward_x(F, g, x, *, beta, threshold):
        return F.softplus_backward(g, x, beta=beta, threshold=threshold)


@public("functional")
def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``; `input` where ``beta * input > threshold``."""
    return pointwise(Softplus, input, out=out, beta=beta, threshold=threshold)


@composite
@widened
def log_sigmoid_backward(F, g, x):
    """g sigmoid(-x)"""
    return g * F.sigmoid(-x)


class LogSigmoid(Pointwise):
    """log(sigmoid(x))."""

    layout = row_major
    refuses = "biuc"

    @widened
    def forward(F, x):
        return F.minimum(x, 0) - F.log1p(F.exp(-F.abs(x)))

    def backward_x(F, g, x):
        return F.log_sigmoid_backward(g, x)


@public("functional")
def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``log(sigmoid(input))``, exact for large negative numbers."""
    return pointwise(LogSigmoid, input, out=out)


@public("functional")
def softsign(input: Tensor) -> Tensor:
    """``input / (1 + |input|)``."""
    return input / (input.abs() + 1)


@public("functional")
def tanhshrink(input: Tensor) -> Tensor:
    """``input - tanh(input)``."""
    return input - tanh(input)


def _halves(x: Any, axis: int) -> tuple[Any, Any]:
    half = x.shape[axis] // 2
    before = (slice(None),) * axis
    return x[(*before, slice(None, half))], x[(*before, slice(half, None))]


@composite
def glu_backward(F, g, x, *, axis):
    """(g s, g a s (1 - s)) for the halves a, b of x, s = sigmoid(b)"""
    a, b = _halves(x, axis)
    s = F.sigmoid(b)
    ga = g * s
    return F.concat([ga, ga * a * (1 - s)], axis=axis)


class Glu(Pointwise):
    """a sigmoid(b) for the halves a, b of x."""

    refuses = "biuc"

    @widened
    def forward(F, x, *, axis):
        a, b = _halves(x, axis)
        return a / (1 + F.exp(-b))

    def backward_x(F, g, x, *, axis):
        return F.glu_backward(g, x, axis=axis)


@public("functional")
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `input` along `dim` times the sigmoid of the second."""
    if not input.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    axis = normalize_dim(dim, input.ndim)
    size = input._storage.physical.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    return pointwise(Glu, input, axis=axis)
