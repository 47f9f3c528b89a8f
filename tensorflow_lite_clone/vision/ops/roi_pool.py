"""RoI pooling: Girshick, Fast R-CNN, 2015."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops._utils import by_picture, pair, rois_of


def _bins(first: float, last: float, count: int, size: int) -> list[slice]:
    """The pixels of each bin of a region from pixel `first` to `last`, both of it."""
    start, end = (math.floor(abs(edge) + 0.5) * (1 if edge >= 0 else -1) for edge in (first, last))
    width = max(end - start + 1, 1) / count

    def inside(edge: int) -> int:
        return min(max(edge + start, 0), size)

    return [
        slice(inside(math.floor(bin * width)), inside(math.ceil((bin + 1) * width)))
        for bin in range(count)
    ]


def _maxima(x: Tensor, bins: list[slice], dim: int) -> Tensor:
    """The largest values of each bin of a dimension; 0 for a bin without pixels."""
    x = x.movedim(dim, 0)
    nothing = x.new_zeros(x.shape[1:])
    return stack([x[b].max(0).values if b.stop > b.start else nothing for b in bins], dim)


def roi_pool(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
) -> Tensor:
    """The regions of maps (N, C, H, W), in a grid of largest values: (K, C, *output_size).

    `boxes` as in `roi_align`; their corners are rounded to pixels. A bin without pixels is 0.
    """
    height, width = pair(output_size)
    rois = rois_of(boxes, input)
    edges = (rois[:, 1:] * spatial_scale).tolist()

    def pool(picture: Tensor, row: Tensor) -> Tensor:
        parts = []
        for index in row.tolist():
            x1, y1, x2, y2 = edges[index]
            columns = _bins(x1, x2, width, picture.shape[2])
            rows = _bins(y1, y2, height, picture.shape[1])
            parts.append(_maxima(_maxima(picture, columns, 2), rows, 1))
        return stack(parts)

    return by_picture(input, rois, pool, (input.shape[1], height, width))


class RoIPool(Stateless):
    """`roi_pool` as a layer."""

    repr_fields = ("output_size", "spatial_scale")

    def __init__(self, output_size: int | Sequence[int], spatial_scale: float) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale

    def forward(self, input: Tensor, rois: Tensor | Sequence[Tensor]) -> Tensor:
        return roi_pool(input, rois, self.output_size, self.spatial_scale)
