"""Reads and writes at index tensors: gather, scatter, index_*, masked_*, take, put, nonzero."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_view, wrap
from tensorflow_lite_clone.autograd.inplace import apply_inplace, check_writable, copy_beside
from tensorflow_lite_clone.core.determinism import expect_any_order
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import broadcast_shapes, contiguous_strides, normalize_dim
from tensorflow_lite_clone.core.strides import contiguous_format
from tensorflow_lite_clone.ops._samples import expect_values, per_sample
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.index._index_tensors import stacked
from tensorflow_lite_clone.ops.index._indexing import (
    Gather,
    GatherSparse,
    Index,
    IndexMask,
    IndexPut,
    IndexSelect,
    MaskedFill,
    MaskPut,
)
from tensorflow_lite_clone.ops.index.assign import held_value
from tensorflow_lite_clone.ops.index.getitem import expect_dtype, put_at
from tensorflow_lite_clone.ops.pointwise._operands import as_number, cast
from tensorflow_lite_clone.ops.shape._views import number_of
from tensorflow_lite_clone.ops.shape.slices import Slice, unbind
from tensorflow_lite_clone.ops.shape.views import expand, reshape, transpose
from tensorflow_lite_clone.tensor import Tensor


def as_line(x: Tensor) -> Tensor:
    """`x` itself, as one-dimensional if it is zero-dim."""
    return x if x._storage.physical.ndim else reshape(x, (1,))


def expect_index(name: str, index: Tensor, words: str = "int32/int64") -> None:
    """Raise torch's error unless `index` is of int64 or int32.

    For gathering and scattering one without elements may be of any dtype.
    """
    if name.startswith(("gather", "scatter")) and not index._storage.physical.size:
        return
    if index.dtype.name not in ("int64", "int32"):
        raise RuntimeError(f"{name}(): Expected dtype {words} for index")


def checked(index: Tensor, size: int, dim: int, error: type[Exception] = RuntimeError) -> None:
    """Raise `error` when an index is negative or too large."""
    storage = index._storage
    try:
        storage.backend.F.check_index(storage.array, size, dim)
    except IndexError as reason:
        raise error(str(reason)) from None


def leading(x: Tensor, shape: tuple, skipped: int = -1) -> Tensor:
    """The part of `x` that `shape` covers, all of it along the dimension `skipped`."""
    have = x._storage.physical.shape
    if all([n == m or dim == skipped for dim, (n, m) in enumerate(zip(have, shape))]):
        return x
    index = tuple([slice(None if dim == skipped else n) for dim, n in enumerate(shape)])
    return apply_view(Slice, x, index=index, shape=have)


@public("torch", "method")
@with_out
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """``out[i, j] = input[i, index[i, j]]`` for `dim` 1, and so on.

    `index` (int64 or int32) has as many dimensions as `input` and is nowhere larger but along
    `dim`; the result has its shape. With `sparse_grad` the gradient is a sparse tensor with an
    element for each of the result.
    """
    expect_index("gather", index)
    axis = normalize_dim(dim, input.ndim)
    places = index._storage.physical.shape
    if index._storage.physical.size == 0:
        return _nothing(input, places)
    if max(len(places), 1) != max(input.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    x, index = as_line(input), as_line(index)
    shape = x._storage.physical.shape
    for other, (n, m) in enumerate(zip(index._storage.physical.shape, shape)):
        if n > m and other != axis:
            raise RuntimeError(
                f"Size does not match at dimension {other} expected index {list(places)} to be no "
                f"larger than self {list(input.shape)} apart from dimension {dim}"
            )
    try:
        op = GatherSparse if sparse_grad else Gather
        result = apply(op, x, index, axis=axis, shape=shape, checks=True)
    except IndexError as reason:
        raise RuntimeError(str(reason)) from None
    return result if result.ndim == len(places) else reshape(result, places)


def _nothing(x: Tensor, shape: tuple) -> Tensor:
    """An empty tensor that depends on `x`."""
    return reshape(reshape(x, (-1,))[:0], shape)


@public("torch", "method")
@with_out
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As `gather`, indices modulo the size, and broadcasting; without `dim` of the flat tensor.

    Of the flat tensor the indices are not taken modulo its size.
    """
    if indices.dtype.name != "int64":
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype.short_name}"
        )
    if dim is None:
        return gather(input.view(-1), 0, indices.view(-1))
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    axis = normalize_dim(dim, input.ndim)
    have, want = list(input.shape), list(indices.shape)
    size, have[axis] = have[axis], want[axis]
    common = list(broadcast_shapes(have, want))
    indices = expand(indices, tuple(common))
    if size:  # as in PyTorch what is out of range begins anew
        indices = indices.remainder(size)
    common[axis] = size
    return gather(expand(input, tuple(common)), axis, indices)


