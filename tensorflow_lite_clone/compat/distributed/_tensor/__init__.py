"""The older name of `torch.distributed.tensor`."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.tensor import *  # noqa: F403
from tensorflow_lite_clone.distributed.tensor import __all__  # noqa: F401
