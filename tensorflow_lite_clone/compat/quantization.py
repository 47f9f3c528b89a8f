"""The older name of `ao.quantization`."""

from __future__ import annotations

from tensorflow_lite_clone.ao.quantization import *  # noqa: F403
from tensorflow_lite_clone.ao.quantization import __all__  # noqa: F401
