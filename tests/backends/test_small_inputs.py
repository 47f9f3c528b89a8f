"""Few short rows, which take few calls: what they give beside PyTorch in float64, and what is left
to the usual forms."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy import small_inputs

SHAPES = [(4, 8), (1, 2), (64, 3), (2, 3, 5), (7, 33)]


def rows(shape: tuple, scale: float = 1.0) -> np.ndarray:
    values = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    return values * np.float32(scale)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
def test_small_softmax_matches_float64(shape: tuple, dtype: type) -> None:
    x = rows(shape).astype(dtype) + 20
    exact = torch.from_numpy(x).double()
    atol = 4e-7 if dtype is np.float32 else 1e-14
    axis = len(shape) - 1
    for logarithm in (False, True):
        found = small_inputs.softmax(x, axis, logarithm)
        wanted = (exact.log_softmax(-1) if logarithm else exact.softmax(-1)).numpy()
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=5e-7, atol=atol)


@pytest.mark.parametrize(
    "x",
    [
        rows((4, 8)).T,  # not row-major
        rows((4, 8)).astype(np.float16),
        rows((4, 1)),
        rows((65, 2)),
        np.zeros((0, 4), np.float32),
        np.array([[0, 1], [-9, -9]], np.float32),  # too far apart
        np.array([[0, math.nan], [0, 1]], np.float32),
        np.array([[0, 1], [0, math.inf]], np.float32),
        np.full((2, 3), -math.inf, np.float32),
    ],
)
def test_small_softmax_declines_large_inputs(x: np.ndarray) -> None:
    assert small_inputs.softmax(x, 1, False) is NotImplemented
    assert small_inputs.softmax(x, 1, True) is NotImplemented
    assert small_inputs.softmax(rows((4, 8)), 0, False) is NotImplemented
    labels = np.zeros(len(x), np.int64)
    assert small_inputs.cross_entropy(x, labels, "mean", -100) is NotImplemented


def test_small_softmax_declines_rows_of_a_wide_range() -> None:
    """The range is that of all rows, whatever the first one is."""
    for first in (math.nan, 0.0):
        x = np.array([[first, 0], [0, 89], [0, 0]], np.float32)
        assert small_inputs.cross_entropy(x, np.zeros(3, np.int64), "mean", -100) is NotImplemented
        assert small_inputs.softmax(x, 1, False) is NotImplemented
        exact = torch.from_numpy(x).softmax(1).numpy()
        np.testing.assert_array_equal(tlc.from_numpy(x).softmax(1).numpy(), exact)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(4, 8), (1, 2), (64, 3)])
def test_small_cross_entropy_matches_float64(shape: tuple, reduction: str) -> None:
    x = rows(shape, 2)
    labels = np.arange(shape[0]) % shape[1]
    loss, logs = small_inputs.cross_entropy(x, labels, reduction, -100)
    exact, target = torch.from_numpy(x).double(), torch.from_numpy(labels)
    wanted = torch.nn.functional.cross_entropy(exact, target, reduction=reduction).numpy()
    assert loss.dtype == np.float32 and loss.shape == wanted.shape
    np.testing.assert_allclose(loss, wanted, rtol=4e-7, atol=4e-7)
    np.testing.assert_allclose(logs, exact.logsumexp(1).numpy(), rtol=4e-7, atol=4e-7)
    for ignored, place in ((1, 0), (-100, shape[1]), (-100, -1)):
        other = labels.copy()
        other[0] = place
        assert small_inputs.cross_entropy(x, other, reduction, ignored) is NotImplemented


def test_small_cross_entropy_is_never_negative() -> None:
    x = np.array([[7.0, -9.0]] * 3, np.float32)
    assert small_inputs.cross_entropy(x, np.zeros(3, np.int64), "none", -100)[0].min() >= 0
    assert small_inputs.softmax(x, 1, True).max() <= 0


@pytest.mark.parametrize("affine", ["", "w", "wb"])
@pytest.mark.parametrize(("shape", "ndim"), [((4, 8), 1), ((3, 2, 5), 1), ((3, 2, 5), 2)])
def test_small_layer_norm_matches_float64(shape: tuple, ndim: int, affine: str) -> None:
    x, space = rows(shape, 2) + np.float32(3), shape[-ndim:]
    w = rows(space) if "w" in affine else None
    b = rows(space)[::-1].copy() if "b" in affine else None
    y, mean, rstd = small_inputs.layer_norm(x, w, b, ndim, 1e-5)
    wide = [None if a is None else torch.from_numpy(a).double() for a in (x, w, b)]
    exact, exact_mean, exact_rstd = torch.native_layer_norm(wide[0], space, wide[1], wide[2], 1e-5)
    np.testing.assert_allclose(y, exact.numpy(), rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(mean, exact_mean.reshape(-1, 1).numpy(), rtol=1e-6)
    np.testing.assert_allclose(rstd, exact_rstd.reshape(-1, 1).numpy(), rtol=1e-6)
    for wrong in (x[::2], x.astype(np.float16)):
        assert small_inputs.layer_norm(wrong, w, b, ndim, 1e-5) is NotImplemented


def test_small_inputs_are_not_written_to() -> None:
    x, w = rows((4, 8)), rows((8,))
    before = x.copy(), w.copy()
    small_inputs.softmax(x, 1, False), small_inputs.softmax(x, 1, True)
    (
        small_inputs.cross_entropy(x, np.arange(4), "mean", -100),
        small_inputs.layer_norm(x, w, w, 1, 1e-5),
    )
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(w, before[1])


@pytest.mark.parametrize(("value", "size"), [(1000.1, 63), (10000.1, 48), (-3e5, 7)])
def test_small_layer_norm_of_constant_rows_is_zero(value: float, size: int) -> None:
    x = np.full((3, size), value, np.float32)
    y, means, _ = small_inputs.layer_norm(x, None, None, 1, 1e-5)
    np.testing.assert_allclose(y, np.zeros_like(x), atol=1e-6)
    np.testing.assert_array_equal(means, x[:, :1])
