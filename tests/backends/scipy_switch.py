"""NumPy's primitives with SciPy beside it and without."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from unittest import mock

import pytest

from tensorflow_lite_clone.backends.numpy import with_scipy

needs_scipy = pytest.mark.skipif(
    importlib.util.find_spec("scipy") is None, reason="SciPy is not installed"
)
both = pytest.mark.parametrize("scipy", [False, pytest.param(True, marks=needs_scipy)])


@contextlib.contextmanager
def without_scipy() -> Iterator[None]:
    """Primitives as they are where SciPy is not installed."""
    found = (with_scipy._part, with_scipy.ufunc, with_scipy.routine)
    for cached in found:
        cached.cache_clear()
    with mock.patch.dict(sys.modules, {"scipy": None}):
        yield
    for cached in found:
        cached.cache_clear()


def beside(scipy: bool) -> contextlib.AbstractContextManager:
    """SciPy beside the formulas, or not."""
    return contextlib.nullcontext() if scipy else without_scipy()
