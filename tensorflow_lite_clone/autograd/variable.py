"""``torch.autograd.variable``: a Variable has been a Tensor since PyTorch 0.4."""

from __future__ import annotations

from tensorflow_lite_clone.autograd.engine import queue_callback
from tensorflow_lite_clone.tensor import Tensor as Variable


class _ExecutionEngine:
    """What programs reach of the engine: callbacks for the end of a backward pass."""

    queue_callback = staticmethod(queue_callback)


Variable._execution_engine = _ExecutionEngine()  # type: ignore[attr-defined]

__all__ = ["Variable"]
