"""RoIAlign over a pyramid of maps: Lin et al., Feature Pyramid Networks, 2016."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops._utils import convert_boxes_to_roi_format
from tensorflow_lite_clone.vision.ops.boxes import box_area
from tensorflow_lite_clone.vision.ops.roi_align import roi_align


class LevelMapper:
    """Which level boxes are read from: `floor(k0 + log2(sqrt(area) / s0))`, their equation 1."""

    def __init__(
        self,
        k_min: int,
        k_max: int,
        canonical_scale: int = 224,
        canonical_level: int = 4,
        eps: float = 1e-6,
    ) -> None:
        self.k_min = k_min
        self.k_max = k_max
        self.s0 = canonical_scale
        self.lvl0 = canonical_level
        self.eps = eps

    def __call__(self, boxlists: Sequence[Tensor]) -> Tensor:
        """The levels (K,), int64, counted from the finest, of all boxes together."""
        side = cat([box_area(boxes) for boxes in boxlists]).sqrt()
        level = (self.lvl0 + (side / self.s0).log2() + self.eps).floor()
        return level.clamp(min=self.k_min, max=self.k_max).long() - self.k_min


class MultiScaleRoIAlign(nn.Module):
    """`roi_align` from the map, of several, that fits a box's size.

    `featmap_names` are the maps to read, finest first. Called with maps (N, C, H_i, W_i) by name,
    a list of boxes (L, 4) and the sizes (height, width) of the pictures that these lie in, it
    returns (K, C, *output_size).
    """

    def __init__(
        self,
        featmap_names: Sequence[str],
        output_size: int | Sequence[int],
        sampling_ratio: int,
        *,
        canonical_scale: int = 224,
        canonical_level: int = 4,
    ) -> None:
        super().__init__()
        self.featmap_names = featmap_names
        self.output_size = (
            (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
        )
        self.sampling_ratio = sampling_ratio
        self.canonical_scale = canonical_scale
        self.canonical_level = canonical_level
        self.scales: list[float] | None = None
        self.map_levels: LevelMapper | None = None

    def forward(
        self,
        x: Mapping[str, Tensor],
        boxes: Sequence[Tensor],
        image_shapes: Sequence[tuple[int, int]],
    ) -> Tensor:
        maps = [value for name, value in x.items() if name in self.featmap_names]
        if self.scales is None or self.map_levels is None:
            # The maps' sizes against the largest picture's, as powers of two.
            height = max(shape[0] for shape in image_shapes)
            self.scales = [2.0 ** round(math.log2(level.shape[-2] / height)) for level in maps]
            self.map_levels = LevelMapper(
                -int(math.log2(self.scales[0])),
                -int(math.log2(self.scales[-1])),
                self.canonical_scale,
                self.canonical_level,
            )
        rois = convert_boxes_to_roi_format(boxes)
        if len(maps) == 1:
            return roi_align(maps[0], rois, self.output_size, self.scales[0], self.sampling_ratio)
        levels = self.map_levels(boxes)
        rows = [(levels == level).nonzero()[:, 0] for level in range(len(maps))]
        parts = [
            roi_align(value, rois[row], self.output_size, scale, self.sampling_ratio)
            for value, row, scale in zip(maps, rows, self.scales)
        ]
        return cat(parts)[cat(rows).argsort()]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(featmap_names={self.featmap_names}, "
            f"output_size={self.output_size}, sampling_ratio={self.sampling_ratio})"
        )
