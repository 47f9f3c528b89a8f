"""Values combined at indices beside NumPy, for every form of index and every dtype."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import Laid, check, needs_gpu, on_device

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

RNG = np.random.default_rng(0)
ALL = slice(None)


def at(*shape, size=3):
    """Indices of [-size, size)."""
    return RNG.integers(-size, size, shape)


FORMS = {
    "rows": ((3, 4), at(5)),
    "rows in a tuple": ((3, 300), (at(5),)),
    "rows by a matrix": ((3, 7), at(2, 3)),
    "one row": ((3, 4), np.array(-2)),
    "elements": ((3, 4), (at(40), at(40))),
    "elements that broadcast": ((3, 4, 2), (at(2, 1), at(1, 5))),
    "columns": ((3, 4, 5), (ALL, at(6))),
    "columns by a matrix": ((3, 4, 5), (ALL, at(2, 3))),
    "last axis": ((2, 3, 4), (ALL, ALL, at(70))),
    "two axes side by side": ((3, 4, 5, 2), (ALL, at(2, 3), at(2, 3))),
    "two axes apart": ((3, 4, 5, 2), (at(2, 3), ALL, at(2, 3))),
    "three axes apart": ((3, 4, 3, 3), (at(6), ALL, at(6), at(6))),
    "part of an axis": ((3, 4, 5), (slice(0, 2), at(4))),
    "mask": ((3, 4), RNG.random((3, 4)) > 0.5),
    "flat": ((12,), at(3, 50, size=12)),
    "a long row": ((3, 5000), at(4)),
    "nothing": ((3, 4), at(0)),
}
DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64", "complex64")


def words():
    from tensorflow_lite_clone import backends

    return backends.load("cuda:0").primitives, backends.load("cpu").primitives


def placed(index):
    """The index with its arrays on the device."""
    if isinstance(index, tuple):
        return tuple(map(placed, index))
    return cupy.asarray(index) if isinstance(index, np.ndarray) else index


def drawn(shape, dtype):
    x = RNG.integers(-3, 4, shape)
    return (np.abs(x) if np.dtype(dtype).kind in "u" else x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_add(form, dtype):
    shape, index = FORMS[form]
    device, _ = words()
    x = drawn(shape, dtype)
    value = drawn(x[index].shape, dtype)
    mine = cupy.asarray(x)
    device.add_at(mine, placed(index), cupy.asarray(value))
    np.add.at(x, index, value)
    np.testing.assert_array_equal(mine.get(), x)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "complex64"] + ["float16"])
@pytest.mark.parametrize("how", ["multiply", "maximum", "minimum"])
def test_combine(how, dtype):
    device, host = words()
    for shape, index in FORMS.values():
        x = drawn(shape, dtype)
        value = drawn(x[index].shape, dtype)
        if how == "multiply" and dtype != "bool":
            value = np.sign(value) if np.dtype(dtype).kind != "u" else value % 2
        mine = cupy.asarray(x)
        device.combine_at(mine, placed(index), cupy.asarray(value), how=how)
        host.combine_at(x, index, value, how=how)
        np.testing.assert_array_equal(mine.get(), x)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_summed_in_float32(dtype):
    device, _ = words()
    x = on_device(np.zeros((2, 3)), dtype)
    device.add_at(x, cupy.zeros(3000, np.int64), on_device(np.ones((3000, 3)), dtype))
    np.testing.assert_allclose(x.get().astype(float), [[3000] * 3, [0] * 3], rtol=5e-3)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_extremes_and_nan(dtype):
    device, _ = words()
    x = on_device(np.array([1.0, np.nan, 0.0, 2.0]), dtype)
    index = cupy.asarray([0, 1, 2, 2, 3, 3])
    value = on_device(np.array([np.nan, 5.0, -np.inf, np.inf, 1.0, 3.0]), dtype)
    most, least = x.copy(), x.copy()
    device.combine_at(most, index, value, how="maximum")
    device.combine_at(least, index, value, how="minimum")
    np.testing.assert_array_equal(most.get().astype(float), [np.nan, np.nan, np.inf, 3])
    np.testing.assert_array_equal(least.get().astype(float), [np.nan, np.nan, -np.inf, 1])


def test_indices_out_of_bounds_write_nothing():
    device, _ = words()
    for index in (cupy.asarray([5, -4, 2**40, 0]), (cupy.asarray([5, -4, 3, 0]),) * 2):
        frame = cupy.zeros(64)
        x = frame[24:33].reshape(3, 3)
        device.add_at(x, index, 1)
        assert float(frame.sum()) == float(x[0].sum()) and float(x[0, 0]) == 1
        with pytest.raises(tlc.AcceleratorError, match="out of bounds"):
            tlc.cuda.synchronize()


@pytest.mark.parametrize("layout", ["transposed", "sliced"])
def test_strided_targets(layout):
    device, _ = words()
    host = np.zeros((6, 4))
    x = on_device(Laid(host, layout), "float32")
    device.add_at(x, cupy.asarray([1, 1, 5]), cupy.ones((3, 4), np.float32))
    np.add.at(host, [1, 1, 5], 1)
    np.testing.assert_array_equal(x.get(), host)


def test_many_writers():
    device, _ = words()
    index = RNG.integers(0, 7, 20_000)
    for dtype in ("int8", "int16", "int64", "float64"):
        x = cupy.zeros(7, dtype)
        device.add_at(x, cupy.asarray(index), 1)
        expected = np.bincount(index, minlength=7).astype(dtype)
        np.testing.assert_array_equal(x.get(), expected)


@pytest.mark.parametrize("width", [1, 3, 64, 300])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_backward(width, padding):
    parameters = {"rows": 11, "padding": padding, "by_frequency": False}
    for index in (RNG.integers(0, 11, (5, 9)), RNG.integers(0, 3, 200).astype(np.int32)):
        g = RNG.standard_normal((*index.shape, width))
        # Up to seventy rows are added in whatever order they come.
        check("embedding_backward", (g, index), parameters, slack=32)
    g = Laid(RNG.standard_normal((4, width)), "expanded")
    check("embedding_backward", (g, np.array([1, 1, 2, 10])), parameters)
