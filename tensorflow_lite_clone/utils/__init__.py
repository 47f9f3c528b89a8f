"""Tools around training: `utils.data`, `utils.checkpoint`, `utils.tensorboard` and others."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from tensorflow_lite_clone import _absent
from tensorflow_lite_clone.autograd.swap import swap_tensors
from tensorflow_lite_clone.core.compat_path import mount_compat
from tensorflow_lite_clone.utils import _pytree, checkpoint, data, deterministic, dlpack, hooks

mount_compat(__path__, __name__)

#: Parts that are imported when first named.
_LAZY = (
    "_mode_utils",
    "_python_dispatch",
    "benchmark",
    "collect_env",
    "flop_counter",
    "model_zoo",
    "runs",
    "tensorboard",
)

__all__ = [
    "_pytree",
    "checkpoint",
    "data",
    "deterministic",
    "dlpack",
    "hooks",
    "set_module",
    "swap_tensors",
]


def set_module(obj: Any, mod: str) -> None:
    """Say that `obj` lives in the module `mod`."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return _import_module(f"{__name__}.{name}")
    raise _absent.error(f"module '{__name__}'", "torch.utils", name)
