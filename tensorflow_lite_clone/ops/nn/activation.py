"""Activations in pieces: the rectifier's family, exponential units, hard variants.

Gradients are composites, which a device may fuse. They are written for the values PyTorch saves,
so that the same later in-place writes are legal.
"""

from __future__ import annotations

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import float64
from tensorflow_lite_clone.core.limits import iinfo
from tensorflow_lite_clone.core.public import export, public
from tensorflow_lite_clone.dispatch.op import composite
from tensorflow_lite_clone.ops._formulas import widened
from tensorflow_lite_clone.ops.pointwise._elementwise import (
    Pointwise,
    inplace_form,
    pointwise,
)
from tensorflow_lite_clone.ops.pointwise._operands import half_number
from tensorflow_lite_clone.ops.pointwise._pointwise import unary
from tensorflow_lite_clone.ops.reduce._arguments import override_or_raise
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.tensor import Tensor

# --- in pieces linear ---------------------------------------------------------------------------


@composite
def threshold_backward(F, g, x, *, threshold):
    """g where x > threshold (or is NaN), else 0"""
    return F.where(x <= threshold, 0, g)


_relu = unary(
    "relu",
    lambda F, x: F.maximum(x, F.backend.constant(0, x.dtype)),
    x=lambda F, g, out: F.threshold_backward(g, out, threshold=0),
    constant=True,
    refuses="bc",
    places=(),
)


@public("torch", "method", "functional", flat=True)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(input, 0)``; the gradient at 0 is 0."""
    try:
        return _relu.inplace(input) if inplace else _relu(input)
    except TypeError as error:
        return override_or_raise(error, relu, input, inplace)


export(_relu.inplace, "torch", "method", "functional", name="relu_")


class Threshold(Pointwise):
    """x where it is larger than the threshold, else a value."""

    constant_in = ("x",)
    refuses = "bc"

    @widened
    def forward(F, x, *, threshold, value):
        return F.where(x <= threshold, value, x)

    def backward_x(F, g, x, *, threshold):
        return F.threshold_backward(g, x, threshold=threshold)


@public("torch", "functional")
def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input` where it is larger than `threshold`, else `value`; of integers both are truncated."""
    if input.dtype.kind in "iu":
        threshold, value = int(threshold), int(value)
        limits = iinfo(input.dtype)
        if not limits.min <= value <= limits.max:
            raise RuntimeError(
                f"value cannot be converted to type {input.dtype.name}_t without overflow"
            )
    return pointwise(Threshold, input, inplace=inplace, out=out, threshold=threshold, value=value)


inplace_form(threshold, "torch", "functional")


@composite
@widened
def hardtanh_backward(F, g, x, *, low, high):
    """g between the bounds, 0 on them and outside"""
    return F.where((x > low) & (x < high), g, 0)


class Hardtanh(Pointwise):
    """x between two bounds."""

    constant_in = ("x",)
    refuses = "bc"

    def forward(F, x, *, low, high):
        constant = F.backend.constant
        return F.clip(x, constant(low, x.dtype), constant(high, x.dtype))

    def backward_x(F, g, x, *, low, high):
        return F.hardtanh_backward(g, x, low=low, high=high)


@public("functional")
def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """`input` between `min_val` and `max_val`; the gradient at the bounds is 0."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    for bound in (min_val, max_val):
        half_number(bound, input)  # refuses what is too large
    if input.dtype.kind in "iu":
        min_val, max_val = int(min_val), int(max_val)
        if min_val < 0 and input.dtype.kind == "u":
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return pointwise(Hardtanh, input, inplace=inplace, low=min_val, high=max_val)


inplace_form(hardtanh, "functional")


@public("functional")
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(input, 0), 6)``."""
    return hardtanh(input, 0, 6, inplace)


@composite
@widened
def leaky_relu_backward(F, g, x, *, slope):
    """g for positive x, else slope g"""
    return F.where(x > 0, g, g * slope)


class LeakyRelu(Pointwise):
    """x for positive numbers, else slope x."""

    constant_in = ("x",)
    refuses = "biuc"

    @widened
    def forward(F, x, *, slope):
        return F.where(x > 0, x, x * slope)

    def backward_x(F, g, x, *, slope):
        return F.leaky_relu_backward(g, x, slope=slope)


@public("functional")
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """`input` where it is positive, else ``negative_slope * input``."""
    return pointwise(LeakyRelu, input, inplace=inplace, slope=negative_slope)


inplace_form(leaky_relu, "functional")


class Prelu(Pointwise):
    """x for positive numbers, else w x."""

    constant_in = ("x", "w")
    label = "PreluKernel"
    refuses = "biuc"

    def forward(F, x, w):
        return F.where(x > 0, x, w * x)

    def backward_x(F, g, x, w):
        return F.where(x > 0, g, g * w)

    def backward_w(F, g, x):
        return F.where(x > 0, 0, g * x)


