"""Mixed precision, as ``torch.amp``: `autocast` and `GradScaler`."""

from __future__ import annotations

from tensorflow_lite_clone.amp import autocast_mode, grad_scaler
from tensorflow_lite_clone.amp.autocast import (
    autocast,
    custom_bwd,
    custom_fwd,
    is_autocast_available,
)
from tensorflow_lite_clone.amp.grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "custom_bwd",
    "custom_fwd",
    "grad_scaler",
    "is_autocast_available",
]
