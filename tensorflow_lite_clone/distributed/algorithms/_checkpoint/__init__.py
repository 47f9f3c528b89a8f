"""Activation checkpointing of the modules of a model."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.algorithms._checkpoint import checkpoint_wrapper

__all__ = ["checkpoint_wrapper"]