@public("torch", "functional")
@public("method")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`input` where it is positive, else ``weight * input``.

    `weight` has one element, or one per channel (axis 1 of `input`).
    """
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.short_name} and "
            f"{weight.dtype.short_name}"
        )
    count = weight._storage.physical.size
    shape = input._storage.physical.shape
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if count != 1:
        channels = shape[1] if len(shape) > 1 else 1
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if channels != count:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if weight.ndim == 1 or count != 1:
        places = [1] * len(shape)
        if len(shape) > 1:
            places[1] = count
        weight = weight.reshape(places)
    return apply(Prelu, input, weight)


@public("torch", "functional")
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`input` where it is positive, else ``slope * input``.

    The slopes are drawn uniformly from [lower, upper] in training, and are their mean otherwise.
    """
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        result = leaky_relu(input, (lower + upper) / 2, inplace)
        return result if inplace else result.contiguous()
    slopes = input.detach().new_ones(input.shape)
    negative = input.detach() <= 0
    count = int(negative.sum()) if input._storage.backend.has_values else 0
    noise = slopes.new_empty(count, dtype=float64).uniform_(lower, upper)  # as torch draws them
    slopes[negative] = noise.to(slopes.dtype)
    return input.mul_(slopes) if inplace else (stepwise(input) * slopes).contiguous()


inplace_form(rrelu, "torch", "functional")

# --- exponential --------------------------------------------------------------------------------


@composite
@widened
def elu_backward(F, g, x, *, alpha, scale, rate):
    """scale g for positive x, else scale alpha rate exp(rate x) g"""
    slope = F.exp(F.where(x >= 0, 0, x) * rate) * (scale * alpha * rate)
    return F.where(x > 0, g * scale, g * slope)


class Elu(Pointwise):
    """scale x for positive numbers, else scale alpha (exp(rate x) - 1)."""

    refuses = "biuc"

    @widened
    def forward(F, x, *, alpha, scale, rate):
        return F.where(x > 0, x * scale, F.expm1(F.minimum(x, 0) * rate) * (scale * alpha))

    def backward_x(F, g, x, *, alpha, scale, rate):
        return F.elu_backward(g, x, alpha=alpha, scale=scale, rate=rate)


class Celu(Elu):
    """Elu under the name that CELU's node has."""

    forward = Elu.forward
    backward_x = Elu.backward_x


@public("functional")
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input) - 1)``."""
    return pointwise(Elu, input, inplace=inplace, alpha=alpha, scale=1.0, rate=1.0)


inplace_form(elu, "functional")

# Klambauer et al., "Self-Normalizing Neural Networks" (2017): the fixed point (0, 1) of mean and
# variance.
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@public("torch", "functional")
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the constants that keep mean 0 and variance 1."""
    return pointwise(Elu, input, inplace=inplace, alpha=_SELU_ALPHA, scale=_SELU_SCALE, rate=1.0)


inplace_form(selu, "torch", "functional")


@public("torch", "functional")
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """`input` where it is positive, else ``alpha * (exp(input / alpha) - 1)``."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return pointwise(Celu, input, inplace=inplace, alpha=alpha, scale=1.0, rate=1.0 / alpha)


inplace_form(celu, "torch", "functional")

# --- hard variants ------------------------------------------------------------------------------


@composite
@widened
def hardsigmoid_backward(F, g, x):
    """g / 6 between -3 and 3"""
    return F.where((x > -3) & (x < 3), g / 6, 0)


class Hardsigmoid(Pointwise):
    """x / 6 + 1/2 between 0 and 1."""

    constant_in = ("x",)
    refuses = "biuc"

    @widened
    def forward(F, x):
        return F.clip(x + 3, 0, 6) / 6

    def backward_x(F, g, x):
        return F.hardsigmoid_backward(g, x)


@public("functional")
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``relu6(input + 3) / 6``."""
    return pointwise(Hardsigmoid, input, inplace=inplace)


@composite
@widened
def hardswish_backward(F, g, x):
    """0 up to -3, g from 3 on, g (x / 3 + 1/2) between"""
    return F.where(x <= -3, 0, F.where(x >= 3, g, g * (x / 3 + 0.5)))


class Hardswish(Pointwise):
    """x hardsigmoid(x)."""

    refuses = "biuc"

    @widened
    def forward(F, x):
        return x * F.clip(x + 3, 0, 6) / 6

    def backward_x(F, g, x):
        return F.hardswish_backward(g, x)


@public("functional")
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``input * relu6(input + 3) / 6``."""
    return pointwise(Hardswish, input, inplace=inplace)


@composite
def shrink_backward(F, g, x, *, lambd):
    """0 between -lambd and lambd, else g"""
    return F.where((x < -lambd) | (x > lambd), g, 0)


class Hardshrink(Pointwise):
    """x outside [-lambd, lambd], else 0."""

    constant_in = ("x",)
    refuses = "biuc"

    @widened
    def forward(F, x, *, lambd):
        return F.where((x >= -lambd) & (x <= lambd), 0, x)

    def backward_x(F, g, x, *, lambd):
        return F.shrink_backward(g, x, lambd=lambd)


class Softshrink(Pointwise):
    """x brought nearer to 0 by lambd."""

    constant_in = ("x",)
    refuses = "biuc"

    @widened
    def forward(F, x, *, lambd):
        return x - F.clip(x, -lambd, lambd)

    def backward_x(F, g, x, *, lambd):
        return F.shrink_backward(g, x, lambd=lambd)


@public("torch", "method", "functional")
def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`input` outside of ``[-lambd, lambd]``, else 0."""
    return pointwise(Hardshrink, input, out=out, lambd=half_number(lambd, input))


@public("functional")
def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """`input` brought nearer to 0 by `lambd`, at most to 0."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return pointwise(Softshrink, input, out=out, lambd=lambd)
