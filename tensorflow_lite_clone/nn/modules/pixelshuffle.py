"""Channels laid out as pixels, and back.

Source: Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel
convolutional neural network" (2016).
"""

from __future__ import annotations

from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.nn.modules.stateless import Stateless
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(Stateless):
    """(..., C r^2, H, W) -> (..., C, H r, W r) for r = `upscale_factor`."""

    repr_fields = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(Stateless):
    """(..., C, H r, W r) -> (..., C r^2, H, W) for r = `downscale_factor`."""

    repr_fields = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)
