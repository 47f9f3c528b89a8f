"""Variance and its kin, histograms, quantiles, covariance."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_unary, wrap
from tensorflow_lite_clone.core.dtypes import float32, float64, int64
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._formulas import no_gradient
from tensorflow_lite_clone.ops._samples import expect_values, holds, per_sample
from tensorflow_lite_clone.ops.index.sort import sort
from tensorflow_lite_clone.ops.pointwise._operands import cast, refuse
from tensorflow_lite_clone.ops.reduce._arguments import (
    axes_of,
    axis_of,
    delivered,
    reduced_count,
    restored,
)
from tensorflow_lite_clone.ops.reduce.reductions import mean
from tensorflow_lite_clone.ops.shape._views import number_of
from tensorflow_lite_clone.tensor import Tensor


class Var(Op):
    """Sum of squared distances from the mean, divided by n - correction."""

    def forward(F, x, *, axis, keepdims, correction, shape):
        wide = F.astype(x, float32) if x.dtype.itemsize == 2 else x
        total = _squared_distances(F, wide, axis, keepdims)
        return F.astype(total / _dof(shape, axis, correction), _real_dtype(x, total))

    def backward_x(F, g, x, *, axis, keepdims, correction, shape):
        g = restored(F, g, axis, keepdims, shape)
        return F.var_backward(g, x, axis=axis, correction=correction)


class Std(Op):
    """The root of `Var`."""

    def forward(F, x, *, axis, keepdims, correction, shape):
        wide = F.astype(x, float32) if x.dtype.itemsize == 2 else x
        total = _squared_distances(F, wide, axis, keepdims)
        return F.astype(F.sqrt(total / _dof(shape, axis, correction)), _real_dtype(x, total))

    def backward_x(F, g, x, out, *, axis, keepdims, correction, shape):
        g = F.where(out == 0, 0, g / (out * 2))
        g = restored(F, g, axis, keepdims, shape)
        return F.var_backward(g, x, axis=axis, correction=correction)


def _squared_distances(F: Any, x: Any, axis: tuple, keepdims: bool) -> Any:
    d = x - F.mean(x, axis=axis, keepdims=True)
    squares = F.real(d) * F.real(d) + F.imag(d) * F.imag(d) if d.dtype.kind == "c" else d * d
    return F.sum(squares, axis=axis, keepdims=keepdims)


def _real_dtype(x: Any, real: Any) -> Any:
    return real.dtype if x.dtype.kind == "c" else x.dtype


def _dof(shape: tuple, axis: tuple, correction: float) -> float:
    return max(0.0, reduced_count(shape, axis) - correction)


@composite
def var_backward(F, g, x, *, axis, correction):
    """``gx = 2 / (n - correction) * g * (x - mean)``."""
    dof = reduced_count(x.shape, axis) - correction
    d = x - F.mean(x, axis=axis, keepdims=True)
    if len(axis) == x.ndim and dof <= 0:
        return g * F.where(d == 0, math.nan, math.inf)
    return (g * (2 / dof if dof else math.inf)) * d


def _variance(
    name: str, op: Any, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any
) -> Tensor:
    if type(dim) is bool:
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    elif unbiased is not None:
        raise TypeError(f"{name}() takes either 'unbiased' or 'correction', not both")
    array = input._storage.array
    if array.dtype.kind in "biu":
        which = f"{name} only" if name.endswith("mean") else "std and var only"
        raise RuntimeError(f"{which} support floating point and complex dtypes")
    shape = array.shape
    axis = axes_of(dim, len(shape))
    count = reduced_count(shape, axis)
    if count <= correction and math.prod(shape) + (count == 0):
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel).",
            stacklevel=level_outside(),
        )
    parameters = {"axis": axis, "keepdims": keepdim, "correction": correction, "shape": shape}
    return apply_unary(op, input, parameters)


@public("torch", "method")
def var(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The variance over `dim`: squared distances from the mean over ``n - correction``.

    `correction` is 1 unless given; ``unbiased=False`` means 0.
    """
    result = _variance("var", Var, input, dim, unbiased, keepdim, correction)
    return delivered("var", result, out)


