"""Histograms of one and of several dimensions, with their edges."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32, float64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.signature import is_int
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops._samples import expect_values, per_sample
from tensorflow_lite_clone.ops.create.progressions import linspace
from tensorflow_lite_clone.ops.index.sort import searchsorted
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

Histogram = result_type("histogram", "hist", "bin_edges")
HistogramDD = result_type("histogramdd", "hist", "bin_edges")


@public("torch", "method")
@per_sample()
def histogram(
    input: Tensor,
    bins: Any = 100,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> Any:
    """Counts, or sums of `weight`, in bins of all elements, and the bins' edges.

    `bins` are so many equal parts of `range` (by default from the smallest to the largest
    element), or a tensor of edges. The last bin holds its upper edge. `density` divides by the sum
    and the bins' lengths. Takes float32 and float64; raises RuntimeError for bins, ranges and
    weights that do not fit. There is no gradient.
    """
    if not isinstance(bins, (int, Tensor)) or (isinstance(bins, Tensor) and range is not None):
        raise TypeError(
            "histogram() received an invalid combination of arguments: bins is a number, with or "
            "without a range, or a tensor"
        )
    points = input.detach().reshape(-1, 1)
    weights = None if weight is None else weight.reshape(-1)
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(_wrong_weight(points, weight))
    hist, edges = _binned(points, [bins], range, weights, density)
    return delivered("histogram", Histogram((hist, edges[0])), out)


@public("torch")
@per_sample()
def histogramdd(
    input: Tensor,
    bins: Any,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """Counts, or sums of `weight`, of points (..., d) in a grid of bins, and the edges of each
    dimension.

    `bins` is a number, one for each dimension, or a tensor of edges for each; `range` has a lower
    and an upper limit for each. See `histogram`.
    """
    if isinstance(bins, Tensor) and not is_int(bins):
        raise TypeError(
            "histogramdd() received an invalid combination of arguments: bins is a number, a list "
            "of numbers, or a list of tensors"
        )
    if not input.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    size = input.shape[-1]
    bins = [bins.__index__()] * size if is_int(bins) else _bins_of(bins)
    if len(bins) != size:
        if bins and isinstance(bins[0], Tensor):
            raise RuntimeError(
                f"torch.histogramdd: expected {size} sequences of bin edges for a "
                f"{size}-dimensional histogram but got {len(bins)}"
            )
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input."
        )
    if input.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if weight is not None and weight.shape != input.shape[:-1]:
        raise RuntimeError(_wrong_weight(input, weight))
    weights = None if weight is None else weight.reshape(-1)
    hist, edges = _binned(input.detach().reshape(-1, size), bins, range, weights, density)
    return HistogramDD((hist, tuple(edges)))


def _bins_of(bins: Any) -> list[Any]:
    """Numbers of bins, or edges, for each dimension; TypeError where some are of another kind."""
    bins = list(bins)
    if all([is_int(value) for value in bins]):
        return [value.__index__() for value in bins]
    for position, value in enumerate(bins):
        if not isinstance(value, Tensor):
            raise TypeError(
                f"histogramdd(): expected Tensor as element {position} of bins, but got "
                f"{type(value).__name__}"
            )
    return bins


def _wrong_weight(input: Tensor, weight: Tensor) -> str:
    return (
        "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
        "input tensor excluding its innermost dimension, but got input with shape "
        f"{list(input.shape)} and weight with shape {list(weight.shape)}"
    )


def _binned(
    points: Tensor, bins: list[Any], limits: Any, weights: Tensor | None, density: bool
) -> tuple[Tensor, list[Tensor]]:
    """The histogram of (n, d) points and its edges."""
    kind = points.dtype
    if kind not in (float32, float64):
        refuse("histogramdd", kind)
    if weights is not None and weights.dtype is not kind:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got input({kind.short_name.lower()}), and "
            f"weight({weights.dtype.short_name.lower()})"
        )
    size = len(bins)
    if limits is not None and len(limits) != 2 * size:
        raise RuntimeError(
            f"torch.histogramdd: for a {size}-dimensional histogram range should have {2 * size} "
            f"elements, but got {len(limits)}"
        )
    expect_values("histogram" if size == 1 else "_histogramdd", points)
    edges = [
        _edges(points, number, bins[number], limits and limits[2 * number : 2 * number + 2])
        for number in range(size)
    ]
    flat, inside = None, None
    for number, ends in enumerate(edges):
        values = points[:, number].contiguous()
        count = len(ends) - 1
        place = searchsorted(ends, values, right=True) - 1
        place = place.masked_fill(values == ends[-1], count - 1)
        within = (values >= ends[0]) & (values <= ends[-1])
        flat = place if flat is None else flat * count + place
        inside = within if inside is None else inside & within
    assert flat is not None and inside is not None
    shape = [len(ends) - 1 for ends in edges]
    weights = points.new_ones(len(points)) if weights is None else weights.detach()
    hist = points.new_zeros(math.prod(shape)).index_add(0, flat[inside], weights[inside])
    hist = hist.reshape(shape)
    if density:
        hist = hist / hist.sum()
        for number, ends in enumerate(edges):
            lengths = ends[1:] - ends[:-1]
            hist = hist / lengths.reshape([-1 if i == number else 1 for i in range(size)])
    return hist, edges


def _edges(points: Tensor, number: int, bins: Any, limits: Any) -> Tensor:
    """The edges of a dimension's bins."""
    if isinstance(bins, Tensor):
        if bins.ndim != 1:
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have one dimension, but got "
                f"{bins.ndim} dimensions in the bins tensor for dimension {number}"
            )
        if not len(bins):
            raise RuntimeError(
                "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements "
                f"in the bins tensor for dimension {number}"
            )
        if bins.dtype is not points.dtype:
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but "
                f"got input with dtype {points.dtype.short_name.lower()} and bins for dimension "
                f"{number} with dtype {bins.dtype.short_name.lower()}"
            )
    count = len(bins) - 1 if isinstance(bins, Tensor) else bins
    if count <= 0:
        raise RuntimeError(
            f"torch.histogram(): bins must be > 0, but got {count} for dimension {number}"
        )
    if isinstance(bins, Tensor):
        return bins.detach().clone()
    low, high = 0.0, 1.0
    if limits is not None:
        low, high = float(limits[0]), float(limits[1])
    elif len(points):
        values = points[:, number]
        low, high = float(values.min()), float(values.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(
            f"torch.histogramdd: dimension {number}'s range [{low:g}, {high:g}] is not finite"
        )
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for "
            f"dimension {number}"
        )
    if low == high:
        low, high = low - 0.5, high + 0.5
    return linspace(low, high, count + 1, dtype=points.dtype, device=points.device)
