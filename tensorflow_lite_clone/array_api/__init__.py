"""The array API standard's functions over Tensors: differentiable, and the recorded ``F``.

The standard: https://data-apis.org/array-api/2024.12/.
"""

from __future__ import annotations

import sys
from typing import Any

from tensorflow_lite_clone.array_api import (  # noqa: F401  importing enters the words
    create,
    fft,
    index,
    linalg,
    matmul,
    pointwise,
    reduce,
    shape,
    sort,
)
from tensorflow_lite_clone.autograd.namespaces import creation_words, standard_words
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.tensor import Tensor


@public("method")
def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    """The array API namespace whose functions take this tensor."""
    return sys.modules[__name__]


standard_words["fft"] = fft
standard_words["linalg"] = linalg
globals().update(creation_words)
globals().update(standard_words)
__array_api_version__ = "2024.12"
__all__ = sorted([*creation_words, *standard_words])  # noqa: PLE0605
