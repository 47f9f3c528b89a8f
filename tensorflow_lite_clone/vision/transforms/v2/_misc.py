"""The second version's conversions, and what is left."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.dtypes import DType, float32
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import is_pil
from tensorflow_lite_clone.vision.transforms import _basic
from tensorflow_lite_clone.vision.transforms.v2 import functional
from tensorflow_lite_clone.vision.transforms.v2._transform import Transform
from tensorflow_lite_clone.vision.tv_tensors import (
    BoundingBoxes,
    BoundingBoxFormat,
    Image,
    TVTensor,
)


class Identity(Transform):
    """Changes nothing."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf."""
        return inpt


class _OfTypes(Transform):
    """A transform of the leaves of some types."""

    types: tuple[type, ...]

    def is_supported(self, inpt: Any) -> bool:
        """Whether it is of one of the types."""
        return isinstance(inpt, self.types)


class Lambda(_OfTypes):
    """Applies a function to the leaves of some types, by default to all."""

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or (object,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """What the function makes of the leaf."""
        return self.lambd(inpt)

    def extra_repr(self) -> str:
        """The function's name and the types."""
        name = getattr(self.lambd, "__name__", "")
        return ", ".join([*([name] if name else []), f"types={[t.__name__ for t in self.types]}"])


class _WithoutPIL(Transform):
    """A transform of tensors: PIL images are refused."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        """TypeError for PIL images."""
        if any(is_pil(leaf) for leaf in flat_inputs):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")


class Normalize(_WithoutPIL):
    """Shifts and scales the channels of float tensors; see `functional.normalize`."""

    function = staticmethod(functional.normalize)
    arguments = ("mean", "std", "inplace")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace


class LinearTransformation(_WithoutPIL):
    """Subtracts a mean from the flattened picture and multiplies by a matrix."""

    function = staticmethod(functional.of_pictures(_basic.linear_transformation))
    arguments = ("transformation_matrix", "mean_vector")

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        _basic.LinearTransformation(transformation_matrix, mean_vector)  # which refuses wrong ones
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector


class ToDtype(_OfTypes):
    """Changes the dtype of pictures, with `scale` also their range; see `functional.to_dtype`.

    `dtype` is one for pictures, or a dict by type, with "others" for the rest; None leaves them.
    """

    types = (Tensor,)

    def __init__(self, dtype: Any, scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, dict | DType):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        self.dtype = dtype
        self.scale = scale

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf in its dtype."""
        if isinstance(self.dtype, DType):
            dtype = self.dtype if functional.is_picture(inpt) else None
        elif type(inpt) in self.dtype:
            dtype = self.dtype[type(inpt)]
        elif "others" in self.dtype:
            dtype = self.dtype["others"]
        else:
            raise ValueError(
                f"No dtype was specified for type {type(inpt)}. Pass dtype=torch.float32 for "
                'images and videos alone, or add the key "others", for example '
                '{tv_tensors.Mask: torch.int64, "others": None}.'
            )
        if dtype is None:
            return inpt
        return self.call(functional.to_dtype, inpt, dtype=dtype, scale=self.scale)


class ConvertImageDtype(_OfTypes):
    """`ToDtype(dtype, scale=True)`, its older name."""

    types = (Tensor,)

    def __init__(self, dtype: DType = float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf in the dtype."""
        return self.call(functional.to_dtype, inpt, dtype=self.dtype, scale=True)


class ToImage(Transform):
    """Makes an `Image` of a PIL image, an array or a plain tensor; values as they are."""

    function = staticmethod(functional.to_image)

    def is_supported(self, inpt: Any) -> bool:
        """Whether it is one of these."""
        return is_pil(inpt) or functional.is_pure_tensor(inpt) or isinstance(inpt, np.ndarray)


class ToPureTensor(_OfTypes):
    """Makes plain tensors of images, masks and boxes."""

    types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The leaf as a plain tensor."""
        return inpt.as_subclass(Tensor)


class PILToTensor(Transform):
    """Makes tensors of PIL images, values as they are."""

    function = staticmethod(functional.pil_to_tensor)

    def is_supported(self, inpt: Any) -> bool:
        """Whether it is a PIL image."""
        return is_pil(inpt)


class ToPILImage(Transform):
    """Makes PIL images of tensors and arrays; see `functional.to_pil_image`."""

    function = staticmethod(functional.to_pil_image)
    arguments = ("mode",)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def is_supported(self, inpt: Any) -> bool:
        """Whether it is a picture in memory."""
        picture = isinstance(inpt, Image) or functional.is_pure_tensor(inpt)
        return picture or isinstance(inpt, np.ndarray)


class ToTensor(Transform):
    """The first version's `ToTensor`; deprecated, as `ToImage` and `ToDtype` do it in two steps."""

    function = staticmethod(functional.to_tensor)

    def __init__(self) -> None:
        warnings.warn(
            "The transform `ToTensor()` is deprecated and will be removed in a future release. "
            "Instead, please use `v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, "
            "scale=True)])`. Output is equivalent up to float precision.",
            stacklevel=level_outside(),
        )
        super().__init__()

    def is_supported(self, inpt: Any) -> bool:
        """Whether it is a PIL image or an array."""
        return is_pil(inpt) or isinstance(inpt, np.ndarray)


class ConvertBoundingBoxFormat(_OfTypes):
    """Changes the format of boxes."""

    types = (BoundingBoxes,)

    def __init__(self, format: BoundingBoxFormat | str) -> None:
        super().__init__()
        self.format = BoundingBoxFormat[format.upper()] if isinstance(format, str) else format

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """The boxes in the format."""
        return functional.convert_bounding_box_format(inpt, new_format=self.format)


class ClampBoundingBoxes(_OfTypes):
    """Cuts boxes off at the borders of their canvas."""

    types = (BoundingBoxes,)
    function = staticmethod(functional.clamp_bounding_boxes)
