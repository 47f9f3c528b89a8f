"""From pictures and boxes to what a detector takes, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone import nn
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.ops.create.constructors import empty, tensor
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.models.detection._utils import Target
from tensorflow_lite_clone.vision.models.detection.image_list import ImageList
from tensorflow_lite_clone.vision.models.detection.roi_heads import paste_masks_in_image

Size = tuple[int, int]


def _ratios(original_size: Sequence[int], new_size: Sequence[int], like: Tensor) -> Tensor:
    """How many times as wide and as high a picture of (height, width) has become."""
    height, width = (new / old for new, old in zip(new_size, original_size))
    # Rounded as PyTorch's, whatever the dtype of what they scale.
    ratios = tensor([width, height], dtype=float32, device=like.device)
    return ratios.to(like.dtype) if like.is_floating_point() else ratios


def resize_boxes(boxes: Tensor, original_size: Sequence[int], new_size: Sequence[int]) -> Tensor:
    """Boxes (N, 4) of a picture that was `original_size` and is `new_size` (height, width)."""
    return boxes * _ratios(original_size, new_size, boxes).repeat(2)


def resize_keypoints(
    keypoints: Tensor, original_size: Sequence[int], new_size: Sequence[int]
) -> Tensor:
    """The same for keypoints (..., 3) of x, y and visibility."""
    ratios = _ratios(original_size, new_size, keypoints)
    return cat([keypoints[..., :2] * ratios, keypoints[..., 2:]], dim=-1)


class GeneralizedRCNNTransform(nn.Module):
    """Normalizes pictures (C, H, W), resizes them, and pads them to one size.

    The shorter side becomes `min_size`, in training one of several chosen at random, and the last
    in evaluation, but the longer one at most `max_size`; or the picture becomes `fixed_size`
    (width, height). The sides of the padded ones are multiples of `size_divisible`. Called with
    lists of pictures and targets, returns an `ImageList` and the targets to match; `postprocess`
    brings detections back. ValueError for other dimensions, TypeError for integers.
    """

    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int,
        image_mean: Sequence[float],
        image_std: Sequence[float],
        size_divisible: int = 32,
        fixed_size: tuple[int, int] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        self.min_size = min_size if isinstance(min_size, list | tuple) else (min_size,)
        self.max_size = max_size
        self.image_mean = image_mean
        self.image_std = image_std
        self.size_divisible = size_divisible
        self.fixed_size = fixed_size
        self._skip_resize = kwargs.get("_skip_resize", False)

    def forward(
        self, images: Sequence[Tensor], targets: Sequence[Target] | None = None
    ) -> tuple[ImageList, list[Target] | None]:
        pairs = []
        for index, image in enumerate(images):
            if image.ndim != 3:
                raise ValueError(
                    "images is expected to be a list of 3d tensors of shape [C, H, W], got "
                    f"{image.shape}"
                )
            target = None if targets is None else dict(targets[index])
            pairs.append(self.resize(self.normalize(image), target))
        resized = [image for image, _ in pairs]
        sizes = [(image.shape[-2], image.shape[-1]) for image in resized]
        batch = ImageList(self.batch_images(resized, self.size_divisible), sizes)
        return batch, None if targets is None else [t for _, t in pairs if t is not None]

    def normalize(self, image: Tensor) -> Tensor:
        if not image.is_floating_point():
            raise TypeError(
                "Expected input images to be of floating type (in range [0, 1]), but found type "
                f"{image.dtype} instead"
            )
        mean, std = (image.new_tensor(v)[:, None, None] for v in (self.image_mean, self.image_std))
        return (image - mean) / std

    def torch_choice(self, k: Sequence[int]) -> int:
        """One of several numbers, by this package's random numbers."""
        return k[int(empty(1).uniform_(0.0, float(len(k))).item())]

    def resize(self, image: Tensor, target: Target | None = None) -> tuple[Tensor, Target | None]:
        if self.training and self._skip_resize:
            return image, target
        side = self.torch_choice(self.min_size) if self.training else self.min_size[-1]
        old = image.shape[-2:]
        if self.fixed_size is not None:
            size = [self.fixed_size[1], self.fixed_size[0]]
        else:
            scale = min(side / min(old), self.max_size / max(old))
            size = [math.floor(length * scale) for length in old]
        image = F.interpolate(image[None], size=size, mode="bilinear", align_corners=False)[0]
        if target is not None:
            target["boxes"] = resize_boxes(target["boxes"], old, size)
            if "masks" in target:
                masks = target["masks"][:, None].float()
                target["masks"] = F.interpolate(masks, size=size)[:, 0].byte()
            if "keypoints" in target:
                target["keypoints"] = resize_keypoints(target["keypoints"], old, size)
        return image, target

    def batch_images(self, images: Sequence[Tensor], size_divisible: int = 32) -> Tensor:
        """The pictures (N, C, H, W), each in the upper left corner, zeros elsewhere."""
        height, width = (
            math.ceil(max(image.shape[dim] for image in images) / size_divisible) * size_divisible
            for dim in (-2, -1)
        )
        return stack(
            [
                F.pad(image, (0, width - image.shape[-1], 0, height - image.shape[-2]))
                for image in images
            ]
        )

    def postprocess(
        self,
        result: list[Target],
        image_shapes: Sequence[Size],
        original_image_sizes: Sequence[Size],
    ) -> list[Target]:
        """The detections, in place, in the coordinates of the pictures as they came."""
        if self.training:
            return result
        for found, size, original in zip(result, image_shapes, original_image_sizes):
            found["boxes"] = resize_boxes(found["boxes"], size, original)
            if "masks" in found:
                found["masks"] = paste_masks_in_image(found["masks"], found["boxes"], original)
            if "keypoints" in found:
                found["keypoints"] = resize_keypoints(found["keypoints"], size, original)
        return result

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(\n    Normalize(mean={self.image_mean}, std={self.image_std})\n"
            f"    Resize(min_size={self.min_size}, max_size={self.max_size}, mode='bilinear')\n)"
        )
