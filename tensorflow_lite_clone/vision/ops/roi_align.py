"""RoIAlign: He et al., Mask R-CNN, 2017."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.ops._utils import by_picture, pair, rois_of


def axis_weights(
    start: Tensor, end: Tensor, bins: int, size: int, sampling_ratio: int, aligned: bool
) -> Tensor:
    """How much each of `size` pixels of an axis counts in each bin of a region: (K, bins, size).

    A bin is the mean of samples at equal distances, each a linear interpolation between its two
    neighbours; one outside [-1, size] is 0. `start` and `end` are (K,), in pixels.
    """
    length = end - start if aligned else (end - start).clamp(min=1.0)
    width = length / bins
    if sampling_ratio > 0:
        samples = length.new_full(length.shape, float(sampling_ratio))
    else:
        samples = width.ceil().clamp(min=0.0)
    most = max(int(samples.max()), 1)
    options = {"dtype": start.dtype, "device": start.device}
    count = samples.clamp(min=1.0)[:, None, None]
    index = arange(most, **options)
    offsets = arange(bins, **options)[:, None] + (index + 0.5) / count
    positions = start[:, None, None] + offsets * width[:, None, None]
    valid = (index < samples[:, None, None]) & (positions >= -1.0) & (positions <= size)
    positions = positions.clamp(0.0, size - 1.0)
    near = 1 - (positions[..., None] - arange(size, **options)).abs()
    return (near.clamp(min=0.0) * (valid / count)[..., None]).sum(2)


def roi_align(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Tensor:
    """The regions of maps (N, C, H, W), each averaged into a grid: (K, C, *output_size).

    `boxes` are rows (picture, x1, y1, x2, y2), or a list of boxes (L, 4) for each picture, of the
    input's dtype, in coordinates which times `spatial_scale` are the map's. A bin is the mean of
    `sampling_ratio` squared samples (-1: about one for each pixel). `aligned` takes pixels to be
    points in the middle of their squares. The gradient is the input's; the boxes have none.
    Interpolation works for each axis alone, so a region is two matrix products.
    """
    height, width = pair(output_size)
    rois = rois_of(boxes, input)
    with no_grad():
        edges = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0.0)
        x1, y1, x2, y2 = edges.unbind(1)

    def pool(picture: Tensor, row: Tensor) -> Tensor:
        channels, rows, columns = picture.shape
        with no_grad():
            down = axis_weights(y1[row], y2[row], height, rows, sampling_ratio, aligned)
            across = axis_weights(x1[row], x2[row], width, columns, sampling_ratio, aligned)
        bands = down.reshape(-1, rows) @ picture.permute(1, 0, 2).reshape(rows, -1)
        bands = bands.view(len(row), height * channels, columns) @ across.transpose(1, 2)
        return bands.view(len(row), height, channels, width).transpose(1, 2)

    return by_picture(input, rois, pool, (input.shape[1], height, width))


class RoIAlign(Stateless):
    """`roi_align` as a layer."""

    repr_fields = ("output_size", "spatial_scale", "sampling_ratio", "aligned")

    def __init__(
        self,
        output_size: int | Sequence[int],
        spatial_scale: float,
        sampling_ratio: int,
        aligned: bool = False,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.spatial_scale = spatial_scale
        self.sampling_ratio = sampling_ratio
        self.aligned = aligned

    def forward(self, input: Tensor, rois: Tensor | Sequence[Tensor]) -> Tensor:
        return roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, self.aligned
        )
