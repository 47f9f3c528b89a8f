"""`Variable`, by which old programs wrap tensors."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.attributes import detach
from tensorflow_lite_clone.autograd.engine import queue_callback
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """The type of `Variable`, whose instances are all tensors."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=VariableMeta):
    """``Variable(data, requires_grad)`` is a tensor of its own over the memory of `data`."""

    def __new__(  # type: ignore[misc]
        cls, data: Tensor | None = None, requires_grad: bool = False, volatile: Any = None
    ) -> Tensor:
        if volatile is not None:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=level_outside(),
            )
        if data is None:
            return Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return detach(data).requires_grad_(requires_grad)


class _ExecutionEngine:
    """What programs reach of the engine: callbacks for the end of a backward pass."""

    queue_callback = staticmethod(queue_callback)


Variable._execution_engine = _ExecutionEngine()  # type: ignore[attr-defined]
