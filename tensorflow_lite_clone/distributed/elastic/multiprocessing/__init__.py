"""What programs use of PyTorch's launcher: errors of the processes that it starts."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.elastic.multiprocessing import errors

__all__ = ["errors"]
