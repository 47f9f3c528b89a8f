"""Choosing values: `where`, clamping, replacing NaN and infinities, steps."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import uncastable
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import elementwise
from tensorflow_lite_clone.ops._formulas import no_gradient, widened
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._elementwise import (
    Pointwise,
    pointwise,
    wrong_operands,
)
from tensorflow_lite_clone.ops.pointwise._operands import (
    as_number,
    as_operands,
    cast,
    common_backend,
    half_number,
    joined,
    operand_dtype,
)
from tensorflow_lite_clone.ops.pointwise._pointwise import binary
from tensorflow_lite_clone.ops.pointwise.complex_numbers import complex as make_complex
from tensorflow_lite_clone.tensor import Tensor


class Where(Op):
    """x where the condition holds, else y."""

    layout_agnostic = True
    primitive = "where"
    layout = elementwise

    def forward(F, condition, x, y):
        return F.where(condition, x, y)

    def backward_x(F, g, condition):
        return F.where(condition, g, 0)

    def backward_y(F, g, condition):
        return F.where(condition, 0, g)


@public("torch")
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where `condition` holds, else `other`; tensors or numbers, broadcast and promoted.

    With one argument, the indices of its nonzero elements, one tensor per dimension. Raises
    RuntimeError for a condition that is not bool (or uint8).
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if condition.dtype is dtypes.uint8:
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead.",
            stacklevel=level_outside(),
        )
        condition = cast(condition, dtypes.bool_)
    if condition.dtype is not dtypes.bool_:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.short_name}"
        )
    if (
        isinstance(input, Tensor)
        and isinstance(other, Tensor)
        and input.dtype is other.dtype
        and input._storage.backend is other._storage.backend is condition._storage.backend
    ):
        result = apply(Where, condition, input, other)
        return result if out is None else write_out("where", out, result, (condition, input, other))
    values = [v if isinstance(v, Tensor) else as_number(v) for v in (input, other)]
    if values[0] is None or values[1] is None:
        raise wrong_operands("where", condition, input, other)
    backend = common_backend((condition, *values))
    condition = joined(condition, backend)
    x, y = _alternatives(condition, *values)
    result = apply(Where, condition, joined(x, backend), joined(y, backend))
    return result if out is None else write_out("where", out, result, (condition, input, other))


def _alternatives(condition: Tensor, x: Any, y: Any) -> tuple[Tensor, Tensor]:
    dtype = operand_dtype(x, y)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        backend = condition._storage.backend
        x = wrap(backend.constant(x, backend.native[dtype]), backend)
    x, y = as_operands((x, y), dtype)
    return x, y


@public("method", names=("where",))
def tensor_where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where `condition` holds, else `other`."""
    return where(condition, self, other)


class Clamp(Pointwise):
    """x between two numbers, of which one may be None."""

    label = "ClampBackward1"
    refuses = "bc"

    def forward(F, x, *, min, max):
        constant = F.backend.constant  # native operands cost less than Python's numbers
        if min is not None:
            min = constant(min, x.dtype)
        return F.clip(x, min, None if max is None else constant(max, x.dtype))

    def backward_x(F, g, x, *, min, max):
        if min is None:
            return F.where(x <= max, g, 0)
        if max is None:
            return F.where(x >= min, g, 0)
        return F.where((x >= min) & (x <= max), g, 0)


class ClampMin(Pointwise):
    """x, but no less than low."""

    primitive = "maximum"
    refuses = "c"

    def forward(F, x, low):
        return F.maximum(x, low)

    def backward_x(F, g, x, low):
        return F.where(x >= low, g, 0)

    def backward_low(F, g, x, low):
        return F.where(x < low, g, 0)


class ClampMax(Pointwise):
    """x, but no more than high."""

    primitive = "minimum"
    refuses = "c"

    def forward(F, x, high):
        return F.minimum(x, high)

    def backward_x(F, g, x, high):
        return F.where(x <= high, g, 0)

    def backward_high(F, g, x, high):
        return F.where(x > high, g, 0)


class ClampBetween(Pointwise):
    """x between low and high; high where they cross."""

    label = "Clamp"
    refuses = "c"

    def forward(F, x, low, high):
        return F.minimum(F.maximum(x, low), high)

    def backward_x(F, g, x, low, high):
        return F.where((x >= low) & (x <= high), g, 0)

    def backward_low(F, g, x, low, high):
        return F.where((low < high) & (x < low), g, 0)

    def backward_high(F, g, x, low, high):
        return F.where((x > high) | (high < low), g, 0)


_BOUNDS = (int, float, type(None))


def _number_of(bound: Any) -> Any:
    """The element of a zero-dim tensor; anything else as it is."""
    return bound.item() if isinstance(bound, Tensor) and not bound.ndim else bound


