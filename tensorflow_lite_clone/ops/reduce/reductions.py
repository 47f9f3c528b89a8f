"""Reductions to fewer dimensions: sums, means, products, ``any`` and ``all``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_unary
from tensorflow_lite_clone.core.dtypes import DType, int64, uint8, uint64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._fast_paths import reduction
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.pointwise._operands import cast, refuse
from tensorflow_lite_clone.ops.reduce._arguments import (
    axes_of,
    axis_of,
    delivered,
    is_integral,
    reduced_count,
    reduction_label,
    restored,
    with_dtype,
)
from tensorflow_lite_clone.tensor import Tensor


class Sum(Op):
    """Sum over axes, in another dtype if one is given."""

    layout_agnostic = True
    label = reduction_label("Sum")

    def forward(F, x, *, axis, keepdims, shape, dtype=None):
        return F.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)

    def backward_x(F, g, *, axis, keepdims, shape):
        return F.broadcast_to(restored(F, g, axis, keepdims, shape), shape)


@public("torch", "method")
@reduction(Sum, "biu")
def sum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` (an int, several, or all); integers are summed as int64."""
    array = input._storage.physical
    shape = array.shape
    if dtype is None and isinstance(out, Tensor):
        dtype = out.dtype  # PyTorch sums in the dtype of `out`
    if dtype is None:
        if array.dtype.kind in "biu":
            dtype = int64
    elif dtype.category < input.dtype.category:
        input = cast(input, dtype)
    axis = axes_of(dim, len(shape))
    parameters = {"axis": axis, "keepdims": keepdim, "shape": shape}
    if dtype is not None:
        parameters["dtype"] = dtype
    result = apply_unary(Sum, input, parameters)
    return result if out is None else delivered("sum", result, out)


class Mean(Op):
    """The arithmetic mean over axes."""

    layout_agnostic = True
    label = reduction_label("Mean")

    def forward(F, x, *, axis, keepdims, shape):
        return F.mean(x, axis=axis, keepdims=keepdims)

    def backward_x(F, g, *, axis, keepdims, shape):
        # Divided last, so that each element has a place of its own and may be written to.
        g = F.broadcast_to(restored(F, g, axis, keepdims, shape), shape)
        return g / (reduced_count(shape, axis) or 1)


@public("torch", "method")
@reduction(Mean, "biu")
def mean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over `dim` (an int, several, or all) of floating-point or complex values."""
    if dtype is not None:
        if dtype.kind not in "fc":
            _no_mean("Optional", dtype)
        input = cast(input, dtype)
    array = input._storage.physical
    if array.dtype.kind in "biu":
        _no_mean("Input", input.dtype)
    shape = array.shape
    parameters = {"axis": axes_of(dim, len(shape)), "keepdims": keepdim, "shape": shape}
    result = apply_unary(Mean, input, parameters)
    return result if out is None else delivered("mean", result, out)


def _no_mean(which: str, dtype: DType) -> None:
    raise RuntimeError(
        f"mean(): could not infer output dtype. {which} dtype must be either a floating point or "
        f"complex dtype. Got: {dtype.short_name}"
    )


class Nansum(Op):
    """Sum over axes of what is not NaN."""

    def forward(F, x, *, axis, keepdims, shape):
        return F.sum(F.where(F.isnan(x), 0, x), axis=axis, keepdims=keepdims)

    def backward_x(F, g, x, *, axis, keepdims, shape):
        return F.where(F.isnan(x), 0, restored(F, g, axis, keepdims, shape))


@public("torch", "method")
def nansum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The sum over `dim` with NaN counted as zero."""
    input = with_dtype(input, dtype)
    if input.dtype.kind == "c":
        refuse("nansum_cpu", input.dtype)
    if is_integral(input):
        return sum(input, dim, keepdim, dtype=dtype, out=out)
    shape = input._storage.physical.shape
    result = apply(Nansum, input, axis=axes_of(dim, len(shape)), keepdims=keepdim, shape=shape)
    return delivered("nansum", result, out)


