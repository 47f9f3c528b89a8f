"""State by parameters' names, as ``torch.distributed.checkpoint``; no files of many processes."""

from __future__ import annotations

from tensorflow_lite_clone.distributed.checkpoint import state_dict

__all__ = ["state_dict"]