@public("torch", "method")
def std(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The standard deviation over `dim`, the root of `var`."""
    result = _variance("std", Std, input, dim, unbiased, keepdim, correction)
    return delivered("std", result, out)


@public("torch")
def var_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`var` and `mean` over `dim`."""
    result = _variance("var_mean", Var, input, dim, unbiased, keepdim, correction)
    return result, mean(input, None if type(dim) is bool else dim, keepdim)


@public("torch")
def std_mean(
    input: Tensor,
    dim: Any = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`std` and `mean` over `dim`."""
    result = _variance("std_mean", Std, input, dim, unbiased, keepdim, correction)
    return result, mean(input, None if type(dim) is bool else dim, keepdim)


class Bincount(Op):
    """How often each integer occurs, or the sum of its weights."""

    primitive = "bincount"
    name = "count_integers"

    def forward(F, x, weights, *, minlength):
        return F.bincount(x, weights, minlength=minlength)

    def backward_weights(F, g, *, minlength):
        return no_gradient("bincount")(F, g)


@public("torch", "method")
@per_sample()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each value of a 1-d tensor of non-negative integers occurs, as int64.

    With `weights` their sums by value, in float32 for float32 weights, else in float64.
    """
    array = input._storage.array
    if array.dtype.kind not in "iu":
        refuse("bincount_cpu", input.dtype)
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    backend = input._storage.backend
    # The size of the result depends on the values: the host reads back here in any case.
    if array.ndim == 1:
        expect_values("bincount", input)
    if array.ndim != 1 or (array.size and number_of(backend.F.min(array), backend) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None or not array.size:
        return cast(apply(Bincount, input, None, minlength=minlength), int64)
    if weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    narrow = weights.dtype is float32
    weights = cast(weights, float64)
    result = apply(Bincount, input, weights, minlength=minlength)
    return cast(result, float32 if narrow else float64)


class Histc(Op):
    """Counts of values in equal bins."""

    def forward(F, x, *, bins, low, high):
        low, high, count = [F.backend.constant(value, x.dtype) for value in (low, high, bins)]
        inside = (x >= low) & (x <= high)
        place = F.astype((F.where(inside, x, low) - low) * count / (high - low), F.int64)
        place = F.minimum(place, bins - 1)  # the last bin has both its edges
        place = F.reshape(F.where(inside, place, bins), (-1,))  # others into one more
        counts = F.zeros((bins + 1,), dtype=F.int64)
        counts = F.index_add(counts, place, F.ones(place.shape, dtype=F.int64), axis=0)
        return F.astype(counts[:bins], x.dtype)


@public("torch", "method")
@per_sample()
def histc(
    input: Tensor, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None
) -> Tensor:
    """Counts of the values in `bins` equal bins from `min` to `max`, in `input`'s dtype.

    Equal limits mean the smallest and the largest value. Raises RuntimeError for bad limits,
    NotImplementedError for integers on the CPU.
    """
    floating = input.dtype.kind == "f"
    if not floating and (input.is_cpu or input.dtype.kind not in "iu"):
        refuse("histogram_cpu", input.dtype)
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = float(min), float(max)
    if low == high and input._storage.physical.size and input._storage.backend.has_values:
        low, high = float(input.detach().min()), float(input.detach().max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high:
        low, high = low - 1, high + 1
    flat = input.detach().reshape(-1)
    if not floating or (high - low) * bins > finfo(input.dtype).max:
        flat = cast(flat, float64)
    result = apply(Histc, flat, bins=bins, low=low, high=high)
    return delivered("histc", cast(result, input.dtype), out)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, input: Tensor, q: Any, dim: Any, keepdim: bool, interpolation: str
) -> Tensor:
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if not input._storage.physical.size:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, "
            f"but got {interpolation}"
        )
    q = _checked_probabilities(name, q, input)
    ndim = input.ndim
    if dim is None:
        x, axis = input.reshape(-1), None
    else:
        axis = axis_of(dim, ndim)
        x = input.movedim(axis, -1) if ndim else input.reshape(1)
    ordered = sort(x, -1)[0]
    ranks = _ranks(name, ordered.detach(), q.reshape(-1))  # leading dims of x, then q
    if interpolation == "nearest":
        ranks = ranks.round()
    elif interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    below = ranks.floor()
    result = ordered.gather(-1, below.to(int64))
    if interpolation in ("linear", "midpoint"):
        above = ordered.gather(-1, ranks.ceil().to(int64))
        weight = 0.5 if interpolation == "midpoint" else ranks - below
        result = result.lerp(above, weight)
    if keepdim:
        kept = [1] * ndim if axis is None else [*input.shape]
        if axis is not None and ndim:
            kept[axis] = 1
        result = result.movedim(-1, 0).reshape(-1, *kept)
    else:
        result = result.movedim(-1, 0)
    return result if q.ndim else result.squeeze(0)


def _checked_probabilities(name: str, q: Any, input: Tensor) -> Tensor:
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if not holds((q >= 0) & (q <= 1)):
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
        return q
    if not isinstance(q, (int, float)):
        raise TypeError(
            f"{name}(): argument 'q' (position 2) must be float or Tensor, not {type(q).__name__}"
        )
    if not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    backend = input._storage.backend
    return wrap(backend.constant(q, backend.native[input.dtype]), backend)


def _ranks(name: str, ordered: Tensor, q: Tensor) -> Tensor:
    """The places of the quantiles: a slice with a NaN answers with its last element, a NaN."""
    last = ordered.shape[-1] - 1
    nan = ordered.isnan()
    if name == "nanquantile":
        count = nan.logical_not().sum(-1, keepdim=True)
        ranks = q * (count - 1).to(q.dtype)
        return ranks.masked_fill(ranks < 0, 0)
    return (q * last).masked_fill(nan.any(-1, keepdim=True), last)


@public("torch", "method")
def quantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """The `q`-th quantiles (a number or a 1-d tensor in [0, 1]) along `dim` or of all values.

    For several q the result has them in its first dimension. A slice with NaN has NaN.
    """
    result = _quantile("quantile", input, q, dim, keepdim, interpolation)
    return delivered("quantile", result, out)


@public("torch", "method")
def nanquantile(
    input: Tensor,
    q: Any,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    interpolation: str = "linear",
    out: Tensor | None = None,
) -> Tensor:
    """`quantile` of what is not NaN."""
    result = _quantile("nanquantile", input, q, dim, keepdim, interpolation)
    return delivered("nanquantile", result, out)