@public("torch", "method")
@with_out
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """The slices of `input` number `index` (one-dimensional, int64 or int32) along `dim`."""
    x = as_line(input)
    shape = x._storage.physical.shape
    axis = normalize_dim(dim, input.ndim)
    if index.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    expect_index("index_select", index, "int32 or int64")
    line = as_line(index)
    storage = line._storage
    if not shape[axis] and line.numel() and len(shape) > 1:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    try:
        storage.backend.F.check_index(storage.array, shape[axis], axis)
    except IndexError:
        raise IndexError("index out of range in self") from None
    result = apply(IndexSelect, x, line, axis=axis, shape=shape)
    return result if input.ndim else reshape(result, ())


@public("torch", "method")
@with_out
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements number `index` (int64, negative ones from the end) of the flat tensor."""
    if index.dtype is not int64:
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {index.dtype.short_name}"
        )
    flat = reshape(input, (-1,))
    size = flat._storage.physical.size
    if not size and index._storage.physical.size:
        raise IndexError("take(): tried to take from an empty tensor")
    _check_flat(index, size)
    line = reshape(index, (1, *index.shape))
    return apply(Index, flat, line, places=(0,), shape=(size,))


def _check_flat(index: Tensor, size: int) -> None:
    storage = index._storage
    try:
        storage.backend.F.check_index(storage.array, size, 0, negative=True)
    except IndexError as reason:
        place = str(reason).split()[1]
        raise IndexError(
            f"out of range: tried to access index {place} on a tensor of {size} elements."
        ) from None


@public("method")
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Write (or add) the elements of `source` at the places `index` of the flat tensor."""
    if not accumulate:
        expect_any_order("put_")
    if index.dtype is not int64:
        raise RuntimeError(
            f"put_(): Expected a long tensor for index, but got {index.dtype.short_name}"
        )
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{self.dtype.short_name} and source.dtype = {source.dtype.short_name}"
        )
    if index.numel() != source.numel():
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.numel()}, index.numel() = {index.numel()}"
        )
    shape = self._storage.physical.shape
    _check_flat(index, self.numel())
    if not index.numel():
        return self
    backend = index._storage.backend
    F, flat = backend.F, index._storage.array
    flat = F.reshape(F.where(F.less(flat, 0), F.add(flat, self.numel()), flat), (-1,))
    if not shape:
        put_(self.view(1), index, source, accumulate)
        return self
    rows = [
        F.remainder(F.floor_divide(flat, step), size)
        for step, size in zip(contiguous_strides(shape), shape)
    ]
    places = wrap(F.stack(rows, axis=0), backend)
    return apply_inplace(
        IndexPut,
        self,
        places,
        reshape(source, (-1,)),
        places=tuple(range(len(shape))),
        accumulate=accumulate,
    )


@public("torch", "method")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Out-of-place form of `put_`."""
    return put_(copy_beside(input, index, source), index, source, accumulate)


@public("torch", "method", names=("index_put_",))
def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write (or add) `values` at index tensors or masks `indices`, one per leading dimension."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(
            "index_put_(): argument 'indices' (position 1) must be tuple of Tensors, not "
            f"{type(indices).__name__}"
        )
    shape = self._storage.physical.shape
    extra = []
    place = 0
    for number, index in enumerate(indices):
        if not isinstance(index, Tensor):
            raise TypeError(
                f"expected Tensor as element {number} in argument 0, but got {type(index).__name__}"
            )
        span = index.ndim if index.dtype.kind in "bu" else 1
        if place + span > len(shape):
            raise IndexError(
                f"too many indices for tensor of dimension {len(shape)} (got {place + span})"
            )
        extra.append((place, index))
        place += span
    index, places = stacked(self, extra, writes=True)
    if values.numel() == 1 and len(extra) == 1 and extra[0][1].dtype.kind == "b" and not accumulate:
        values = cast(values, self.dtype)  # one number where a mask is true has any dtype
    expect_dtype(self, values)
    return put_at(self, index, values, places, accumulate)


@public("torch", "method")
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Out-of-place form of `index_put_`."""
    return index_put_(copy_beside(input, indices, values), indices, values, accumulate)


