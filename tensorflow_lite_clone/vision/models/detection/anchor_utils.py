"""Boxes laid out over the maps, from which the detectors' predictions start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import DType, float32, int32
from tensorflow_lite_clone.ops.checks import _assert
from tensorflow_lite_clone.ops.create.constructors import as_tensor
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.shape.join import cat, meshgrid, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models.detection.image_list import ImageList


def grid(rows: Tensor, columns: Tensor) -> Tensor:
    """The points (x, y) of a grid, row by row: (len(rows) * len(columns), 2)."""
    y, x = meshgrid(rows, columns, indexing="ij")
    return stack([x, y], dim=-1).reshape(-1, 2)


class AnchorGenerator(nn.Module):
    """At each position of each map, boxes of several sizes and ratios (height / width).

    `sizes` and `aspect_ratios` have a tuple for each map; the boxes of a position have all pairs
    of them. Called with an `ImageList` and the maps (N, C, H_i, W_i), it returns boxes (L, 4) for
    each picture, in the coordinates of the padded pictures. AssertionError for another number of
    maps. Source: Ren et al., Faster R-CNN, 2015.
    """

    def __init__(
        self,
        sizes: Sequence[Any] = ((128, 256, 512),),
        aspect_ratios: Sequence[Any] = ((0.5, 1.0, 2.0),),
    ) -> None:
        super().__init__()
        if not isinstance(sizes[0], list | tuple):
            sizes = tuple((size,) for size in sizes)
        if not isinstance(aspect_ratios[0], list | tuple):
            aspect_ratios = (aspect_ratios,) * len(sizes)
        self.sizes = sizes
        self.aspect_ratios = aspect_ratios
        self.cell_anchors = [self.generate_anchors(*pair) for pair in zip(sizes, aspect_ratios)]

    def generate_anchors(
        self,
        scales: Sequence[int],
        aspect_ratios: Sequence[float],
        dtype: DType = float32,
        device: Any = "cpu",
    ) -> Tensor:
        """The boxes of one position around (0, 0), rounded to whole pixels."""
        roots = as_tensor(aspect_ratios, dtype=dtype, device=device).sqrt()[:, None]
        sides = as_tensor(scales, dtype=dtype, device=device)
        half = stack([(1 / roots * sides).flatten(), (roots * sides).flatten()], dim=1) / 2
        return cat([-half, half], dim=1).round()

    def set_cell_anchors(self, dtype: DType, device: Any) -> None:
        self.cell_anchors = [boxes.to(dtype=dtype, device=device) for boxes in self.cell_anchors]

    def num_anchors_per_location(self) -> list[int]:
        return [len(sizes) * len(ratios) for sizes, ratios in zip(self.sizes, self.aspect_ratios)]

    def grid_anchors(
        self, grid_sizes: Sequence[Sequence[int]], strides: Sequence[Sequence[Any]]
    ) -> list[Tensor]:
        """The boxes of each map, of `grid_sizes` (height, width) and `strides` (down, across)."""
        _assert(
            len(grid_sizes) == len(strides) == len(self.cell_anchors),
            "Anchors should be Tuple[Tuple[int]] because each feature map could potentially have "
            "different sizes and aspect ratios. There needs to be a match between the number of "
            "feature maps passed and the number of sizes / aspect ratios specified.",
        )
        result = []
        for size, stride, boxes in zip(grid_sizes, strides, self.cell_anchors):
            rows, columns = (
                arange(count, dtype=int32, device=boxes.device) * step
                for count, step in zip(size, stride)
            )
            result.append((grid(rows, columns).repeat(1, 2)[:, None] + boxes).reshape(-1, 4))
        return result

    def forward(self, image_list: ImageList, feature_maps: Sequence[Tensor]) -> list[Tensor]:
        sizes = [level.shape[-2:] for level in feature_maps]
        height, width = image_list.tensors.shape[-2:]
        strides = [(height // size[0], width // size[1]) for size in sizes]
        self.set_cell_anchors(feature_maps[0].dtype, feature_maps[0].device)
        anchors = cat(self.grid_anchors(sizes, strides))
        return [anchors] * len(image_list.image_sizes)


class DefaultBoxGenerator(nn.Module):
    """The default boxes of SSD: at each position of map k, boxes of scale `scales[k]` and others.

    These are a square, a square of the scale between this and the next map's, and for each of
    `aspect_ratios[k]` one box and the same lying. Scales grow evenly from `min_ratio` to
    `max_ratio` unless they are given, one more than there are maps. A position is `steps[k]`
    pixels wide, or its share of the picture. `clip` bounds sides by the picture's. Called as
    `AnchorGenerator`. Source: Liu et al., SSD, 2015. ValueError for another number of steps.
    """

    def __init__(
        self,
        aspect_ratios: Sequence[Sequence[float]],
        min_ratio: float = 0.15,
        max_ratio: float = 0.9,
        scales: Sequence[float] | None = None,
        steps: Sequence[int] | None = None,
        clip: bool = True,
    ) -> None:
        super().__init__()
        if steps is not None and len(aspect_ratios) != len(steps):
            raise ValueError("aspect_ratios and steps should have the same length")
        count = len(aspect_ratios)
        if scales is None and count > 1:
            growth = max_ratio - min_ratio
            scales = [*(min_ratio + growth * k / (count - 1.0) for k in range(count)), 1.0]
        self.aspect_ratios = aspect_ratios
        self.steps = steps
        self.clip = clip
        self.scales = [min_ratio, max_ratio] if scales is None else scales
        self._wh_pairs = self._generate_wh_pairs(count)

    def _generate_wh_pairs(
        self, num_outputs: int, dtype: DType = float32, device: Any = "cpu"
    ) -> list[Tensor]:
        """The sides (A, 2) of the boxes of each map, as shares of the picture's."""
        result = []
        for scale, following, ratios in zip(self.scales, self.scales[1:], self.aspect_ratios):
            sides = [(scale, scale), (math.sqrt(scale * following),) * 2]
            for root in map(math.sqrt, ratios):
                sides += [(scale * root, scale / root), (scale / root, scale * root)]
            result.append(as_tensor(sides, dtype=dtype, device=device))
        return result

    def num_anchors_per_location(self) -> list[int]:
        return [2 + 2 * len(ratios) for ratios in self.aspect_ratios]

    def _grid_default_boxes(
        self,
        grid_sizes: Sequence[Sequence[int]],
        image_size: Sequence[int],
        dtype: DType = float32,
    ) -> Tensor:
        """Centres and sides (L, 4) of the boxes of all maps, as shares of the picture's."""
        result = []
        for k, (size, sides) in enumerate(zip(grid_sizes, self._wh_pairs)):
            steps = size if self.steps is None else [side / self.steps[k] for side in image_size]
            rows, columns = (
                ((arange(count) + 0.5) / step).to(dtype) for count, step in zip(size, steps)
            )
            if self.clip:
                sides = sides.clamp(min=0, max=1)
            centres = grid(rows, columns)
            result.append(
                cat([centres.repeat_interleave(len(sides), 0), sides.repeat(len(centres), 1)], 1)
            )
        return cat(result)

    def forward(self, image_list: ImageList, feature_maps: Sequence[Tensor]) -> list[Tensor]:
        height, width = image_list.tensors.shape[-2:]
        sizes = [level.shape[-2:] for level in feature_maps]
        boxes = self._grid_default_boxes(sizes, (height, width), feature_maps[0].dtype)
        boxes = boxes.to(feature_maps[0].device)
        centres, half = boxes[:, :2], 0.5 * boxes[:, 2:]
        boxes = cat([centres - half, centres + half], dim=1) * boxes.new_tensor([width, height] * 2)
        return [boxes] * len(image_list.image_sizes)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(aspect_ratios={self.aspect_ratios}, clip={self.clip}, "
            f"scales={self.scales}, steps={self.steps})"
        )
