"""``torch.cuda.amp.grad_scaler``: loss scaling with the device type fixed."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.amp import GradScaler as _GradScaler


class GradScaler(_GradScaler):
    """`torch.amp.GradScaler` for CUDA devices."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
