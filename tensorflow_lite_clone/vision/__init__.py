"""Pictures: datasets and transforms, with torchvision's names."""

from __future__ import annotations

from tensorflow_lite_clone.vision import datasets, transforms

__all__ = ["datasets", "transforms"]
