"""What the transforms of the second version share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, ClassVar

from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.utils._pytree import tree_flatten, tree_unflatten
from tensorflow_lite_clone.vision._pillow import is_pil
from tensorflow_lite_clone.vision.transforms._draws import chance
from tensorflow_lite_clone.vision.transforms._interpolation import InterpolationMode
from tensorflow_lite_clone.vision.transforms.v2 import functional
from tensorflow_lite_clone.vision.tv_tensors import (
    BoundingBoxFormat,
    Image,
    Mask,
    TVTensor,
    Video,
)

SHOWN = (bool, int, float, str, tuple, list, Enum)


class Transform(Module):
    """Changes all pictures, masks and boxes in any nest of containers in the same way.

    A plain tensor counts as a picture if the nest has no `Image`, `Video` or PIL image, and it is
    the first one. Everything else passes unchanged. A subclass writes `transform`, which is given
    one leaf and the parameters; `make_params` draws these from the list of all leaves. Or it has a
    `function`, called with a leaf and `arguments`: names of parameters, or else of attributes.
    """

    function: ClassVar[Callable | None] = None
    arguments: ClassVar[tuple[str, ...]] = ()

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """The parameters of one call."""
        return {}

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """Raises for what cannot be served."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """One leaf, transformed."""
        if self.function is None:
            raise NotImplementedError
        values = [self.argument(name, inpt, params) for name in self.arguments]
        return self.call(self.function, inpt, *values)

    def argument(self, name: str, inpt: Any, params: dict[str, Any]) -> Any:
        """An argument of `function` for a leaf; a fill may depend on the leaf's type."""
        value = params[name] if name in params else getattr(self, name)
        return fill_for(value, inpt) if name == "fill" else value

    def is_supported(self, inpt: Any) -> bool:
        """Whether a leaf is given to `transform`."""
        return isinstance(inpt, TVTensor) or functional.is_pure_tensor(inpt) or is_pil(inpt)

    def skips(self) -> bool:
        """Whether this call leaves everything as it is."""
        return False

    def forward(self, *inputs: Any) -> Any:
        """The inputs, transformed."""
        flat, spec = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        self.check_inputs(flat)
        if self.skips():
            return inputs if len(inputs) > 1 else inputs[0]
        chosen = self.chosen(flat)
        params = self.make_params([leaf for leaf, use in zip(flat, chosen) if use])
        outputs = [self.transform(leaf, params) if use else leaf for leaf, use in zip(flat, chosen)]
        return tree_unflatten(outputs, spec)

    def chosen(self, flat: list[Any]) -> list[bool]:
        """For each leaf whether it is transformed."""
        first = not any(isinstance(leaf, Image | Video) or is_pil(leaf) for leaf in flat)
        result = []
        for leaf in flat:
            use = self.is_supported(leaf)
            if use and functional.is_pure_tensor(leaf):
                use, first = first, False
            result.append(use)
        return result

    def call(self, function: Callable, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of a leaf; masks and boxes pass what is for pictures alone."""
        if hasattr(function, "for_pictures") and not functional.is_picture(inpt):
            return inpt
        return function(inpt, *args, **kwargs)

    def extra_repr(self) -> str:
        """The arguments that are plain values."""
        shown = []
        for name, value in self.__dict__.items():
            if name.startswith("_") or name == "training" or not isinstance(value, SHOWN):
                continue
            if isinstance(value, InterpolationMode | BoundingBoxFormat):
                value = value.value
            shown.append(f"{name}={value}")
        return ", ".join(shown)


class RandomTransform(Transform):
    """A transform that is applied with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
        super().__init__()
        self.p = p

    def skips(self) -> bool:
        """Whether the draw was against it."""
        return not chance(self.p)


def fill_for(fill: Any, inpt: Any) -> Any:
    """The fill of a leaf: a dict has one for each type, and one for "others"."""
    if isinstance(fill, dict):
        others = fill.get("others")
        return next((value for kind, value in fill.items() if type(inpt) is kind), others)
    if isinstance(inpt, Mask) and isinstance(fill, list | tuple):
        raise ValueError("a mask has one channel: pass a dict of fills by type")
    return fill


def size_of(flat_inputs: Sequence[Any]) -> tuple[int, int]:
    """The (H, W) that all leaves have; ValueError if they have not one."""
    sizes = {
        tuple(functional.get_size(leaf))
        for leaf in flat_inputs
        if isinstance(leaf, TVTensor) or is_pil(leaf) or functional.is_pure_tensor(leaf)
    }
    if not sizes:
        raise TypeError("No image, video, mask, or bounding box was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple HxW dimensions in the sample: {sorted(sizes)}")
    height, width = sizes.pop()
    return height, width


def channels_of(flat_inputs: Sequence[Any]) -> tuple[int, int, int]:
    """The (C, H, W) that all pictures have; ValueError if they have not one."""
    sizes = {
        tuple(functional.get_dimensions(leaf))
        for leaf in flat_inputs
        if functional.is_picture(leaf)
    }
    if not sizes:
        raise TypeError("No image or video was found in the sample")
    if len(sizes) > 1:
        raise ValueError(f"Found multiple CxHxW dimensions in the sample: {sorted(sizes)}")
    channels, height, width = sizes.pop()
    return channels, height, width
