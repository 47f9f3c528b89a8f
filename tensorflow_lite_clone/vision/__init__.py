"""Pictures, with torchvision's names: datasets, transforms, models, operators, files, drawing.

The parts are imported when they are first named.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

_LAZY = ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils")

__all__ = ["datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils"]  # noqa: F822 (they are lazy)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
