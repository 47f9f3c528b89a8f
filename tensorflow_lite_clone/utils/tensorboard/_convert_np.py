"""Arrays of what programs log."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.core.dtypes import bfloat16
from tensorflow_lite_clone.tensor import Tensor


def make_np(x: Any) -> np.ndarray:
    """A NumPy array of a tensor, an array or a number (then of one element).

    bfloat16 becomes float32. NotImplementedError for anything else.
    """
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.float() if x.dtype == bfloat16 else x).numpy()
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")
