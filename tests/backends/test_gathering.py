"""Reads and sums at many places, in blocks and by several threads, against indexing by NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy import gathering
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import served


@pytest.fixture(autouse=True, params=[1, 3])
def small_blocks(request, monkeypatch):
    for name, value in (("_LEAST", 1), ("_BLOCK", 16), ("_EACH", 8)):
        monkeypatch.setattr(gathering, name, value)
    monkeypatch.setattr(flags, "threads", request.param)


def drawn(shape, width, dtype="float64"):
    rng = np.random.default_rng(3)
    x = (100 * rng.standard_normal(shape)).astype(dtype)
    return x, rng.integers(0, shape[-1], (*shape[:-1], width))


@pytest.mark.parametrize("shape", [(7,), (9, 5), (2, 3, 4), (11, 1)])
@pytest.mark.parametrize("width", [1, 6, 40])
def test_gather_and_its_gradient(shape, width):
    before = served.copy()
    values, index = drawn(shape, width)
    x = tlc.tensor(values, requires_grad=True)
    y = x.gather(-1, tlc.tensor(index))
    np.testing.assert_array_equal(y.detach().numpy(), np.take_along_axis(values, index, -1))
    g = np.random.default_rng(4).standard_normal(index.shape)
    y.backward(tlc.tensor(g))
    expected = np.zeros(shape)
    np.add.at(expected.reshape(-1, shape[-1]), _rows(index), g.reshape(-1, width))
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12)
    for word in ("gather", "gather_backward", "scatter_add_to"):
        assert served[word, "numpy"] == before[word, "numpy"] + 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_scatter_add(dtype):
    values, index = drawn((9, 5), 20, dtype)
    src = drawn((9, 20), 1, dtype)[0]
    x = tlc.tensor(values)
    out = x.scatter_add(1, tlc.tensor(index), tlc.tensor(src))
    expected = values.copy()
    np.add.at(expected, _rows(index), src)
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-5)
    np.testing.assert_array_equal(x.numpy(), values)
    columns = tlc.tensor(values.T.copy()).t()  # in place, of another layout
    columns.scatter_add_(1, tlc.tensor(index), tlc.tensor(src))
    np.testing.assert_allclose(columns.numpy(), expected, rtol=1e-5)


def _rows(index):
    rows = index.reshape(-1, index.shape[-1])
    return np.arange(len(rows))[:, None], rows
