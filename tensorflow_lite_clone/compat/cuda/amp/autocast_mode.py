"""``torch.cuda.amp.autocast_mode``: autocast with the device type fixed."""

from __future__ import annotations

from tensorflow_lite_clone.amp import autocast as _autocast
from tensorflow_lite_clone.amp import custom_bwd, custom_fwd
from tensorflow_lite_clone.core.dtypes import DType, float16


class autocast(_autocast):
    """`torch.amp.autocast` for CUDA devices."""

    def __init__(
        self, enabled: bool = True, dtype: DType = float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype, enabled, cache_enabled)


__all__ = ["autocast", "custom_bwd", "custom_fwd"]
