"""Transforms of pictures, with torchvision's names.

Random ones draw from the default generator of tensors, but for `RandomChoice` and `RandomOrder`,
which draw from Python's `random`. The draws are torchvision's.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from tensorflow_lite_clone.vision.transforms import autoaugment, functional, transforms
from tensorflow_lite_clone.vision.transforms.autoaugment import *  # noqa: F403
from tensorflow_lite_clone.vision.transforms.transforms import *  # noqa: F403

__all__ = [*transforms.__all__, *autoaugment.__all__, "functional", "v2"]  # noqa: F405


def __getattr__(name: str) -> Any:
    if name == "v2":
        return _import_module(f"{__name__}.v2")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
