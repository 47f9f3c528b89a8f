"""``torch.amp.autocast_mode``: where PyTorch's own code keeps `autocast`."""

from __future__ import annotations

from tensorflow_lite_clone.amp.autocast import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
