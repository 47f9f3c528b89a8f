"""Reductions of consecutive parts of an axis, and indices of a known number."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._samples import holds, per_sample
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.index.gather import nonzero
from tensorflow_lite_clone.ops.index.sort import searchsorted
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.tensor import Tensor

#: Reduction -> what `scatter_reduce` calls it, and what an empty segment gives.
_REDUCTIONS = {
    "sum": ("sum", 0.0),
    "mean": ("sum", 0.0),
    "prod": ("prod", 1.0),
    "max": ("amax", -math.inf),
    "amax": ("amax", -math.inf),
    "min": ("amin", math.inf),
    "amin": ("amin", math.inf),
}


@public("torch", names=("segment_reduce", "_segment_reduce"))
def segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Tensor:
    """ "sum", "mean", "prod", "amax" or "amin" of each of the consecutive segments of an axis.

    `lengths` (..., segments) has the segments' lengths, whose sum is the axis's length unless
    `unsafe`, or `offsets` (..., segments + 1) their limits; the dimensions before `axis` are
    `data`'s. Segments begin with `initial`; empty ones are that, or 0, NaN, 1, -inf and inf.
    Raises RuntimeError for what does not fit, NotImplementedError unless `data` is floating.
    """
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None:
        if offsets is None:
            raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
        lengths = offsets[..., 1:] - offsets[..., :-1]
    if lengths.dtype.kind not in "iu":
        raise NotImplementedError(f"segments of {lengths.dtype} lengths are not implemented")
    if data.dtype.kind != "f":
        refuse("_segment_reduce_cpu", data.dtype)
    if data.ndim < lengths.ndim:
        raise RuntimeError("Expected data.dim() >= lengths_value.dim() to be true, but got false.")
    place = axis + data.ndim if axis < 0 else axis
    if place != lengths.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of lengths but got {place}."
        )
    _check_lengths(data, lengths, place, unsafe or offsets is not None)
    return _reduced(stepwise(data), reduce, lengths, place, initial)


def _check_lengths(data: Tensor, lengths: Tensor, axis: int, unsafe: bool) -> None:
    if lengths.shape[:-1] != data.shape[:axis]:
        raise RuntimeError(
            f"segment_reduce(): lengths of shape {list(lengths.shape)} do not belong to data of "
            f"shape {list(data.shape)}"
        )
    if lengths.numel() and not holds(lengths >= 0):
        raise RuntimeError("lengths contains negative value!")
    if not unsafe and not holds(lengths.sum(-1) == data.shape[axis]):
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            "data.size(lengths.dim()-1) when !unsafe."
        )


def _reduced(data: Tensor, reduce: str, lengths: Tensor, axis: int, initial: Any) -> Tensor:
    how, start = _REDUCTIONS[reduce]
    count, size = lengths.shape[-1], data.shape[axis]
    ends = lengths.cumsum(-1)
    steps = arange(size, device=data.device).expand(*lengths.shape[:-1], size)
    # What lies behind the last segment goes into one more, which is cut off.
    segment = searchsorted(ends.contiguous(), steps.contiguous(), right=True)
    trailing = (1,) * (data.ndim - axis - 1)
    index = segment.reshape(*segment.shape, *trailing).expand(data.shape)
    shape = (*data.shape[:axis], count + 1, *data.shape[axis + 1 :])
    begin = data.new_full(shape, start if initial is None else initial)
    sizes = lengths.reshape(*lengths.shape, *trailing)
    own = initial is not None
    if not own:  # what only empty segments have ties with no element of others
        begin.narrow(axis, 0, count).masked_fill_(sizes > 0, math.nan)
    result = begin.scatter_reduce(axis, index, data, how, include_self=own)
    result = result.narrow(axis, 0, count).contiguous()
    if reduce != "mean":
        return result
    means = result / sizes.to(data.dtype).clamp_min(1)
    return means if initial is not None else means.masked_fill(sizes == 0, math.nan)


@public("torch", "method")
@per_sample()
@with_out
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` rows of `nonzero`, filled up with `fill_value`: (size, dimensions)."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if not input._storage.backend.has_values:
        return input.new_empty((size, input.ndim), dtype=int64)
    found = nonzero(input)
    result = found.new_full((size, input.ndim), fill_value)
    result[: len(found)] = found[:size]
    return result
