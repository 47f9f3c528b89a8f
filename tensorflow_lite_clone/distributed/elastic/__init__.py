"""What programs use of PyTorch's launcher."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.elastic import multiprocessing

__all__ = ["multiprocessing"]
