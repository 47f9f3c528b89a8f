"""Optimizers and learning-rate schedules, as ``torch.optim``."""

from __future__ import annotations

from tensorflow_lite_clone.optim import lr_scheduler

__all__ = ["lr_scheduler"]
