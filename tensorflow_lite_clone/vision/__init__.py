"""Pictures: datasets, transforms, models and operators, with torchvision's names."""

from __future__ import annotations

from tensorflow_lite_clone.vision import datasets, models, ops, transforms

__all__ = ["datasets", "models", "ops", "transforms"]