def _fill_value(name: str, like: Tensor, value: Any) -> Tensor:
    """A number or zero-dim tensor as a tensor of `like`'s dtype."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"{name} only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        if value.dtype.kind == "c" and like.dtype.kind != "c":
            raise RuntimeError(
                f"{name}(): value of {value.dtype.short_name} cannot be converted to "
                f"{like.dtype.short_name} without overflow"
            )
        return cast(value, like.dtype)
    number = as_number(value)
    if number is None:
        raise TypeError(f"{name}(): argument 'value' must be Number, not {type(value).__name__}")
    return held_value(like, number)


def _check_mask(name: str, mask: Tensor) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"{name} only supports boolean masks, but got mask with dtype {mask.dtype.short_name}"
        )


@public("torch", "method")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy of `input` with one `value` wherever `mask`, broadcast, is true."""
    shape = input._storage.physical.shape
    _check_mask("masked_fill_", mask)
    source = _fill_value("masked_fill_", input, value)
    x = input
    if mask._storage.physical.shape != shape:
        common = broadcast_shapes(shape, mask._storage.physical.shape)
        x = input if common == shape else expand(input, common)
    return apply(MaskedFill, x, mask, source)


@public("method")
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Write one `value` wherever `mask`, broadcast, is true."""
    _check_mask("masked_fill_", mask)
    source = _fill_value("masked_fill_", self, value)
    _check_broadcast(self, mask)
    return apply_inplace(MaskedFill, self, mask, source)


def _check_broadcast(target: Tensor, mask: Tensor) -> None:
    shape = target._storage.physical.shape
    common = broadcast_shapes(shape, mask._storage.physical.shape)
    if common != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}"
        )


@public("torch", "method")
@with_out
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where `mask` is true, in one dimension; both are broadcast."""
    shape = input._storage.physical.shape
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    common = broadcast_shapes(mask._storage.physical.shape, shape) or (1,)
    expect_values("masked_select", input)
    x, mask = expand(input, common), expand(mask, common)
    return apply(IndexMask, x, mask, shape=common)


@public("method")
def masked_scatter_(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the elements of `source`, in order, to where `mask`, broadcast, is true."""
    check_writable(self._storage.array)
    _check_mask("masked_scatter_", mask)
    if source.dtype is not self.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{self.dtype.short_name} and {source.dtype.short_name}"
        )
    _check_broadcast(self, mask)
    shape = self._storage.physical.shape
    mask = expand(mask, shape)
    storage = mask._storage
    backend = storage.backend  # where there are no values the mask is taken to find nothing
    count = number_of(backend.F.sum(storage.array), backend) if backend.has_values else 0
    if source.numel() < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    return apply_inplace(MaskPut, self, mask, leading(reshape(source, (-1,)), (count,)))


@public("torch", "method")
@per_sample("mask", "source")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Out-of-place form of `masked_scatter_`; `input` and `mask` are broadcast."""
    common = broadcast_shapes(input._storage.physical.shape, mask._storage.physical.shape)
    return masked_scatter_(
        expand(input, common).clone(memory_format=contiguous_format), mask, source
    )


@public("torch", "method")
@with_out
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Where the elements are not zero: one row of indices each, or a vector per dimension."""
    storage = input._storage
    if as_tuple:
        return unbind(nonzero(as_line(input)), 1)
    expect_values("nonzero", input)
    F, array = storage.backend.F, storage.array
    if not array.ndim:
        count = 1 if number_of(array, storage.backend) else 0
        return wrap(F.zeros((count, 0), dtype=F.int64), storage.backend)
    found = wrap(F.stack([F.astype(line, F.int64) for line in F.nonzero(array)]), storage.backend)
    return wrap(transpose(found, 0, 1)._storage.array, storage.backend)


@public("torch", "method")
@per_sample()
def argwhere(input: Tensor) -> Tensor:
    """Where the elements are not zero, a row of indices each."""
    return nonzero(input)
