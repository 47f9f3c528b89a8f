"""Older names of ways to change a module in its place."""

from __future__ import annotations

from tensorflow_lite_clone.distributed._composable.checkpoint_activation import checkpoint

__all__ = ["checkpoint"]
