"""Pictures, with torchvision's names: datasets, transforms, models, operators, files, drawing.

The parts are imported when they are first named. `__version__` names the torchvision whose
behaviour is followed.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from tensorflow_lite_clone import _absent

__version__ = "0.28.0"

_LAZY = ("datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils")

__all__ = [  # noqa: F822 (they are lazy)
    "__version__",
    "datasets",
    "get_image_backend",
    "io",
    "models",
    "ops",
    "set_image_backend",
    "transforms",
    "tv_tensors",
    "utils",
]


def get_image_backend() -> str:
    """The package that loads pictures: Pillow."""
    return "PIL"


def set_image_backend(backend: str) -> None:
    """Choose the package that loads pictures; there is Pillow (``"PIL"``) alone."""
    if backend != "PIL":
        raise ValueError(f"Invalid backend '{backend}'. Options are 'PIL'")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise _absent.error(f"module '{__name__}'", "torchvision", name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
