"""Collectives with gradients, as ``torch.distributed.nn``."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.nn import functional
from tensorflow_lite_clone.distributed.nn.functional import *  # noqa: F403

__all__ = ["functional", *functional.__all__]
