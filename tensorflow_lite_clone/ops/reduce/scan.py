"""Scans: running sums, products, extremes, and the linear recurrence behind their gradients."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.inplace import apply_inplace
from tensorflow_lite_clone.core.dtypes import DType, int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.reduce._arguments import (
    axis_of,
    delivered,
    is_integral,
    with_dtype,
)
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor

_Cummax = result_type("cummax", "values", "indices")
_Cummin = result_type("cummin", "values", "indices")


def part(axis: int, start: int | None, stop: int | None) -> tuple:
    """The index of ``start:stop`` along `axis`."""
    return (*(slice(None),) * axis, slice(start, stop))


class LinearRecurrence(Op):
    """``h[i] = x[i] + a[i] * h[i-1]`` along an axis, from ``h[0] = x[0]``.

    It runs in log2(n) steps (Hillis and Steele, "Data parallel algorithms", 1986): each step
    doubles the stretch of the input that an element has seen.
    """

    def forward(F, x, a, *, axis):
        size = x.shape[axis]
        step = 1
        while step < size:
            old, new = part(axis, None, step), part(axis, step, None)
            before = part(axis, None, -step)
            y = x[new] + a[new] * x[before]
            x = F.concat([x[old], y], axis=axis)
            step += step
            if step < size:
                a = F.concat([a[old], a[new] * a[before]], axis=axis)
        return x

    def backward(F, g, a, out, *, axis, needs):
        gx = F.reverse_recurrence(g, conj(F, a[part(axis, 1, None)]), axis=axis)
        if not needs[1]:
            return gx, None
        before = out[part(axis, None, -1)]
        zero = F.zeros_like(out[part(axis, None, 1)])
        return gx, gx * conj(F, F.concat([zero, before], axis=axis))


@composite
def reverse_recurrence(F, x, a, *, axis):
    """``h[i] = x[i] + a[i] * h[i+1]``; `a` is one element shorter than `x`."""
    if x.shape[axis] < 2:
        return x
    a = F.flip(a, axis=axis)
    a = F.concat([a[part(axis, None, 1)], a], axis=axis)  # the first one has no effect
    return F.flip(F.linear_recurrence(F.flip(x, axis=axis), a, axis=axis), axis=axis)


class Cumsum(Op):
    """Running sums."""

    def forward(F, x, *, axis):
        return F.cumulative_sum(x, axis=axis) if x.ndim else F.copy(x)

    def backward_x(F, g, *, axis):
        return F.cumsum_backward(g, axis=axis)


@composite
def cumsum_backward(F, g, *, axis):
    """Sums from the end: ``gx[i] = sum of g[j], j >= i``."""
    if not g.ndim:
        return g
    return F.flip(F.cumulative_sum(F.flip(g, axis=axis), axis=axis), axis=axis)


class Cumprod(Op):
    """Running products."""

    def forward(F, x, *, axis):
        return F.cumulative_prod(x, axis=axis) if x.ndim else F.copy(x)

    def backward_x(F, g, x, out, *, axis):
        return F.cumprod_backward(g, x, out, axis=axis)


@composite
def cumprod_backward(F, g, x, y, *, axis):
    """``gx[i] = y[i-1] * s[i]`` with ``s[i] = g[i] + x[i+1] * s[i+1]``: no division by zeros.

    Of complex numbers x and y their conjugates.
    """
    if not x.ndim or x.shape[axis] < 2:
        return g
    s = F.reverse_recurrence(g, conj(F, x[part(axis, 1, None)]), axis=axis)
    one = F.ones_like(y[part(axis, None, 1)])
    return s * conj(F, F.concat([one, y[part(axis, None, -1)]], axis=axis))


class Logcumsumexp(Op):
    """Running logarithms of sums of exponentials."""

    def forward(F, x, *, axis):
        return F.cumulative_logsumexp(x, axis=axis) if x.ndim else F.copy(x)

    def backward_x(F, g, x, out, *, axis):
        return F.logcumsumexp_backward(g, x, out, axis=axis)


@composite
def logcumsumexp_backward(F, g, x, y, *, axis):
    """``gx[i] = exp(x[i] - y[i]) * t[i]``, ``t[i] = g[i] + exp(y[i] - y[i+1]) * t[i+1]``.

    As ``y`` never falls, no exponential overflows.
    """
    if not x.ndim:
        return g
    before, after = y[part(axis, None, -1)], y[part(axis, 1, None)]
    fall = F.exp(F.where(before == after, 0, before - after))  # infinities stay where they are
    return conj(F, F.exp(x - y)) * F.reverse_recurrence(g, conj(F, fall), axis=axis)


def _scan(op: type[Op], input: Tensor, dim: Any) -> Tensor:
    array = input._storage.array
    _refuse_bool(op, array)
    return apply(op, input, axis=axis_of(dim, array.ndim))


def _scan_inplace(op: type[Op], input: Tensor, dim: Any, dtype: DType | None) -> Tensor:
    if dtype is not None and dtype is not input.dtype:
        raise RuntimeError(
            f"Bad in-place call: input tensor dtype {input.dtype!r} and output tensor dtype "
            f"{dtype!r} should match"
        )
    array = input._storage.array
    _refuse_bool(op, array)
    return apply_inplace(op, input, axis=axis_of(dim, array.ndim))


def _refuse_bool(op: type[Op], array: Any) -> None:
    if array.dtype.kind == "b" and array.ndim and array.size:
        raise NotImplementedError(f"\"{op.name}_out_cpu\" not implemented for 'Bool'")


def _widened(input: Tensor, dtype: DType | None, out: Tensor | None) -> Tensor:
    if dtype is None:
        if out is not None:
            dtype = out.dtype  # PyTorch sums in the dtype of `out`
        elif is_integral(input):
            dtype = int64
    return with_dtype(input, dtype)


@public("torch", "method")
def cumsum(
    input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    """Running sums along `dim`; integers are summed as int64."""
    return delivered("cumsum", _scan(Cumsum, _widened(input, dtype, out), dim), out, (input,))


@public("method")
def cumsum_(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """In-place form of `cumsum`."""
    return _scan_inplace(Cumsum, input, dim, dtype)


@public("torch", "method")
def cumprod(
    input: Tensor, dim: int, *, dtype: DType | None = None, out: Tensor | None = None
) -> Tensor:
    """Running products along `dim`; integers are multiplied as int64."""
    return delivered("cumprod", _scan(Cumprod, _widened(input, dtype, out), dim), out, (input,))


@public("method")
def cumprod_(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """In-place form of `cumprod`."""
    return _scan_inplace(Cumprod, input, dim, dtype)


@public("torch", "method")
def logcumsumexp(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Running ``log(sum(exp(x)))`` along `dim`."""
    if is_integral(input):
        refuse("logcumsumexp_out_cpu", input.dtype)
    return delivered("logcumsumexp", _scan(Logcumsumexp, input, dim), out, (input,))


