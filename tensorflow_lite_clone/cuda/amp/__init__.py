"""``torch.cuda.amp``: mixed precision with the device type fixed; new code uses ``torch.amp``."""

from __future__ import annotations

from tensorflow_lite_clone.cuda.amp import autocast_mode, grad_scaler
from tensorflow_lite_clone.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from tensorflow_lite_clone.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "autocast_mode", "custom_bwd", "custom_fwd", "grad_scaler"]
