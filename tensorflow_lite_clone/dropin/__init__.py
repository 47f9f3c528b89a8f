"""Programs written for PyTorch, run as they are.

`install_as_torch` makes ``import torch`` and ``import torchvision`` mean this package, in this
process and in those that it starts; `run` is the command ``python -m tensorflow_lite_clone``.
"""

from __future__ import annotations

from tensorflow_lite_clone.dropin.finder import install_as_torch

__all__ = ["install_as_torch"]
