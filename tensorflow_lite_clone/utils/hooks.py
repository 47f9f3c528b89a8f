"""Handles of hooks, and hooks that do not go into files, as ``torch.utils.hooks``."""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.handles import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Any) -> Any:
    """Mark a hook as one whose loss, when its tensor is saved, is no reason to warn."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn about the hooks of a tensor that a file would not hold."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=level_outside(),
            )
