"""PyTorch's place of the class of compiled modules."""

from __future__ import annotations

from tensorflow_lite_clone.compiler import OptimizedModule


def is_dynamo_supported() -> bool:
    """True: functions are recorded on every platform."""
    return True


__all__ = ["OptimizedModule", "is_dynamo_supported"]
