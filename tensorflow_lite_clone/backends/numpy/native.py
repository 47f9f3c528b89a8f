"""The NumPy dtype of every DType."""

from __future__ import annotations

from tensorflow_lite_clone.core.dtypes import Natives

NATIVE = Natives()  # DType -> numpy dtype, filled by the backend
