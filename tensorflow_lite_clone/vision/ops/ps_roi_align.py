"""Position-sensitive RoIAlign: Li et al., Light-Head R-CNN, 2017."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops._utils import pair
from tensorflow_lite_clone.vision.ops.roi_align import roi_align


def ps_roi_align(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
) -> Tensor:
    """`roi_align(aligned=True)` where each bin has channels of its own: (K, C / bins, h, w).

    Channel `(c h + i) w + j` of the input (N, C, H, W) is what bin (i, j) of channel c averages.
    Raises RuntimeError if C is no multiple of the number of bins.
    """
    height, width = pair(output_size)
    if input.shape[1] % (height * width):
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    every = roi_align(input, boxes, output_size, spatial_scale, sampling_ratio, aligned=True)
    every = every.reshape(every.shape[0], -1, height, width, height, width)
    return every.diagonal(dim1=2, dim2=4).diagonal(dim1=2, dim2=3)


class PSRoIAlign(Stateless):
    """`ps_roi_align` as a layer."""

    repr_fields = ("output_size", "spatial_scale", "sampling_ratio")

    def __init__(
        self, output_size: int | Sequence[int], spatial_scale: float, sampling_ratio: int
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio

    def forward(self, input: Tensor, rois: Tensor | Sequence[Tensor]) -> Tensor:
        return ps_roi_align(input, rois, self.output_size, self.spatial_scale, self.sampling_ratio)
