"""Pictures of several sizes in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.tensor import Tensor


class ImageList:
    """Pictures padded to one size, (N, C, H, W), and the (height, width) each had before."""

    def __init__(self, tensors: Tensor, image_sizes: Sequence[tuple[int, int]]) -> None:
        self.tensors = tensors
        self.image_sizes = image_sizes

    def to(self, device: Any) -> ImageList:
        return ImageList(self.tensors.to(device), self.image_sizes)
