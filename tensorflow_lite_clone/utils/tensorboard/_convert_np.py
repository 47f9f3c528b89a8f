"""PyTorch's place for `make_np`."""

from __future__ import annotations

from tensorflow_lite_clone.utils.runs.contents import make_np

__all__ = ["make_np"]
