"""Parameter and Buffer: tensors that a Module registers when they are assigned to it."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.tensor.tensor import Tensor


class Parameter(Tensor):
    """A leaf tensor that is a module's parameter; it requires a gradient unless told otherwise.

    A kind of tensor that has `_as_parameter` says itself what its parameter is.
    """

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Parameter:
        convert = getattr(type(data), "_as_parameter", None)
        if convert is not None:
            return convert(data, requires_grad)
        parameter = _alias(cls, data)
        if requires_grad and parameter.dtype.kind not in "fc":
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        parameter.requires_grad_(requires_grad)
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            clone = type(self)(self.data.clone(), self.requires_grad)
            memo[id(self)] = clone
        return memo[id(self)]

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a module registers as a buffer when it is assigned to it."""

    __slots__ = ()

    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Buffer:
        buffer = _alias(cls, data)
        buffer.persistent = persistent
        return buffer


def _alias(cls: type, data: Tensor | None) -> Any:
    if data is None:
        data = Tensor()
    tensor: Any = object.__new__(cls)
    tensor._storage = data._storage
    tensor._edge = None
    tensor._view = None
    return tensor