def _clamp(name: str, input: Tensor, low: Any, high: Any, inplace: bool, out: Any) -> Tensor:
    if (
        type(low) in _BOUNDS
        and type(high) in _BOUNDS
        and not (low is None and high is None)
        and low == low
        and high == high
        and isinstance(input, Tensor)
        and input.dtype.kind == "f"
    ):
        if input.dtype.itemsize == 2:
            low, high = half_number(low, input), half_number(high, input)
        return pointwise(Clamp, input, inplace=inplace, out=out, min=low, max=high)
    if low is not None and high is not None and isinstance(low, Tensor) ^ isinstance(high, Tensor):
        low, high = _number_of(low), _number_of(high)
    bounds = [bound for bound in (low, high) if bound is not None]
    if not bounds:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = [isinstance(bound, Tensor) for bound in bounds]
    if all(tensors):
        op = ClampMin if high is None else ClampMax if low is None else ClampBetween
        return pointwise(op, input, *bounds, inplace=inplace, out=out)
    numbers = [as_number(bound) for bound in bounds]
    if any(tensors) or None in numbers or not isinstance(input, Tensor):
        raise wrong_operands(name, input, low, high)
    if any([isinstance(number, complex) for number in numbers]):
        raise RuntimeError("value cannot be converted to type double without overflow")
    dtype = operand_dtype(input, *numbers)
    if any([number != number for number in numbers]):
        low = high = math.nan
    if not inplace:
        input = cast(input, dtype)
    elif dtype is not input.dtype:
        raise uncastable(dtype, input.dtype)
    limit = 1 << (8 * dtype.itemsize - (dtype.kind == "i"))
    if dtype.kind in "iu" and any([abs(number) > limit for number in numbers]):
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return pointwise(Clamp, input, inplace=inplace, out=out, min=low, max=high)


@public("torch", "method", names=("clamp", "clip"))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """`input` between `min` and `max`: both numbers or both tensors, one may be left out.

    Where the bounds cross the result is `max`. The gradient at a bound is 1.
    """
    return _clamp("clamp", input, min, max, False, out)


@public("torch", "method", names=("clamp_", "clip_"))
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place form of `clamp`."""
    return _clamp("clamp_", input, min, max, True, None)


@public("torch", "method")
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """`input`, but no less than `min`."""
    return _clamp("clamp_min", input, min, None, False, out)


@public("torch", "method")
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place form of `clamp_min`."""
    return _clamp("clamp_min_", input, min, None, True, None)


@public("torch", "method")
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """`input`, but no more than `max`."""
    return _clamp("clamp_max", input, None, max, False, out)


@public("torch", "method")
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place form of `clamp_max`."""
    return _clamp("clamp_max_", input, None, max, True, None)


def _same_dtype(values: tuple) -> None:
    if values[0].dtype is not values[1].dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


_heaviside = binary(
    "heaviside",
    lambda F, x, y: F.where(x == 0, y, F.astype(x > 0, x.dtype)),
    x=no_gradient("heaviside"),
    y=no_gradient("heaviside"),
    refuses="c",
    numbers=False,
    check=_same_dtype,
    places=(),
)


@public("torch", "method")
def heaviside(input: Tensor, values: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0 for negative elements of `input`, 1 for positive ones, `values` for zeros."""
    return _heaviside(input, values, out=out)


@public("method")
def heaviside_(input: Tensor, values: Tensor) -> Tensor:
    """In-place form of `heaviside`."""
    return _heaviside.inplace(input, values)


class NanToNum(Pointwise):
    """x with NaN and the infinities replaced by numbers."""

    @widened
    def forward(F, x, *, nan, posinf, neginf):
        if x.dtype.kind in "biu":
            return F.copy(x)
        y = F.where(x != x, nan, x)
        y = F.where(x == F.inf, posinf, y)
        return F.where(x == -F.inf, neginf, y)

    def backward_x(F, g, x, *, nan, posinf, neginf):
        return g * F.isfinite(x)


_LARGEST = {
    dtypes.float16: 65504.0,
    dtypes.bfloat16: 3.3895313892515355e38,
    dtypes.float32: 3.4028234663852886e38,
    dtypes.float64: 1.7976931348623157e308,
}


@public("torch", "method")
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input` with NaN as `nan` (0), infinities as the numbers given or the dtype's largest."""
    result = _nan_to_num(input, nan, posinf, neginf, False)
    return (
        result if out is None else write_out("nan_to_num", out, result, (input,), elementwise=True)
    )


@public("torch", "method")
def nan_to_num_(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """In-place form of `nan_to_num`."""
    return _nan_to_num(input, nan, posinf, neginf, True)


def _nan_to_num(input: Tensor, nan: Any, posinf: Any, neginf: Any, inplace: bool) -> Tensor:
    dtype = input.dtype
    if dtype.kind == "c":
        parts = [_nan_to_num(part, nan, posinf, neginf, False) for part in (input.real, input.imag)]
        result = make_complex(*parts)
        return input.copy_(result) if inplace else result
    largest = _LARGEST.get(dtype, 0.0)
    return pointwise(
        NanToNum,
        input,
        inplace=inplace,
        nan=0.0 if nan is None else float(nan),
        posinf=largest if posinf is None else float(posinf),
        neginf=-largest if neginf is None else float(neginf),
    )
