"""`__torch_dispatch__`: modes and classes that see every operation, by PyTorch's names."""

from __future__ import annotations

from importlib import import_module

from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.python_dispatch import wrappers

__all__ = ["wrappers"]


def _load() -> None:
    for name in ("composites", "forms", "gradients", "shapes", "steps"):
        import_module(f"{__name__}.{name}")


aten.later.append(_load)
