"""Writes along a dimension: scatter and index_* with their in-place forms."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.autograd.inplace import apply_inplace, copy_beside
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.strides import contiguous_format, preserve_format
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.index._indexing import (
    IndexAdd,
    IndexPut,
    Scatter,
    ScatterAdd,
    ScatterReduce,
)
from tensorflow_lite_clone.ops.index.gather import (
    _fill_value,
    as_line,
    checked,
    expect_index,
    leading,
    masked_fill_,
)
from tensorflow_lite_clone.ops.shape.views import reshape
from tensorflow_lite_clone.tensor import Tensor

_MODES = ("sum", "prod", "mean", "amax", "amin")


def _line_of(x: Tensor) -> Tensor:
    """`x` as something with dimensions, in the same memory."""
    return x if x._storage.physical.ndim else x.view(1)


def _expect_source(name: str, source: Any) -> None:
    if source is not None and not isinstance(source, Tensor):
        raise TypeError(f"{name}(): argument 'source' must be Tensor, not {type(source).__name__}")


def _nothing_written(input: Tensor, source: Any = None) -> Tensor:
    """A write of no elements counts as one, and has a gradient, which is zero."""
    if isinstance(source, Tensor) and source.requires_grad:
        return input.add_(source.reshape(-1)[:0].sum())
    input._storage.bump()
    return input


def _scatter_operands(
    name: str, target: Tensor, dim: int, index: Any, src: Tensor | None, check: bool = True
) -> tuple[Any, Tensor, Any, int]:
    """Target, index and source of a scatter, checked, with dimensions, cut to the index.

    Without `check` what is in the index is left to the op.
    """
    _expect_source(name, src)
    axis = normalize_dim(dim, target.ndim)
    expect_index(name, index)
    if src is not None and src.dtype is not target.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index.numel() and max(index.ndim, 1) != max(target.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if src is not None and index.numel() and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    x, index = _line_of(target), as_line(index)
    if not index.numel():
        return x, index, src, axis
    shape, places = x._storage.physical.shape, index._storage.physical.shape
    fits = all([n <= m or d == axis for d, (n, m) in enumerate(zip(places, shape))])
    if src is not None:
        src = as_line(src)
        src_shape = src._storage.physical.shape
        if not fits or any([n > m for n, m in zip(places, src_shape)]):
            raise RuntimeError(
                f"Expected index {list(places)} to be no larger than self {list(shape)} apart from "
                f"dimension {dim} and to be no larger size than src {list(src_shape)}"
            )
        src = leading(src, places)
    elif not fits:
        raise RuntimeError(
            f"Expected index {list(places)} to be no larger than self {list(shape)} apart from "
            f"dimension {dim}"
        )
    if check:
        checked(index, shape[axis], axis)
    return x, index, src, axis


@public("method")
def scatter_(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Write `src` (a tensor no smaller than `index`) or one number at ``index`` along `dim`:
    ``input[i, index[i, j]] = src[i, j]`` for `dim` 1, and so on; `reduce`: "add", "multiply"."""
    source = value if src is None else src
    if source is None:
        raise TypeError("scatter_() missing a required argument: 'src' or 'value'")
    if reduce is not None and reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(source, Tensor) or (src is None and not source.ndim):
        number = _fill_value("scatter_", input, source)
        x, index, _, axis = _scatter_operands("scatter", input, dim, index, None)
        source = number
    else:
        if reduce is not None:
            warnings.warn(
                "The reduce argument of torch.scatter with Tensor src is deprecated. Use "
                "torch.scatter_reduce instead for more reduction options.",
                stacklevel=level_outside(),
            )
        x, index, source, axis = _scatter_operands("scatter", input, dim, index, source)
    if not index.numel():
        return _nothing_written(input, source)
    if reduce is None:
        apply_inplace(Scatter, x, index, source, axis=axis)
    else:
        how = "sum" if reduce == "add" else "prod"
        source = source.expand(index.shape) if not source.ndim else source
        apply_inplace(ScatterReduce, x, index, source, axis=axis, how=how, include_self=True)
    return input


@public("method")
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Add `src` at ``index`` along `dim`: ``input[i, index[i, j]] += src[i, j]`` for `dim` 1."""
    x, index, src, axis = _scatter_operands("scatter_add", input, dim, index, src)
    if not index.numel():
        return _nothing_written(input, src)
    apply_inplace(ScatterAdd, x, index, src, axis=axis)
    return input


@public("torch", "method")
@with_out
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Out-of-place form of `scatter_add_`."""
    if any([isinstance(x, Tensor) and x._storage.backend.batched for x in (input, index, src)]):
        return scatter_add_(copy_beside(input, index, src), dim, index, src)
    x, index, src, axis = _scatter_operands("scatter_add", input, dim, index, src, check=False)
    if not index.numel():
        return _nothing_written(input.clone(memory_format=contiguous_format), src)
    try:
        result = apply(ScatterAdd, x, index, src, axis=axis, checks=True)
    except IndexError as reason:
        raise RuntimeError(str(reason)) from None
    return result if input.ndim else reshape(result, ())


