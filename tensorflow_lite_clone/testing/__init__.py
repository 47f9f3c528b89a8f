"""Comparing and making tensors in tests, as ``torch.testing``."""

from __future__ import annotations

from tensorflow_lite_clone.testing._comparison import assert_allclose, assert_close
from tensorflow_lite_clone.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
