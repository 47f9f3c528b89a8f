"""``torch.amp.autocast_mode``: where PyTorch's own code keeps `autocast`, and its two ends."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.amp.autocast import (
    _cast as _cast,  # transformers' Nemotron calls it
)
from tensorflow_lite_clone.amp.autocast import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def _enter_autocast(
    device_type: str,
    dtype: Any = None,
    enabled: bool = True,
    cache_enabled: bool | None = None,
) -> autocast:
    """Begin a block of autocast; returns what `_exit_autocast` ends."""
    block = autocast(device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
    block.__enter__()
    return block


def _exit_autocast(block: autocast) -> None:
    """End a block of autocast."""
    block.__exit__(None, None, None)
