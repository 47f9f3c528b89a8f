"""`__torch_dispatch__`: modes and classes that see every operation, by PyTorch's names."""

from __future__ import annotations

from tensorflow_lite_clone.python_dispatch import forms, gradients, shapes, steps, wrappers

__all__ = ["forms", "gradients", "shapes", "steps", "wrappers"]
