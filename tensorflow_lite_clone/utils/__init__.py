"""Tools around training: `utils.data`, `utils.checkpoint`, `utils.dlpack`."""

from __future__ import annotations

from tensorflow_lite_clone.utils import _pytree, checkpoint, data, dlpack

__all__ = ["_pytree", "checkpoint", "data", "dlpack"]
