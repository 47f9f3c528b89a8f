"""Tools around training: `utils.data`, `utils.checkpoint`, `utils.tensorboard` and others."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from tensorflow_lite_clone.utils import checkpoint, data, dlpack

#: Parts that are imported when first named.
_LAZY = ("model_zoo", "tensorboard")

__all__ = ["checkpoint", "data", "dlpack"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
