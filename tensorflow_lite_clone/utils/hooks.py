"""The handle of a hook, as ``torch.utils.hooks``."""

from __future__ import annotations

from tensorflow_lite_clone.nn.modules.hooks import RemovableHandle

__all__ = ["RemovableHandle"]
