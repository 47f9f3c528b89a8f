"""The older name of `ao.nn.quantized.dynamic`."""

from __future__ import annotations

from tensorflow_lite_clone.ao.nn.quantized.dynamic import *  # noqa: F403
from tensorflow_lite_clone.ao.nn.quantized.dynamic import __all__  # noqa: F401
