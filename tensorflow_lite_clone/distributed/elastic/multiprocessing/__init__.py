"""What programs use of PyTorch's launcher: its processes, and their errors."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.elastic.multiprocessing import api, errors
from tensorflow_lite_clone.distributed.elastic.multiprocessing.api import (
    DefaultLogsSpecs,
    SignalException,
    Std,
)
from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import ProcessFailure

__all__ = ["DefaultLogsSpecs", "ProcessFailure", "SignalException", "Std", "api", "errors"]
