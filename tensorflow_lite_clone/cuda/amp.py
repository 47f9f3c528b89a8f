"""``torch.cuda.amp``: mixed precision with the device type fixed; new code uses ``torch.amp``."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.amp import GradScaler as _GradScaler
from tensorflow_lite_clone.amp import autocast as _autocast
from tensorflow_lite_clone.amp import custom_bwd, custom_fwd
from tensorflow_lite_clone.core.dtypes import DType, float16


class autocast(_autocast):
    """`torch.amp.autocast` for CUDA devices."""

    def __init__(
        self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(_GradScaler):
    """`torch.amp.GradScaler` for CUDA devices."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
