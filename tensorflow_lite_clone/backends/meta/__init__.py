"""The device ``meta``: tensors of shapes, dtypes and strides, without elements or memory.

What a primitive gives follows from its record (`dispatch.primitives`), so that every op whose
results do not depend on values runs here, forward and backward, as it does on other devices.
"""

from __future__ import annotations

from tensorflow_lite_clone.backends.meta.backend import backend

__all__ = ["backend"]
