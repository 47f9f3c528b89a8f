"""`FakeTensor`: what is noted of the tensors of a graph."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.core.torch_function import disabled
from tensorflow_lite_clone.export._expressions import Expression
from tensorflow_lite_clone.export._symbolic import SymInt
from tensorflow_lite_clone.tensor import Tensor


class FakeTensor(Tensor):
    """A tensor of a graph as notes on nodes show it: without values; sizes may be symbolic."""

    __torch_function__ = disabled
    _shown: tuple[Any, Device]

    @classmethod
    def noted(cls, tensor: Tensor, sizes: Any, device: Device, requires_grad: bool) -> FakeTensor:
        """The note of a tensor on the meta device, whose sizes are numbers or expressions."""
        note: FakeTensor = tensor.detach().as_subclass(cls)
        note.requires_grad_(requires_grad)
        shown = [
            (SymInt(None, size) if size.number is None else size.number)  # type: ignore[arg-type]
            if isinstance(size, Expression)
            else size
            for size in sizes
        ]
        note._shown = tuple.__new__(Size, shown), device
        return note

    @property
    def shape(self) -> Any:
        """The sizes, which are `SymInt` where a dimension is dynamic."""
        return self._shown[0]

    @property
    def device(self) -> Device:
        """The device that the program has the tensor on."""
        return self._shown[1]

    def size(self, dim: int | None = None) -> Any:
        """`shape`, or one of the sizes."""
        return self.shape if dim is None else self.shape[dim]

    def __repr__(self) -> str:
        kind = f", dtype={self.dtype}"
        wants = ", requires_grad=True" if self.requires_grad else ""
        return f"FakeTensor(..., size={tuple(self.shape)}{kind}{wants})"
