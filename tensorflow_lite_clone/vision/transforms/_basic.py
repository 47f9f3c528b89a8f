"""Transforms that combine others, and those from one kind of picture to another."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.nn import Module
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms import functional
from tensorflow_lite_clone.vision.transforms._base import AttributeRepr
from tensorflow_lite_clone.vision.transforms._draws import chance


def listed(name: str, lines: Sequence[Any]) -> str:
    """The name, and the lines in parentheses below it."""
    return "".join([f"{name}(", *(f"\n    {line}" for line in lines), "\n)"])


class Compose:
    """Applies transforms one after the other."""

    def __init__(self, transforms: Sequence[Callable]) -> None:
        self.transforms = transforms

    def __call__(self, img: Any) -> Any:
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return listed(type(self).__name__, self.transforms)


class Lambda:
    """Applies a function; TypeError if it is not callable."""

    def __init__(self, lambd: Callable) -> None:
        if not callable(lambd):
            raise TypeError(f"Argument lambd should be callable, got {type(lambd).__name__!r}")
        self.lambd = lambd

    def __call__(self, img: Any) -> Any:
        return self.lambd(img)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class RandomApply(Module):
    """Applies all transforms with probability `p`, or none; they may be a `ModuleList`."""

    def __init__(self, transforms: Sequence[Callable], p: float = 0.5) -> None:
        super().__init__()
        self.transforms = transforms
        self.p = p

    def forward(self, img: Any) -> Any:
        """The picture, with all transforms applied or none."""
        if not chance(self.p):
            return img
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self) -> str:
        return listed(type(self).__name__, [f"p={self.p}", *self.transforms])


class _Listed:
    """A list of transforms of which something random is done; Python's `random` decides."""

    def __init__(self, transforms: Sequence[Callable]) -> None:
        if not isinstance(transforms, Sequence):
            raise TypeError("Argument transforms should be a sequence")
        self.transforms = transforms

    def __repr__(self) -> str:
        return listed(type(self).__name__, self.transforms)


class RandomOrder(_Listed):
    """Applies transforms in random order."""

    def __call__(self, img: Any) -> Any:
        order = list(range(len(self.transforms)))
        random.shuffle(order)
        for index in order:
            img = self.transforms[index](img)
        return img


class RandomChoice(_Listed):
    """Applies one of the transforms, each with the weight in `p`, or all alike."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None) -> None:
        super().__init__(transforms)
        if p is not None and not isinstance(p, Sequence):
            raise TypeError("Argument p should be a sequence")
        self.p = p

    def __call__(self, *args: Any) -> Any:
        return random.choices(self.transforms, weights=self.p)[0](*args)

    def __repr__(self) -> str:
        return f"{super().__repr__()}(p={self.p})"


class ToTensor:
    """Makes a float tensor (C, H, W) in [0, 1] of a picture; see `functional.to_tensor`."""

    def __call__(self, pic: Any) -> Tensor:
        return functional.to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PILToTensor:
    """Makes a tensor (C, H, W) of a PIL image, numbers as they are."""

    def __call__(self, pic: Any) -> Tensor:
        return functional.pil_to_tensor(pic)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ToPILImage:
    """Makes a PIL image of a tensor or an array; see `functional.to_pil_image`."""

    def __init__(self, mode: str | None = None) -> None:
        self.mode = mode

    def __call__(self, pic: Any) -> Any:
        return functional.to_pil_image(pic, self.mode)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.mode is None else f'mode={self.mode}'})"


class ConvertImageDtype(Module):
    """Changes dtype and range of a tensor; see `functional.convert_image_dtype`."""

    def __init__(self, dtype: DType) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, image: Tensor) -> Tensor:
        """The picture in the other dtype."""
        return functional.convert_image_dtype(image, self.dtype)


class Normalize(AttributeRepr):
    """Shifts and scales the channels of a float tensor; see `functional.normalize`."""

    repr_fields = ("mean", "std")

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = mean
        self.std = std
        self.inplace = inplace

    def forward(self, tensor: Tensor) -> Tensor:
        """The picture, shifted and scaled."""
        return functional.normalize(tensor, self.mean, self.std, self.inplace)


class LinearTransformation(Module):
    """Subtracts a mean (D,) from the flattened picture and multiplies by a matrix (D, D).

    D is C * H * W of a tensor (..., C, H, W). It is what whitening needs.
    """

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        rows, columns = transformation_matrix.shape
        if rows != columns:
            raise ValueError(
                "transformation_matrix should be square. Got "
                f"{tuple(transformation_matrix.shape)} rectangular matrix."
            )
        if mean_vector.shape[0] != rows:
            raise ValueError(
                f"mean_vector should have the same length {mean_vector.shape[0]} as any one of "
                f"the dimensions of the transformation_matrix [{(rows, columns)}]"
            )
        if transformation_matrix.dtype != mean_vector.dtype:
            raise ValueError(
                "Input tensors should have the same dtype. Got "
                f"{transformation_matrix.dtype} and {mean_vector.dtype}"
            )
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def forward(self, tensor: Tensor) -> Tensor:
        """The picture in the basis of the matrix, in its own shape."""
        return linear_transformation(tensor, self.transformation_matrix, self.mean_vector)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(transformation_matrix={self.transformation_matrix.tolist()}, "
            f"mean_vector={self.mean_vector.tolist()})"
        )


def linear_transformation(tensor: Tensor, matrix: Tensor, mean: Tensor) -> Tensor:
    """(flattened picture - mean) @ matrix, in the picture's shape."""
    channels, height, width = tensor.shape[-3:]
    if channels * height * width != matrix.shape[0]:
        raise ValueError(
            "Input tensor and transformation matrix have incompatible shape. Got "
            f"[{channels} x {height} x {width}] != {matrix.shape[0]}"
        )
    flat = tensor.reshape(-1, matrix.shape[0]) - mean.to(tensor.device)
    return (flat @ matrix.to(tensor.device)).reshape(tensor.shape)
