"""The dtype of CuPy's arrays for every DType: NumPy's, and `ml_dtypes`' bfloat16."""

from __future__ import annotations

from tensorflow_lite_clone.backends.numpy.backend import NATIVE as _OF_HOST
from tensorflow_lite_clone.core.dtypes import FLOAT8, Natives

NATIVE = Natives({d: native for d, native in _OF_HOST.items() if d not in FLOAT8})
