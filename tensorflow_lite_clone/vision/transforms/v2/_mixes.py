"""Transforms that mix the pictures of a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.distributions import Beta
from tensorflow_lite_clone.nn.functional import one_hot
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten, tree_unflatten
from tensorflow_lite_clone.vision._pillow import is_pil
from tensorflow_lite_clone.vision.transforms._draws import integer
from tensorflow_lite_clone.vision.transforms.v2._transform import Transform, size_of
from tensorflow_lite_clone.vision.tv_tensors import BoundingBoxes, Mask, wrap


def default_labels(inputs: Any) -> Any:
    """The second of a tuple or list; of a dict, in it or as the inputs, what is called label(s)."""
    if isinstance(inputs, tuple | list):
        inputs = inputs[1]
    if isinstance(inputs, Tensor):
        return inputs
    if not isinstance(inputs, dict):
        raise ValueError(
            "When using the default labels_getter, the input passed to forward must be a "
            "dictionary or a two-tuple whose second item is a dictionary or a tensor, but got "
            f"{inputs} instead."
        )
    keys = [key for key in inputs if str(key).lower() in ("label", "labels")]
    keys = keys or [key for key in inputs if "label" in str(key).lower()]
    if not keys:
        raise ValueError("Could not infer where the labels are in the sample; pass labels_getter")
    return inputs[keys[0]]


class _Mix(Transform):
    """Mixes each picture of a batch (N, C, H, W) with the one before it, and so the labels.

    Labels are integers (N,), then `num_classes` must be given, or probabilities (N, classes);
    probabilities come out. `alpha` is the concentration of the Beta distribution of the weight.
    """

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        num_classes: int | None = None,
        labels_getter: str | Callable[[Any], Any] | None = "default",
    ) -> None:
        super().__init__()
        self.alpha = float(alpha)
        self._distribution = Beta(tensor([self.alpha]), tensor([self.alpha]))
        self.num_classes = num_classes
        self._labels_of = labels_getter if callable(labels_getter) else default_labels

    def forward(self, *inputs: Any) -> Any:
        """The inputs, mixed."""
        whole = inputs if len(inputs) > 1 else inputs[0]
        flat, spec = tree_flatten(whole)
        if any(is_pil(leaf) or isinstance(leaf, BoundingBoxes | Mask) for leaf in flat):
            raise ValueError(
                f"{type(self).__name__}() does not support PIL images, bounding boxes, keypoints "
                "and masks."
            )
        labels = self._labels_of(whole)
        self.expect_labels(labels)
        chosen = self.chosen(flat)
        pictures = [leaf for leaf, use in zip(flat, chosen) if use and leaf is not labels]
        for picture in pictures:
            self.expect_batch(picture, len(labels))
        params = self.make_params(pictures)
        weight = params["weight"]
        outputs: list[Any] = []
        for leaf, use in zip(flat, chosen):
            if leaf is labels:
                outputs.append(self.mixed_labels(leaf, weight))
            else:
                outputs.append(self.transform(leaf, params) if use else leaf)
        return tree_unflatten(outputs, spec)

    def expect_labels(self, labels: Any) -> None:
        """ValueError for labels of another kind or shape."""
        if not isinstance(labels, Tensor):
            raise ValueError(f"The labels must be a tensor, but got {type(labels)} instead.")
        if labels.ndim not in (1, 2):
            raise ValueError(
                "labels should be index based with shape (batch_size,) or probability based with "
                f"shape (batch_size, num_classes), but got a tensor of shape {labels.shape} "
                "instead."
            )
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[-1]):
            raise ValueError(
                "When passing 2D labels, the number of elements in last dimension must match "
                f"num_classes: {labels.shape[-1]} != {self.num_classes}. You can Leave "
                "num_classes to None."
            )
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("num_classes must be passed if the labels are index-based (1D)")

    def expect_batch(self, picture: Tensor, size: int) -> None:
        """ValueError for what is no batch of that size."""
        if picture.ndim != 4:
            raise ValueError(
                f"Expected a batched input with 4 dims, but got {picture.ndim} dimensions instead."
            )
        if len(picture) != size:
            raise ValueError(
                "The batch size of the image or video does not match the batch size of the "
                f"labels: {len(picture)} != {size}."
            )

    def weight(self) -> float:
        """A random weight of a picture itself."""
        return float(self._distribution.sample(()))

    def mixed_labels(self, labels: Tensor, weight: float) -> Tensor:
        """Probabilities, mixed."""
        if labels.ndim == 1:
            labels = one_hot(labels, num_classes=self.num_classes)
        if not labels.is_floating_point():
            labels = labels.to(float32)
        return labels.roll(1, 0) * (1.0 - weight) + labels * weight


class MixUp(_Mix):
    """Mixes whole pictures (H. Zhang et al., 2018)."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The weight."""
        return {"weight": self.weight()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The batch, mixed."""
        plain, weight = inpt.as_subclass(Tensor), params["weight"]
        return wrap(plain.roll(1, 0) * (1.0 - weight) + plain * weight, like=inpt)


class CutMix(_Mix):
    """Replaces a rectangle by that of another picture (S. Yun et al., 2019)."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The rectangle, and the share of the area that is outside."""
        weight = self.weight()
        height, width = size_of(flat_inputs)
        x, y = integer(0, width), integer(0, height)
        half = 0.5 * math.sqrt(1.0 - weight)
        across, down = int(half * width), int(half * height)
        left, right = max(x - across, 0), min(x + across, width)
        top, bottom = max(y - down, 0), min(y + down, height)
        outside = 1.0 - (right - left) * (bottom - top) / (width * height)
        return {"weight": outside, "box": (left, top, right, bottom)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The batch with rectangles replaced."""
        left, top, right, bottom = params["box"]
        plain = inpt.as_subclass(Tensor)
        result = plain.clone()
        result[..., top:bottom, left:right] = plain.roll(1, 0)[..., top:bottom, left:right]
        return wrap(result, like=inpt)
