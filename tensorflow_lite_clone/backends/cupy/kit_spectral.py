"""Decompositions that CuPy lacks, or has only with some versions of cuSOLVER: on the host."""

from __future__ import annotations

from typing import Any

import cupy

from tensorflow_lite_clone.backends.numpy import kit_spectral as host


def eigen(x: Any) -> tuple[Any, Any]:
    values, vectors = host.eigen(x.get())
    return cupy.asarray(values), cupy.asarray(vectors)


def eigenvalues(x: Any) -> Any:
    return cupy.asarray(host.eigenvalues(x.get()))


def geqrf(x: Any) -> tuple[Any, Any]:
    a, tau = host.geqrf(x.get())
    return cupy.asarray(a), cupy.asarray(tau)
