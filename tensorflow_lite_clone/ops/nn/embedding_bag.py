"""``embedding_bag``: sums, means and maxima of rows of a table."""

from __future__ import annotations

import math
import warnings

from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._samples import integers, per_sample
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.ops.nn.embedding import embedding
from tensorflow_lite_clone.tensor import Tensor


@public("functional")
@per_sample("input", "offsets")
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool | int = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Rows of `weight` (rows, d) combined per bag of indices, (bags, d).

    Bags are the rows of a 2-D `input`, or the parts of a 1-D one that begin at `offsets`. `mode`:
    sum, mean or max; `per_sample_weights` scale the rows of sums. Indices `padding_idx` do not
    count; empty bags give zeros. With `sparse` (not for max) the gradient is as that of
    `embedding`. Raises ValueError and RuntimeError for what does not fit.
    """
    if weight.dtype is int64 and input.dtype.kind == "f":
        warnings.warn(
            "embedding_bag(weight, input) is deprecated: write embedding_bag(input, weight)",
            stacklevel=level_outside(),
        )
        input, weight = weight, input
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None:
        if per_sample_weights.shape != input.shape:
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not "
                f"None, then it must have the same shape as the input ({list(input.shape)})"
            )
        if mode != "sum":
            raise NotImplementedError(
                "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                f"supported for mode='sum' (got mode='{mode}')."
            )
    if weight.dtype.kind != "f":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: "
            f"Half, BFloat16, Float, Double; but got {weight.dtype.short_name} instead (while "
            "checking arguments for embedding_bag)"
        )
    if max_norm is not None and per_sample_weights is not None and weight.requires_grad:
        per_sample_weights = per_sample_weights.detach()
    starts, flat = _bags(input, offsets, bool(include_last_offset))
    counts = [end - start for start, end in zip(starts, [*starts[1:], flat.shape[0]])]
    if include_last_offset and input.ndim == 1:
        counts = counts[:-1]
    kept = None
    if padding_idx is not None:
        length = weight.shape[0]
        if not -length <= padding_idx < length:
            raise RuntimeError(
                "padding_idx must be within the number of embeddings, "
                f"{-length} through {length - 1}, but got {padding_idx}"
            )
        padding_idx %= length
        kept = [value != padding_idx for value in integers(flat)]
    rows = embedding(flat, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    places = _places(counts, kept)
    if mode == "max":
        return _largest(rows, places)
    bag_of = [bag for bag, members in enumerate(places) for _ in members]
    members = [member for bag in places for member in bag]
    device = weight.device
    chosen = rows if len(members) == rows.shape[0] else rows[tensor(members, device=device).long()]
    zeros = rows.new_zeros((len(places), weight.shape[1]))
    result = zeros.index_add(0, tensor(bag_of, device=device).long(), chosen)
    if mode == "mean":
        sizes = [[float(max(len(bag), 1))] for bag in places]
        result = result / tensor(sizes, dtype=rows.dtype, device=device).reshape(-1, 1)
    return result


def _bags(input: Tensor, offsets: Tensor | None, include_last: bool) -> tuple[list[int], Tensor]:
    """Where each bag starts in the flat input."""
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        return [bag * length for bag in range(bags)], input.reshape(bags * length)
    if input.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    if not isinstance(offsets, Tensor):
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    starts = starts_of(offsets, input.shape[0], include_last)
    if include_last and not starts:
        raise RuntimeError("include_last_offset: number of offsets should be at least 1")
    if starts and starts[0] != 0:
        raise RuntimeError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    if starts and starts[-1] > input.shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length({input.shape[0]}) but got "
            f"offsets[-1] of {starts[-1]}"
        )
    return starts, input


def starts_of(offsets: Tensor, length: int, include_last: bool) -> list[int]:
    """Where each bag starts, and where the last one ends: somewhere, if there are no values."""
    starts: list[int] = integers(offsets)
    if include_last and starts and not offsets._storage.backend.has_values:
        starts[-1] = length
    return starts


def _places(counts: list[int], kept: list[bool] | None) -> list[list[int]]:
    """Per bag the positions that count."""
    places, start = [], 0
    for count in counts:
        members = range(start, start + count)
        places.append([i for i in members if kept is None or kept[i]])
        start += count
    return places


def _largest(rows: Tensor, places: list[list[int]]) -> Tensor:
    """The maxima of each bag's rows; zeros for empty bags."""
    width = max(map(len, places), default=0)
    if not width:
        return rows.new_zeros((len(places), rows.shape[1])) + rows.sum() * 0
    table = [[*members, *[-1] * (width - len(members))] for members in places]
    index = tensor(table, device=rows.device)
    missing = (index < 0).unsqueeze(-1)
    looked = rows[index.clamp(0)].masked_fill(missing, -math.inf)
    best = looked.max(1).values
    empty = missing[:, 0] if width else missing
    return best.masked_fill(empty, 0.0)
