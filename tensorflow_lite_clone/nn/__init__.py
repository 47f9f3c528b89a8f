"""Building blocks of networks, as ``torch.nn``."""

from __future__ import annotations

from tensorflow_lite_clone.nn import attention, functional, init, modules, parallel, utils
from tensorflow_lite_clone.nn.modules import *  # noqa: F403
from tensorflow_lite_clone.nn.parallel import DataParallel
from tensorflow_lite_clone.nn.parameter import Buffer, Parameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "attention",
    "functional",
    "init",
    "modules",
    "parallel",
    "utils",
    *modules.__all__,
]
