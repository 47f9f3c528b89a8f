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
from tensorflow_lite_clone.array_api._register import creation_functions, standard_functions
from tensorflow_lite_clone.ops.create.convert import to_device as _transfer


def _namespace(api_version: str | None) -> Any:
    """This module; ValueError for a version of the standard that there is not."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"array API version {api_version!r}: {', '.join(_VERSIONS)} are served")
    return sys.modules[__name__]


def _find(name: str) -> tuple[Any, bool] | None:
    """A function of the standard, and whether it makes a tensor from nothing, on a device."""
    if name in creation_functions:
        return creation_functions[name], True
    return (standard_functions[name], False) if name in standard_functions else None


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


standard_functions["fft"] = fft
standard_functions["linalg"] = linalg
globals().update(creation_functions)
globals().update(standard_functions)
globals().update(info.WORDS)
__array_api_version__ = _VERSIONS[-1]
__all__ = sorted([*creation_functions, *standard_functions, *info.WORDS])  # noqa: PLE0605
# For formulas alone: the standard has a method.
standard_functions["transfer"] = lambda x, *, device, non_blocking=False: _transfer(
    x, device, non_blocking
)