@public("torch", "method")
def nanmean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean over `dim` of what is not NaN."""
    if is_integral(input):
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{input.dtype.short_name}"
        )
    count = sum(input == input, dim, keepdim)
    return delivered("nanmean", nansum(input, dim, keepdim, dtype=dtype) / count, out)


class Prod(Op):
    """Product over one axis, or over all of a flat array."""

    primitive = "prod"
    constant_in = ("x",)  # along an axis of one element

    def forward(F, x, *, axis, keepdims):
        return F.prod(x, axis=axis, keepdims=keepdims)

    def backward_x(F, g, x, *, axis, keepdims):
        if not keepdims:
            g = F.expand_dims(g, axis=axis)
        return F.prod_backward(g, x, axis=axis)


@composite
def prod_backward(F, g, x, *, axis):
    """``gx = g * (the product of all other elements)``, right where elements are zero too."""
    if x.shape[axis] < 2:
        return F.broadcast_to(g, x.shape)
    before = exclusive_product(F, x, axis)
    after = F.flip(exclusive_product(F, F.flip(x, axis=axis), axis), axis=axis)
    return g * conj(F, before * after)


def exclusive_product(F: Any, x: Any, axis: int) -> Any:
    """Per element of `axis`, the product of those before it."""
    head = (slice(None),) * axis
    products = F.cumulative_prod(x, axis=axis)
    first = F.ones_like(products[(*head, slice(0, 1))])
    return F.concat([first, products[(*head, slice(0, -1))]], axis=axis)


@public("torch", "method")
def prod(
    input: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The product over `dim` or of all elements; integers are multiplied as int64."""
    if dtype is None and isinstance(out, Tensor):
        dtype = out.dtype  # as for sums
    if dtype is None and is_integral(input):
        dtype = int64
    input = with_dtype(input, dtype)
    shape = input._storage.physical.shape
    if dim is None or not shape:
        if dim is not None:
            axis_of(dim, 0)
        result = apply(Prod, input.reshape(-1), axis=0, keepdims=False)
        result = result.reshape((1,) * len(shape)) if keepdim else result
    else:
        result = apply(Prod, input, axis=axis_of(dim, len(shape)), keepdims=keepdim)
    return delivered("prod", result, out)


class Any_(Op):
    """Whether any element is true."""

    name = "any"
    primitive = "any"

    def forward(F, x, *, axis, keepdims):
        return F.any(x, axis=axis, keepdims=keepdims)


class All_(Op):
    """Whether all elements are true."""

    name = "all"
    primitive = "all"

    def forward(F, x, *, axis, keepdims):
        return F.all(x, axis=axis, keepdims=keepdims)


@public("torch", "method")
def any(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Whether any element along `dim` (or at all) is not zero: bool, or uint8 for uint8."""
    return _truth(Any_, input, dim, keepdim, out)


@public("torch", "method")
def all(
    input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """Whether all elements along `dim` (or altogether) are not zero: bool, or uint8 for uint8."""
    return _truth(All_, input, dim, keepdim, out)


def _truth(op: type[Op], input: Tensor, dim: Any, keepdim: bool, out: Tensor | None) -> Tensor:
    array = input._storage.array
    axis = () if dim == () else axes_of(dim, array.ndim)
    result = apply(op, input, axis=axis, keepdims=keepdim)
    if array.dtype.kind == "u":
        result = cast(result, uint8)
    return result if out is None else delivered(op.name, result, out)


class HashTensor(Op):
    """The exclusive or of the bits of all elements, widened to 64 bits."""

    def forward(F, x, *, axis, keepdims):
        wide = F.astype(x, F.float64 if x.dtype.kind not in "biu" else F.int64)
        bits = F.bitcast(F.copy(wide), F.int64)
        for one in reversed(axis):
            bits = F.moveaxis(bits, one, 0)
            while bits.shape[0] > 1:
                half = bits.shape[0] // 2
                folded = F.bitwise_xor(bits[:half], bits[half : 2 * half])
                bits = F.concat([folded, bits[2 * half :]], axis=0)
            bits = F.moveaxis(bits, 0, one) if keepdims else bits[0]
        return F.bitcast(F.copy(bits), F.uint64)


@public("torch", "method")
@with_out
def hash_tensor(input: Tensor, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Tensor:
    """The exclusive or over `dim` of the elements' bits as float64 or int64; uint64.

    `mode` is 0. Raises RuntimeError where there is nothing to reduce over `dim`.

    >>> torch.hash_tensor(torch.tensor([1.0, 1.0, 2.0]))
    tensor(4611686018427387904, dtype=torch.uint64)
    """
    if mode != 0:
        raise RuntimeError(f"hash_tensor(): mode must be 0, got {mode}")
    kind = input.dtype
    if kind.kind == "c" or kind is uint64:
        raise NotImplementedError(f"hash_tensor() is not implemented for '{kind.short_name}'")
    shape = input._storage.physical.shape
    axis = axes_of(dim, len(shape))
    if not reduced_count(shape, axis):
        raise (RuntimeError if len(axis) == len(shape) else IndexError)(
            f"hash_tensor(): there are no elements to reduce in shape {list(shape)} over {axis}"
        )
    return apply(HashTensor, input, axis=axis, keepdims=keepdim)


class CountNonzero(Op):
    """How many elements are not zero."""

    def forward(F, x, *, axis):
        return F.count_nonzero(x, axis=axis if len(axis) < x.ndim else None)


@public("torch", "method")
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements along `dim` (an int, several, or all) are not zero, as int64."""
    return apply(CountNonzero, input, axis=axes_of(dim, input._storage.physical.ndim))
