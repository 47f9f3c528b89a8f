"""Tensors that know what they hold: an image, a mask, boxes.

Operations give plain tensors, but `clone`, `to`, `detach` and `requires_grad_` keep the kind;
`wrap` restores it. The transforms of `transforms.v2` treat each kind in its own way.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.ops.create.constructors import as_tensor
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import is_pil
from tensorflow_lite_clone.vision.transforms._convert import pil_to_tensor


class TVTensor(Tensor):
    """What the kinds share: they are made of data, or of a tensor without a copy."""

    __torch_function__ = disabled

    least_dimensions = 0

    def __new__(
        cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None
    ) -> Any:
        return cls._of(data, dtype, device, requires_grad)

    @classmethod
    def _of(cls, data: Any, dtype: Any, device: Any, requires_grad: bool | None) -> Any:
        tensor = as_tensor(pil_to_tensor(data) if is_pil(data) else data, dtype, device)
        if tensor.ndim < cls.least_dimensions:
            if tensor.ndim < 2:
                raise ValueError(f"Tensor must be 2D or higher, got {tensor.ndim}D tensor.")
            tensor = tensor[None]
        result = tensor.as_subclass(cls)
        return result if requires_grad is None else result.requires_grad_(requires_grad)

    def like_me(self, tensor: Tensor) -> Any:
        """A plain tensor as this kind, with what else is known."""
        return tensor.as_subclass(type(self))

    def clone(self, *args: Any, **kwargs: Any) -> Any:
        """A copy of the same kind."""
        return self.like_me(super().clone(*args, **kwargs))

    def detach(self) -> Any:
        """The same memory and kind, without the graph."""
        return self.like_me(super().detach())

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Another dtype or device, the same kind."""
        moved = super().to(*args, **kwargs)
        return moved if moved is self else self.like_me(moved)

    def _text(self, **extra: Any) -> str:
        body = repr(self.as_subclass(Tensor))
        start = "tensor("
        inner = body[len(start) : -1].replace("\n" + " " * len(start), "\n" + self._indent())
        more = ", ".join(f"{name}={value}" for name, value in extra.items())
        return f"{type(self).__name__}({inner}{', ' + more if more else ''})"

    def _indent(self) -> str:
        return " " * (len(type(self).__name__) + 1)


class Image(TVTensor):
    """A picture (..., C, H, W), made of a tensor, an array (C, H, W) or a PIL image."""

    least_dimensions = 3

    def __repr__(self) -> str:
        return self._text()


class Video(TVTensor):
    """Pictures one after the other (..., T, C, H, W)."""

    def __repr__(self) -> str:
        return self._text()


class Mask(TVTensor):
    """What each pixel belongs to (..., H, W), made of a tensor, an array or a PIL image."""

    def __repr__(self) -> str:
        return self._text()


class BoundingBoxFormat(Enum):
    """What the four numbers of a box are: corners, corner and size, or middle and size."""

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"


class BoundingBoxes(TVTensor):
    """Boxes (N, 4) in a picture of (H, W) = `canvas_size`; one box may be given as (4,).

    `format` is a `BoundingBoxFormat` or its name.
    """

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]

    def __new__(
        cls,
        data: Any,
        *,
        format: BoundingBoxFormat | str,
        canvas_size: tuple[int, int],
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Any:
        if isinstance(format, str):
            format = BoundingBoxFormat[format.upper()]
        tensor = as_tensor(data)
        if tensor.ndim == 1:
            tensor = tensor[None]
        elif tensor.ndim != 2:
            raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
        boxes = cls._of(tensor, dtype, device, requires_grad)
        boxes.format, boxes.canvas_size = format, canvas_size
        return boxes

    def like_me(self, tensor: Tensor, **changed: Any) -> BoundingBoxes:
        """A plain tensor as boxes of this format and canvas, or of changed ones."""
        known: dict[str, Any] = {"format": self.format, "canvas_size": self.canvas_size}
        return BoundingBoxes(tensor, **(known | changed))

    def __repr__(self) -> str:
        return self._text(format=self.format, canvas_size=self.canvas_size)


def wrap(wrappee: Tensor, *, like: Tensor, **kwargs: Any) -> Any:
    """A plain tensor as the kind of `like`, with its format and canvas or those in `kwargs`."""
    if not isinstance(like, TVTensor):
        return wrappee
    return like.like_me(wrappee, **kwargs)
