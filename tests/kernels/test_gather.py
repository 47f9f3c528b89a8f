"""Rows at an index: every dtype, row length, alignment and kind of index, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import needs_gpu, poison

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

ROWS = 37
INDEX = np.random.default_rng(0).integers(-ROWS, ROWS, (5, 9))


def taken(x: Any, index: Any) -> Any:
    from tensorflow_lite_clone.backends.cupy.primitives.indexing import take

    poison(cupy)
    return take(x, index, axis=0)


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("columns", [1, 3, 4, 31, 64, 129, 1000])
def test_rows(columns: int, dtype: str, kind: str) -> None:
    host = (np.arange(ROWS * columns) % 251).reshape(ROWS, columns).astype(dtype)
    index = INDEX.astype(kind)
    x = cupy.asarray(host)
    for y in (taken(x, cupy.asarray(index)), taken(x, cupy.asarray(index.T.copy()).T)):
        assert y.flags.c_contiguous and y.dtype == x.dtype
        np.testing.assert_array_equal(y.get(), host[index])


@pytest.mark.parametrize("start", range(1, 9))
def test_unaligned_rows(start: int) -> None:
    flat = cupy.arange(start + ROWS * 24, dtype=np.uint8)
    x = flat[start:].reshape(ROWS, 24)
    np.testing.assert_array_equal(taken(x, cupy.asarray(INDEX)).get(), x.get()[INDEX])


def test_other_shapes() -> None:
    x = cupy.arange(2.0 * 3 * 4).reshape(2, 3, 4)
    for index in (np.array(1), np.array([], np.int64), np.array([[1, 0]])):
        assert (taken(x, cupy.asarray(index)).get() == x.get()[index]).all()
    assert taken(cupy.zeros((3, 0)), cupy.asarray([2, 1])).shape == (2, 0)
    with pytest.raises(IndexError):
        taken(cupy.zeros((0, 3)), cupy.asarray([0]))
    assert (taken(cupy.arange(5), cupy.asarray([4, 0])).get() == [4, 0]).all()
    transposed = cupy.arange(6.0).reshape(2, 3).T
    assert (taken(transposed, cupy.asarray([2, 0])).get() == transposed.get()[[2, 0]]).all()


def test_public_functions() -> None:
    x, index = tlc.randn(ROWS, 12), tlc.tensor(INDEX % ROWS)
    there, places = x.cuda().requires_grad_(), index.cuda()
    assert tlc.equal(there[places].cpu(), x[index])
    assert tlc.equal(tlc.nn.functional.embedding(places, there).cpu(), x[index])
    assert tlc.equal(there.index_select(0, places[0]).cpu(), x.index_select(0, index[0]))
    there[places].sum().backward()
    counts = tlc.bincount(index.reshape(-1), minlength=ROWS)
    assert tlc.equal(there.grad.sum(1).cpu(), 12.0 * counts)
