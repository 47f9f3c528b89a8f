"""Processes that train by themselves, and average their models from time to time."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.algorithms.model_averaging import averagers, utils

__all__ = ["averagers", "utils"]
