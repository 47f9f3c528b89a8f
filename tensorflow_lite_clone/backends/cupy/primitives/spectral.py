"""Decompositions that the array API standard has no word for.

CuPy has eigenvalues of general matrices with some versions of cuSOLVER only: here on the host.
"""

from __future__ import annotations

from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.host_fallback import on_host_with_warning
from tensorflow_lite_clone.backends.numpy.primitives import spectral as numpy_spectral

_EIGENVALUES = "eigenvalues of general matrices"


def eigen(x: Any) -> tuple[Any, Any]:
    return on_host_with_warning(_EIGENVALUES, numpy_spectral.eigen, x)


def eigenvalues(x: Any) -> Any:
    return on_host_with_warning(_EIGENVALUES, numpy_spectral.eigenvalues, x)


def geqrf(x: Any) -> tuple[Any, Any]:
    transposed, tau = cupy.linalg.qr(x, "raw")
    return transposed.swapaxes(-1, -2), tau


def singular_values(x: Any) -> Any:
    return cupy.linalg.svd(x, compute_uv=False)
