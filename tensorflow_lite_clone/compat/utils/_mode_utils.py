"""``torch.utils._mode_utils``: blocks in which no `__torch_dispatch__` is asked."""

from __future__ import annotations

from tensorflow_lite_clone.python_dispatch.calls import no_dispatch

__all__ = ["no_dispatch"]
