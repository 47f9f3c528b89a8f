"""Transforms that training for detection uses: random sizes, colours, and boxes that are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.core.dtypes import bool_
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.random.sampling import randperm
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils._pytree import tree_flatten, tree_unflatten
from tensorflow_lite_clone.vision.transforms._draws import chance, integer, uniform
from tensorflow_lite_clone.vision.transforms._interpolation import InterpolationMode
from tensorflow_lite_clone.vision.transforms.v2 import _boxes, functional
from tensorflow_lite_clone.vision.transforms.v2._mixes import default_labels
from tensorflow_lite_clone.vision.transforms.v2._transform import (
    RandomTransform,
    Transform,
    channels_of,
    size_of,
)
from tensorflow_lite_clone.vision.tv_tensors import BoundingBoxes, Mask, wrap

BILINEAR = InterpolationMode.BILINEAR


class _Sized(Transform):
    """Resizes to a size that `make_params` draws."""

    interpolation: Any
    antialias: bool | None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf, resized."""
        return self.call(
            functional.resize,
            inpt,
            size=params["size"],
            interpolation=self.interpolation,
            antialias=self.antialias,
        )


class RandomResize(_Sized):
    """Resizes the shorter edge to a random length, from `min_size` to below `max_size`."""

    def __init__(
        self,
        min_size: int,
        max_size: int,
        interpolation: Any = BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = min_size
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The length."""
        return {"size": [integer(self.min_size, self.max_size)]}


class RandomShortestSize(_Sized):
    """Resizes the shorter edge to one of some lengths, the longer one to `max_size` at most."""

    def __init__(
        self,
        min_size: int | Sequence[int],
        max_size: int | None = None,
        interpolation: Any = BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.min_size = [min_size] if isinstance(min_size, int) else list(min_size)
        self.max_size = max_size
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The size."""
        height, width = size_of(flat_inputs)
        factor = self.min_size[integer(0, len(self.min_size))] / min(height, width)
        if self.max_size is not None:
            factor = min(factor, self.max_size / max(height, width))
        return {"size": (int(height * factor), int(width * factor))}


class ScaleJitter(_Sized):
    """Resizes to fit into `target_size`, times a random factor (G. Ghiasi et al., 2021)."""

    def __init__(
        self,
        target_size: tuple[int, int],
        scale_range: tuple[float, float] = (0.1, 2.0),
        interpolation: Any = BILINEAR,
        antialias: bool | None = True,
    ) -> None:
        super().__init__()
        self.target_size = target_size
        self.scale_range = scale_range
        self.interpolation = interpolation
        self.antialias = antialias

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The size."""
        height, width = size_of(flat_inputs)
        fits = min(self.target_size[1] / height, self.target_size[0] / width)
        factor = fits * uniform(*self.scale_range)
        return {"size": (int(height * factor), int(width * factor))}


class RandomZoomOut(RandomTransform):
    """Puts the picture at a random place of a larger canvas, with probability `p`.

    `side_range` bounds the canvas' length over the picture's. W. Liu et al., 2016.
    """

    function = staticmethod(functional.pad)
    arguments = ("padding", "fill")

    def __init__(
        self, fill: Any = 0, side_range: Sequence[float] = (1.0, 4.0), p: float = 0.5
    ) -> None:
        super().__init__(p)
        self.fill = fill
        self.side_range = side_range
        if side_range[0] < 1.0 or side_range[0] > side_range[1]:
            raise ValueError(f"Invalid side range provided {side_range}.")

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The borders."""
        height, width = size_of(flat_inputs)
        factor = uniform(*self.side_range)
        canvas_width, canvas_height = int(width * factor), int(height * factor)
        across, down = empty(2).uniform_().tolist()
        left, top = int((canvas_width - width) * across), int((canvas_height - height) * down)
        right, bottom = canvas_width - left - width, canvas_height - top - height
        return {"padding": [left, top, right, bottom]}


class RandomChannelPermutation(Transform):
    """Puts the channels into random order."""

    function = staticmethod(functional.permute_channels)
    arguments = ("permutation",)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The order."""
        return {"permutation": randperm(channels_of(flat_inputs)[0]).tolist()}


class RandomPhotometricDistort(Transform):
    """Changes brightness, contrast, saturation, hue and the order of channels (W. Liu, 2016).

    Each with probability `p`, by a factor between the bounds.
    """

    def __init__(
        self,
        brightness: tuple[float, float] = (0.875, 1.125),
        contrast: tuple[float, float] = (0.5, 1.5),
        saturation: tuple[float, float] = (0.5, 1.5),
        hue: tuple[float, float] = (-0.05, 0.05),
        p: float = 0.5,
    ) -> None:
        super().__init__()
        self.brightness = brightness
        self.contrast = contrast
        self.hue = hue
        self.saturation = saturation
        self.p = p

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """What is done, in order."""
        channels = channels_of(flat_inputs)[0]
        factors = [
            uniform(*bounds) if chance(self.p) else None
            for bounds in (self.brightness, self.contrast, self.saturation, self.hue)
        ]
        steps = list(zip(ADJUSTMENTS, factors))
        if not chance(0.5):
            steps.append(steps.pop(1))  # the contrast comes last
        order = randperm(channels).tolist() if chance(self.p) else None
        return {"steps": [*steps, (functional.permute_channels, order)]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf with other colours."""
        for function, argument in params["steps"]:
            if argument is not None:
                inpt = self.call(function, inpt, argument)
        return inpt


ADJUSTMENTS = (
    functional.adjust_brightness,
    functional.adjust_contrast,
    functional.adjust_saturation,
    functional.adjust_hue,
)


class SanitizeBoundingBoxes(Transform):
    """Drops boxes that are too small or not within the picture, their labels and masks.

    Args:
        min_size: the least width and height.
        min_area: the least area.
        labels_getter: gives the labels (or a tuple of such tensors) of the inputs; "default"
            finds them as `MixUp` does, None leaves them.
    """

    def __init__(
        self,
        min_size: float = 1.0,
        min_area: float = 1.0,
        labels_getter: Callable[[Any], Any] | str | None = "default",
    ) -> None:
        super().__init__()
        if min_size < 1:
            raise ValueError(f"min_size must be >= 1, got {min_size}.")
        if min_area < 1:
            raise ValueError(f"min_area must be >= 1, got {min_area}.")
        self.min_size = min_size
        self.min_area = min_area
        self.labels_getter = labels_getter

    def labels(self, inputs: Any) -> list[Tensor]:
        """The tensors that have an element for each box."""
        if self.labels_getter is None:
            return []
        found = (
            self.labels_getter(inputs) if callable(self.labels_getter) else default_labels(inputs)
        )
        if found is None:
            return []
        return list(found) if isinstance(found, tuple | list) else [found]

    def forward(self, *inputs: Any) -> Any:
        """The inputs with the boxes that are left."""
        whole = inputs if len(inputs) > 1 else inputs[0]
        labels = self.labels(whole)
        flat, spec = tree_flatten(whole)
        boxes = [leaf for leaf in flat if isinstance(leaf, BoundingBoxes)]
        if len(boxes) != 1:
            raise ValueError(f"Expected one set of bounding boxes in the sample, got {len(boxes)}")
        left = self.left(boxes[0])
        outputs = []
        for leaf in flat:
            of_a_box = leaf is boxes[0] or any(leaf is label for label in labels)
            if of_a_box or (isinstance(leaf, Mask) and len(leaf) == len(left)):
                leaf = wrap(leaf.as_subclass(Tensor)[left], like=leaf)
            outputs.append(leaf)
        return tree_unflatten(outputs, spec)

    def left(self, boxes: BoundingBoxes) -> Tensor:
        """For each box whether it is left, (N,) bool."""
        corners = _boxes.plain_corners(boxes)
        x, y = corners[:, 0::2], corners[:, 1::2]
        width, height = x[:, 1] - x[:, 0], y[:, 1] - y[:, 0]
        left = (width >= self.min_size) & (height >= self.min_size)
        left = left & (width * height >= self.min_area) & (corners >= 0).all(1)
        bottom, right = boxes.canvas_size
        return (left & (x <= right).all(1) & (y <= bottom).all(1)).to(bool_)