class Cummax(Op):
    """Running maxima and their last places so far."""

    nondifferentiable = (1,)

    def forward(F, x, *, axis):
        values = F.cumulative_max(x, axis=axis)
        return values, _places(F, x, values, axis)

    def backward_x(F, g, out1, *, axis):
        return F.running_backward(g, out1, axis=axis)


class Cummin(Op):
    """Running minima and their last places so far."""

    nondifferentiable = (1,)

    def forward(F, x, *, axis):
        values = F.cumulative_min(x, axis=axis)
        return values, _places(F, x, values, axis)

    def backward_x(F, g, out1, *, axis):
        return F.running_backward(g, out1, axis=axis)


def _places(F: Any, x: Any, running: Any, axis: int) -> Any:
    here = x == running
    if x.dtype.kind in "fV":
        here = here | F.isnan(x)  # every NaN is a new extreme
    return F.cumulative_max(F.where(here, _steps(F, x, axis), 0), axis=axis)


def _steps(F: Any, x: Any, axis: int) -> Any:
    """``0, 1, 2, ...`` along `axis`."""
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    return F.reshape(F.arange(x.shape[axis]), tuple(shape))


@composite
def running_backward(F, g, index, *, axis):
    """To each place in `index` the sum of ``g`` over the stretch up to the next such place."""
    own = index == _steps(F, g, axis)
    last = F.astype(~own[part(axis, 1, None)], g.dtype)
    return F.astype(own, g.dtype) * F.reverse_recurrence(g, last, axis=axis)


def _extremes(op: type[Op], kind: Any, input: Tensor, dim: Any) -> Any:
    ndim = input._storage.physical.ndim
    axis = axis_of(dim, ndim)
    if ndim:
        return kind(apply(op, input, axis=axis))
    return kind([result.reshape(()) for result in apply(op, input.reshape(1), axis=0)])


@public("torch", "method")
def cummax(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """Running maxima along `dim` as (values, indices)."""
    return delivered("cummax", _extremes(Cummax, _Cummax, input, dim), out)


@public("torch", "method")
def cummin(input: Tensor, dim: int, *, out: Any = None) -> Any:
    """Running minima along `dim` as (values, indices)."""
    return delivered("cummin", _extremes(Cummin, _Cummin, input, dim), out)


@public("torch", "method")
def diff(
    input: Tensor,
    n: int = 1,
    dim: int = -1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The `n`-th differences of neighbours along `dim`, after joining `prepend` and `append`.

    For ``n=0`` nothing is joined, as in PyTorch.
    """
    ndim = input._storage.physical.ndim
    if not ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    axis = axis_of(dim, ndim)
    for tensor in (prepend, append):
        if isinstance(tensor, Tensor) and tensor.ndim != ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    joined = [tensor for tensor in (prepend, input, append) if tensor is not None]
    result = cat(joined, axis) if n and len(joined) > 1 else input
    for _ in range(min(n, result._storage.physical.shape[axis])):
        later, earlier = result[part(axis, 1, None)], result[part(axis, None, -1)]
        boolean = result._storage.physical.dtype.kind == "b"
        result = later.logical_xor(earlier) if boolean else later - earlier
    return delivered("diff", result.clone() if result is input else result, out, (input,))
