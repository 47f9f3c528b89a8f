"""Reads and sums at many places, in blocks and by several threads, against indexing by NumPy;
sums of whole rows."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch.table import served


@pytest.fixture(autouse=True, params=[1, 3])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(tuning, "gather_minimum", 1)
    monkeypatch.setattr(tuning, "gather_row", 1)
    monkeypatch.setattr(tuning, "gather_block", 16)
    monkeypatch.setattr(tuning, "gather_per_thread", 8)
    monkeypatch.setattr(flags, "threads", request.param)


def drawn(shape, width, dtype="float64"):
    rng = np.random.default_rng(3)
    x = (100 * rng.standard_normal(shape)).astype(dtype)
    return x, rng.integers(0, shape[-1], (*shape[:-1], width))


@pytest.mark.parametrize("shape", [(7,), (9, 5), (2, 3, 4), (11, 1)])
@pytest.mark.parametrize("width", [1, 6, 40])
def test_gather_and_its_gradient_in_blocks_match_numpy(shape, width):
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
def test_scatter_add_in_blocks_matches_numpy(dtype):
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


PLACES = {
    "each_once": 39 - np.arange(0, 40, 3),
    "some_twice": np.arange(40) * 7 % 25,
    "some_four_times": np.r_[np.arange(30), np.arange(20), np.arange(10), np.arange(10)],
    "few": np.arange(60) % 3,
    "one": np.array([5]),
    "none": np.arange(0),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("width", [1, 40, 1100])
def test_row_gradients_match_add_at(name, width):
    """Rows named again and again, in several ways of adding them; negative ones; no padding."""
    index, count = PLACES[name], 40
    g = np.random.default_rng(5).standard_normal((index.size, width))
    expected = np.zeros((count, width))
    np.add.at(expected, index, g)
    before = served["index_select_backward", "numpy"]
    selected, negative, embedded = [
        tlc.zeros(count, width, dtype=tlc.float64, requires_grad=True) for _ in range(3)
    ]
    places = tlc.tensor(index)
    selected.index_select(0, places).backward(tlc.tensor(g))
    negative[places - count].backward(tlc.tensor(g))
    tlc.nn.functional.embedding(places, embedded, padding_idx=5).backward(tlc.tensor(g))
    for x in (selected, negative):
        np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12)
    expected[5] = 0
    np.testing.assert_allclose(embedded.grad.numpy(), expected, rtol=1e-12, atol=1e-12)
    assert served["index_select_backward", "numpy"] == before + 2


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("bad", [-1, 5, 2**31 - 1])
def test_gather_and_scatter_out_of_bounds_raise(dtype, bad):
    x, src = tlc.zeros(4, 5), tlc.ones(4, 6)
    index = tlc.zeros(4, 6, dtype=getattr(tlc, dtype))
    index[2, 3] = bad
    words = f"index {bad} is out of bounds for dimension 1 with size 5"
    for call in (
        lambda: x.gather(1, index),
        lambda: x.scatter_add(1, index, src),
        lambda: x.scatter_add_(1, index, src),
        lambda: x.index_add(1, index[2], src),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    assert not x.count_nonzero()


def test_scatter_add_of_strided_sources_matches_numpy():
    values, index = drawn((9, 12), 5)
    x = tlc.tensor(values, requires_grad=True)
    out = x.scatter_add(1, tlc.tensor(index), x.detach()[:, :5])
    expected = values.copy()
    np.add.at(expected, _rows(index), values[:, :5])
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12)
    out.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones((9, 12)))
    number = tlc.ones(()).scatter_add(0, tlc.tensor([0, 0]), tlc.tensor([1.0, 2.0]))
    assert number.shape == () and number.item() == 4
