"""Ways to train that wrap a model."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.algorithms import _checkpoint

__all__ = ["_checkpoint"]