@public("method")
def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Combine what goes to one place by "sum", "prod", "mean", "amax" or "amin"; see `scatter_`.

    Without `include_self` the old values take no part where something arrives.
    """
    if reduce not in _MODES:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    x, index, src, axis = _scatter_operands("scatter_reduce", input, dim, index, src)
    if not index.numel():
        return _nothing_written(input, src)
    options = {"axis": axis, "how": reduce, "include_self": include_self}
    apply_inplace(ScatterReduce, x, index, src, **options)
    return input


def _index_operands(name: str, input: Tensor, dim: int, index: Any) -> tuple[Tensor, Tensor, int]:
    axis = normalize_dim(dim, input.ndim)
    expect_index(name, index, "int32/int64")
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index should have dimension 1 or 0 (got {index.ndim})")
    return _line_of(input), as_line(index), axis


def _check_slices(name: str, x: Tensor, source: Tensor, axis: int) -> None:
    have, want = list(source.shape), list(x.shape)
    if len(have) != len(want) or have[:axis] + have[axis + 1 :] != want[:axis] + want[axis + 1 :]:
        raise RuntimeError(
            f"{name}: source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {want} source.shape = {have}"
        )


@public("method")
def index_add_(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    """Add the slices of `source`, times `alpha`, to those number `index` along `dim`."""
    _expect_source("index_add_", source)
    x, index, axis = _index_operands("index_add_", input, dim, index)
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"index_add_(): self ({input.dtype.short_name}) and source "
            f"({source.dtype.short_name}) must have the same scalar type"
        )
    if source.ndim != input.ndim:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(input.shape)} source.shape = {list(source.shape)}"
        )
    source = as_line(source)
    if index.numel() != source.shape[axis]:
        raise RuntimeError(
            f"index_add_(): Number of indices ({index.numel()}) should be equal to "
            f"source.size(dim): ({source.shape[axis]}), for dim: {dim}"
        )
    _check_slices("index_add_()", x, source, axis)
    if not source.numel() or (x.ndim > 1 and not x.numel()):
        return _nothing_written(input, source)
    checked(index, x.shape[axis], axis, RuntimeError if x.ndim > 1 else IndexError)
    apply_inplace(IndexAdd, x, index, source if alpha == 1 else source * alpha, axis=axis)
    return input


@public("method")
def index_copy_(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Write the slices of `source` over those number `index` along `dim`."""
    _expect_source("index_copy_", source)
    x, index, axis = _index_operands("index_copy_", input, dim, index)
    if not source.ndim and index.numel() != 1:
        raise IndexError(
            "index_copy_(): When source is scalar, index should have one element (got "
            f"{index.numel()})"
        )
    if source.ndim != x.ndim and source.ndim and input.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({source.ndim}), destination dimensionality ({x.ndim})"
        )
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{input.dtype.short_name} and (source) {source.dtype.short_name}"
        )
    source = as_line(source)
    if source.ndim == x.ndim and index.numel() != source.shape[axis]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to "
            f"source.size(dim) ({source.shape[axis]})"
        )
    _check_slices("index_copy_()", x, source, axis)
    if not source.numel():
        return _nothing_written(input, source)
    checked(index, x.shape[axis], axis, IndexError)
    _put_slices(x, index, source, axis)
    return input


def _put_slices(x: Tensor, index: Tensor, source: Tensor, axis: int) -> None:
    line = reshape(index, (1, index.numel()))
    apply_inplace(IndexPut, x, line, source, places=(axis,), accumulate=False)


@public("method")
def index_fill_(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Write one number into the slices number `index` along `dim`."""
    x, index, axis = _index_operands("index_fill_", input, dim, index)
    source = _fill_value("index_fill_", input, value)
    backend, places = index._storage.backend, index._storage.array
    F, length = backend.F, x.shape[axis]
    if not x.numel():
        others = prod(x.shape[:axis]) * prod(x.shape[axis + 1 :])
        if not length and others and index.numel():
            raise RuntimeError(f"index is out of bounds for dimension {axis} with size 0")
        return _nothing_written(input, value)
    F.check_index(places, length, axis, negative=True)
    if isinstance(value, Tensor):  # its gradient counts every slice once
        places = F.where(F.less(places, 0), F.add(places, length), places)
        if not backend.has_values:  # each may be written
            places = F.arange(length)
        elif backend.batched:  # how many slices are written differs from sample to sample
            hit = F.any(F.equal(F.expand_dims(places, axis=1), F.arange(length)), axis=0)
            hit = F.reshape(hit, tuple([length if d == axis else 1 for d in range(x.ndim)]))
            masked_fill_(x, wrap(hit, backend), value)
            return input
        else:
            places = F.unique_values(places)
    _put_slices(x, wrap(places, backend), source, axis)
    return input


@public("method")
def index_reduce_(
    input: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
) -> Tensor:
    """Combine the slices of `source` with those number `index` along `dim` by "prod", "mean",
    "amax" or "amin"; see `scatter_reduce_`."""
    if reduce not in _MODES[1:]:
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    _expect_source("index_reduce_", source)
    x, index, axis = _index_operands("index_reduce_", input, dim, index)
    source = as_line(source)
    _check_slices("index_reduce_()", x, source, axis)
    backend = index._storage.backend
    shape = source._storage.physical.shape
    line = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
    F = backend.F
    places = wrap(F.broadcast_to(F.reshape(index._storage.array, line), shape), backend)
    scatter_reduce_(x, axis, places, source, reduce, include_self=include_self)
    return input


def _out_of_place(name: str, function_: Any, memory_format: Any = contiguous_format) -> None:
    def function(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        copy = copy_beside(input, *args, *kwargs.values(), memory_format=memory_format)
        return function_(copy, *args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Out-of-place form of `{name}_`."
    takes_out = name != "index_fill"  # in PyTorch neither
    public("torch", "method")(with_out(function) if takes_out else function)


for _name, _function in {
    "scatter": scatter_,
    "scatter_reduce": scatter_reduce_,
    "index_add": index_add_,
    "index_copy": index_copy_,
    "index_reduce": index_reduce_,
}.items():
    _out_of_place(_name, _function)
_out_of_place("index_fill", index_fill_, preserve_format)
