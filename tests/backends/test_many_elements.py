"""Sums by products with ones, products of many rows, extremes and copies by threads: what large
arrays alone get."""

from __future__ import annotations

import numpy as np
import pytest

from tensorflow_lite_clone.backends.numpy import primitives
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags

SHAPES = [
    (3, 128), (2, 3, 192), (5, 64, 64), (2, 4, 7, 320), (1, 16384), (3, 127), (67, 3), (3, 43, 5),
    (5, 2, 521), (18, 2, 19, 3),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_many_elements_match_float64(monkeypatch, shape, dtype):
    monkeypatch.setattr(tuning, "blas_sum_elements", 1)
    monkeypatch.setattr(tuning, "blas_sum_run", 8)
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    x[0, 0] = 1e4
    last = len(shape) - 1
    together = (0, last), (0, 1), (last, last - 1), tuple(range(len(shape)))
    for axis in (None, -1, last, 0, 1, *together, ()):
        for keepdims in (False, True):
            for ours, theirs in ((primitives.sum, np.sum), (primitives.mean, np.mean)):
                found = ours(x, axis=axis, keepdims=keepdims)
                want = theirs(x, axis=axis, keepdims=keepdims, dtype=np.longdouble)
                assert found.shape == want.shape and found.dtype == dtype
                scale = np.abs(x).astype("f8")
                bound = theirs(scale, axis=axis, keepdims=keepdims) * 8 * np.finfo(dtype).eps
                assert (np.abs(found - want) <= bound).all()


@pytest.mark.parametrize(("shape", "axis"), [((300_000, 2), 0), ((2, 150_000, 2), 1)])
def test_sums_of_many_rows_are_no_less_exact(shape, axis):
    x = np.random.default_rng(0).standard_normal(shape).astype("f4") + np.float32(1)
    error = np.abs(primitives.sum(x, axis=axis) - np.sum(x, axis, np.float64)).max()
    assert error <= 4 * np.spacing(np.float32(shape[axis]))  # one by one: some 100


def test_sums_of_infinities_and_nan_match_numpy(monkeypatch):
    monkeypatch.setattr(tuning, "blas_sum_elements", 1)
    x = np.ones((4, 128), "f4")
    x[0, 3], x[1, 5], x[2, 7], x[2, 8] = np.inf, np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(primitives.sum(x, axis=1), [np.inf, np.nan, np.nan, 128])


@pytest.mark.parametrize("columns", [3, 130])
def test_products_of_strided_rows_match_numpy(columns):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 5, 6)).swapaxes(0, 1), rng.standard_normal((columns, 6)).T
    found = primitives.matmul(x, y)
    np.testing.assert_allclose(found, np.einsum("abk,kc->abc", x, y), rtol=1e-12)
    assert found.flags.c_contiguous and found.base is None


def test_extremes_by_threads_match_numpy(monkeypatch):
    monkeypatch.setattr(tuning, "extremes_per_thread", 16)
    monkeypatch.setattr(flags, "threads", 3)
    x = np.random.default_rng(0).standard_normal((4, 7, 9)).astype("f4")
    x[1, 2, 3] = np.nan
    for ours, theirs in ((primitives.max, np.max), (primitives.min, np.min)):
        for keepdims in (False, True):
            want = theirs(x, axis=-1, keepdims=keepdims)
            np.testing.assert_array_equal(ours(x, axis=-1, keepdims=keepdims), want)


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0)])
def test_copies_by_threads_match_numpy(monkeypatch, axes):
    monkeypatch.setattr(tuning, "shared_copy", 8)
    monkeypatch.setattr(flags, "threads", 3)
    for shape in ((5, 140, 600), (1, 9, 11), (2, 0, 3)):
        x = np.arange(np.prod(shape), dtype="i4").reshape(shape).transpose(axes)
        copied = primitives.copy(x)
        assert copied.flags.c_contiguous and copied.flags.owndata
        np.testing.assert_array_equal(copied, x)


def test_reshapes_of_strided_arrays_match_numpy():
    x = np.arange(600 * 700.0).reshape(600, 700)
    np.testing.assert_array_equal(primitives.reshape(x.T, (-1,)), x.T.reshape(-1))
