"""Decompositions that the array API standard has no word for."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.primitives import linalg


def _complex(x: Any) -> Any:
    """NumPy's results are real where all eigenvalues are."""
    return x if x.dtype.kind == "c" else x.astype(np.result_type(x.dtype, np.complex64))


def eigen(x: Any) -> tuple[Any, Any]:
    values, vectors = np.linalg.eig(x)
    return _complex(values), _complex(vectors)


def eigenvalues(x: Any) -> Any:
    return _complex(np.linalg.eigvals(x))


def geqrf(x: Any) -> tuple[Any, Any]:
    transposed, tau = np.linalg.qr(x, mode="raw")
    return transposed.swapaxes(-1, -2), tau


def singular_values(x: Any) -> Any:
    return linalg.svdvals(x)
