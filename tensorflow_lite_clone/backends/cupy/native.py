"""The dtype of CuPy's arrays for every DType: NumPy's, and `ml_dtypes`' bfloat16."""

from __future__ import annotations

from tensorflow_lite_clone.backends.numpy.backend import NATIVE

__all__ = ["NATIVE"]
