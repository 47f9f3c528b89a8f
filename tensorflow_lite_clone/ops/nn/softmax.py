"""Softmax and its logarithm, log-sum-exp: stable, with fused gradients."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_unary
from tensorflow_lite_clone.autograd.namespaces import recorded
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, float32
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.strides import contiguous_format
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._fast_paths import along_dim
from tensorflow_lite_clone.ops._formulas import conj, widened
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.pointwise._operands import cast, refuse
from tensorflow_lite_clone.ops.reduce._arguments import (
    as_floating,
    axes_of,
    axis_of,
    delivered,
    restored,
)
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.tensor import Tensor


class Softmax(Op):
    """``exp(x) / sum(exp(x))``."""

    def forward(F, x, *, axis):
        dtype = x.dtype
        if dtype.itemsize == 2:
            x = F.astype(x, float32)
        y = F.exp(x - F.max(x, axis=axis, keepdims=True))
        y /= F.sum(y, axis=axis, keepdims=True)
        return y if y.dtype == dtype else F.astype(y, dtype)

    def backward_x(F, g, out, *, axis):
        return F.softmax_backward(g, out, axis=axis)


@composite
@widened
def softmax_backward(F, g, y, *, axis):
    """``gx = y * (g - sum(g * y))``."""
    gy = g * y
    return gy - y * F.sum(gy, axis=axis, keepdims=True)


class SafeSoftmax(Softmax):
    """`Softmax`, but zeros where all of a row is -inf."""

    def forward(F, x, *, axis):
        masked = F.all(x == -math.inf, axis=axis, keepdims=True)
        return F.where(masked, 0, F.softmax(x, axis=axis))

    backward_x = Softmax.backward_x


class LogSoftmax(Op):
    """``x - log(sum(exp(x)))``."""

    def forward(F, x, *, axis):
        dtype = x.dtype
        if dtype.itemsize == 2:
            x = F.astype(x, float32)
        y = x - F.max(x, axis=axis, keepdims=True)
        y -= F.log(F.sum(F.exp(y), axis=axis, keepdims=True))
        return y if y.dtype == dtype else F.astype(y, dtype)

    def backward_x(F, g, out, *, axis):
        return F.log_softmax_backward(g, out, axis=axis)


@composite
@widened
def log_softmax_backward(F, g, y, *, axis):
    """``gx = g - exp(y) * sum(g)``."""
    return g - F.exp(y) * F.sum(g, axis=axis, keepdims=True)


class Logsumexp(Op):
    """``log(sum(exp(x)))``."""

    def forward(F, x, *, axis, keepdims, shape):
        dtype = x.dtype
        if dtype.itemsize == 2:
            x = F.astype(x, float32)
        if 0 in shape:
            y = F.log(F.sum(F.exp(x), axis=axis, keepdims=keepdims))
        else:
            top = F.max(F.real(x) if x.dtype.kind == "c" else x, axis=axis, keepdims=True)
            top = F.where(F.abs(top) == math.inf, 0, top)
            y = F.log(F.sum(F.exp(x - top), axis=axis, keepdims=keepdims))
            y = y + F.reshape(top, y.shape)
        return y if y.dtype == dtype else F.astype(y, dtype)

    def backward_x(F, g, x, out, *, axis, keepdims, shape):
        g = restored(F, g, axis, keepdims, shape)
        return F.logsumexp_backward(g, x, restored(F, out, axis, keepdims, shape))


@composite
def logsumexp_backward(F, g, x, y):
    """``gx = g * exp(x - y)``, the softmax; of complex numbers its conjugate."""
    return g * conj(F, F.exp(x - y))


def _soft(name: str, op: type[Op], input: Tensor, dim: Any, dtype: DType | None) -> Tensor:
    array = input._storage.array
    if dtype is not None and dtype is not input.dtype:
        input = cast(input, as_dtype(dtype))
        array = input._storage.array
    ndim = array.ndim
    if dim is None:
        warnings.warn(
            f"Implicit dimension choice for {name} has been deprecated. Change the call to "
            "include dim=X as an argument.",
            stacklevel=level_outside(),
        )
        dim = 0 if ndim in (0, 1, 3) else 1
    if array.dtype.kind in "biuc" and array.size:
        refuse(f"{name}_lastdim_kernel_impl", input.dtype)
    axis = axis_of(dim, ndim)
    if not ndim:
        return apply(op, input.reshape(1), axis=0).reshape(())
    if not array.size:
        return stepwise(input).clone()
    return apply_unary(op, input, {"axis": axis})


@public("torch", "functional", "method", "special")
@along_dim(Softmax, "biuc")
def softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: DType | None = None,
    *,
    out: Tensor | None = None,
    _stacklevel: int = 3,
) -> Tensor:
    """``exp(x) / sum(exp(x))`` along `dim`; cast to `dtype` first if one is given."""
    result = _soft("softmax", Softmax, input, dim, dtype)
    return result if out is None else delivered("softmax", result, out)


@public("torch", "functional", "method", "special")
@along_dim(LogSoftmax, "biuc")
def log_softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: DType | None = None,
    *,
    out: Tensor | None = None,
    _stacklevel: int = 3,
) -> Tensor:
    """``x - log(sum(exp(x)))`` along `dim`; cast to `dtype` first if one is given."""
    result = _soft("log_softmax", LogSoftmax, input, dim, dtype)
    return result if out is None else delivered("log_softmax", result, out)


@public("torch")
def _safe_softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """`softmax`, but zeros in place of NaN where all elements along `dim` are -inf.

    It is what weights of attention are made by, where a mask may leave a query nothing to look at.

    >>> torch._safe_softmax(torch.tensor([[1.0, 1.0], [-torch.inf, -torch.inf]]), 1)
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """
    return _soft("softmax", SafeSoftmax, input, dim, dtype)


@public("torch")
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: DType
) -> Tensor:
    """The gradient in the input of the softmax `output` along `dim`, for that in `output`.

    Functions with a `backward` of their own call it (transformers' SEW-D). Both tensors have one
    shape, and the dtype `input_dtype`. Raises RuntimeError for others.

    >>> y = torch.softmax(torch.zeros(2), 0)
    >>> torch._softmax_backward_data(torch.tensor([1.0, 0.0]), y, 0, y.dtype)
    tensor([ 0.2500, -0.2500])
    """
    if grad_output.shape != output.shape:
        raise RuntimeError(
            "Expected tensor for argument #1 'grad' to have same size as tensor for argument #2 "
            f"'output'; but {list(grad_output.shape)} does not equal {list(output.shape)} (while "
            "checking arguments for softmax_backward)"
        )
    for dtype in (grad_output.dtype, input_dtype):
        if dtype is not output.dtype:
            raise RuntimeError(
                f"expected scalar type {output.dtype.short_name} but found {dtype.short_name}"
            )
    F = recorded(output._storage.backend)
    gradient: Tensor = F.softmax_backward(grad_output, output, axis=axis_of(dim, output.ndim))
    return gradient


@public("functional")
@autocasts("softmax")
def softmin(
    input: Tensor, dim: int | None = None, dtype: DType | None = None, *, _stacklevel: int = 3
) -> Tensor:
    """The softmax of ``-input``."""
    return _soft("softmin", Softmax, -input, dim, dtype)


@public("functional")
def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """The softmax of ``(logits + Gumbel noise) / tau``: a differentiable draw of a class.

    With `hard` the result is one-hot, but its gradient is the softmax's.
    """
    noise = -logits.detach().clone(memory_format=contiguous_format).exponential_().log()
    soft = softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    place = soft.detach().max(dim, keepdim=True)[1]
    chosen = logits.new_zeros(logits.shape).scatter(dim, place, 1.0)
    return chosen - soft.detach() + soft


@public("torch", "method", "special")
def logsumexp(
    input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """``log(sum(exp(x)))`` over `dim` (an int or several); integers as the default dtype."""
    input = as_floating(input)
    shape = input._storage.physical.shape
    result = apply(Logsumexp, input, axis=axes_of(dim, len(shape)), keepdims=keepdim, shape=shape)
    return delivered("logsumexp", result, out)
