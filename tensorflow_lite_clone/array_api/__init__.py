"""The array API standard's functions over Tensors: differentiable, and the recorded ``F``.

The standard: https://data-apis.org/array-api/2025.12/.
"""

from __future__ import annotations

import sys
from typing import Any

from tensorflow_lite_clone.array_api import (  # noqa: F401  importing enters the words
    create,
    fft,
    index,
    info,
    linalg,
    matmul,
    pointwise,
    reduce,
    shape,
    sort,
)
from tensorflow_lite_clone.autograd.namespaces import creation_words, standard_words
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.create import convert
from tensorflow_lite_clone.tensor import Tensor


@public("method")
def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The array API namespace whose functions take this tensor.

    Raises ValueError for a version of the standard that there is not.
    """
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"array API version {api_version!r}: {', '.join(_VERSIONS)} are served")
    return sys.modules[__name__]


@public("method")
def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The standard's `to`: this tensor on a device, itself where it lies there already."""
    return convert.to(self, device)


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


standard_words["fft"] = fft
standard_words["linalg"] = linalg
globals().update(creation_words)
globals().update(standard_words)
globals().update(info.WORDS)
__array_api_version__ = _VERSIONS[-1]
__all__ = sorted([*creation_words, *standard_words, *info.WORDS])  # noqa: PLE0605
