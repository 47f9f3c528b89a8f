"""How a picture is prepared for a pretrained model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms import functional

F: Any = functional
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def _as_tensor(img: Any) -> Tensor:
    return img if isinstance(img, Tensor) else F.pil_to_tensor(img)


class _Preset(nn.Module):
    """Resizes, perhaps crops, scales to [0, 1] and normalizes a picture.

    The picture is a PIL image, or a tensor (..., C, H, W); the result is a float32 tensor.
    `interpolation` is one of the modes or its name.
    """

    crop_size: list[int] | None = None

    def __init__(
        self,
        resize_size: int | None,
        mean: Sequence[float],
        std: Sequence[float],
        interpolation: Any,
        antialias: bool | None,
    ) -> None:
        super().__init__()
        self.resize_size = None if resize_size is None else [resize_size]
        self.mean = list(mean)
        self.std = list(std)
        self.interpolation = interpolation
        self.antialias = antialias

    def forward(self, img: Any) -> Tensor:
        if self.resize_size is not None:
            mode = F.InterpolationMode(self.interpolation)
            img = F.resize(img, self.resize_size, interpolation=mode, antialias=self.antialias)
        if self.crop_size is not None:
            img = F.center_crop(img, self.crop_size)
        img = F.convert_image_dtype(_as_tensor(img), float32)
        return F.normalize(img, mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        mode = getattr(self.interpolation, "name", str(self.interpolation).upper())
        crop = "" if self.crop_size is None else f"\n    crop_size={self.crop_size}"
        return (
            f"{type(self).__name__}({crop}\n    resize_size={self.resize_size}\n    "
            f"mean={self.mean}\n    std={self.std}\n    interpolation=InterpolationMode.{mode}\n)"
        )


class ObjectDetection(nn.Module):
    """Scales a picture, a PIL image or a tensor (..., C, H, W), to [0, 1]."""

    def forward(self, img: Any) -> Tensor:
        return F.convert_image_dtype(_as_tensor(img), float32)


class ImageClassification(_Preset):
    """Resizes the shorter side, crops the centre, scales to [0, 1] and normalizes."""

    def __init__(
        self,
        *,
        crop_size: int,
        resize_size: int = 256,
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__(resize_size, mean, std, interpolation, antialias)
        self.crop_size = [crop_size]


class SemanticSegmentation(_Preset):
    """Resizes the shorter side, scales to [0, 1] and normalizes."""

    def __init__(
        self,
        *,
        resize_size: int | None,
        mean: Sequence[float] = MEAN,
        std: Sequence[float] = STD,
        interpolation: Any = "bilinear",
        antialias: bool | None = True,
    ) -> None:
        super().__init__(resize_size, mean, std, interpolation, antialias)


class VideoClassification(_Preset):
    """Resizes, crops the centre, scales to [0, 1] and normalizes videos (..., T, C, H, W).

    The result is (..., C, T, H, W).
    """

    def __init__(
        self,
        *,
        crop_size: Sequence[int],
        resize_size: Sequence[int],
        mean: Sequence[float] = (0.43216, 0.394666, 0.37645),
        std: Sequence[float] = (0.22803, 0.22145, 0.216989),
        interpolation: Any = "bilinear",
    ) -> None:
        super().__init__(None, mean, std, interpolation, antialias=False)
        self.resize_size = list(resize_size)
        self.crop_size = list(crop_size)

    def forward(self, vid: Tensor) -> Tensor:
        frames = super().forward(vid.flatten(0, -4))
        return frames.unflatten(0, vid.shape[:-3]).transpose(-4, -3)
