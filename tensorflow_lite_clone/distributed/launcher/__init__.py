"""The launcher for programs that start workers themselves, as ``torch.distributed.launcher``."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.launcher import api
from tensorflow_lite_clone.distributed.launcher.api import (
    LaunchConfig,
    elastic_launch,
    launch_agent,
)

__all__ = ["LaunchConfig", "api", "elastic_launch", "launch_agent"]
