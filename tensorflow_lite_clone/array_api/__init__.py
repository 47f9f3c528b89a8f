"""The array API standard's functions over Tensors: differentiable, and the recorded ``F``.

The standard: https://data-apis.org/array-api/2024.12/.
"""

from __future__ import annotations

from tensorflow_lite_clone.array_api import (  # noqa: F401  importing enters the words
    reduce as _reduce,
)
from tensorflow_lite_clone.autograd.namespaces import creation_words, standard_words

globals().update(creation_words)
globals().update(standard_words)
__array_api_version__ = "2024.12"
__all__ = sorted([*creation_words, *standard_words])  # noqa: PLE0605
