"""Reductions beside NumPy's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.kernels.gpu import ALL, Laid, _host, needs_gpu, on_device, poison

pytestmark = needs_gpu
FLOATS = ["sum", "mean", "prod", "max", "min"]
LAYOUTS = ["contiguous", "channels_last", "transposed", "sliced", "offset", "expanded"]


def reduce(word: str, given: Any, axis: Any, dtype: str | None, keepdims: bool = False) -> Any:
    """The array, and the word of F of it."""
    import cupy

    from tensorflow_lite_clone import backends

    x = on_device(given, dtype)
    poison(cupy)
    return x, getattr(backends.load("cuda:0").F, word)(x, axis=axis, keepdims=keepdims)


def check(word: str, given: Any, axis: Any, dtype: str, keepdims: bool = False) -> None:
    """Assert that a word of floats is right to a few units in the last place."""
    x, made = reduce(word, given, axis, dtype, keepdims)
    exact = _host(x, np.float64)
    true = getattr(np, word)(exact, axis=axis, keepdims=keepdims)
    assert (made.shape, made.dtype) == (true.shape, x.dtype)
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}.get(dtype, 2.0**-52)
    # Terms cancel in sums, and errors of many factors add up.
    of = getattr(np, word)(np.abs(exact), axis=axis, keepdims=keepdims)
    large = of if word in ("sum", "mean") else np.abs(true)
    least = min(unit, 2.0**-23)
    error = np.abs(_host(made, np.float64) - true)
    many = exact.size // max(true.size, 1) if word == "prod" else 4
    end = {"float16": 6e-8, "float64": 0.0}.get(dtype, 1e-37)  # where the dtype's numbers end
    allowed = unit * np.abs(true) + least * many * large + end
    assert (error <= allowed).all(), (error - allowed).max()


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("word", [*FLOATS, "any", "all"])
def test_reduction_kernel_serves_all_axes(word: str, dtype: str) -> None:
    from tensorflow_lite_clone.backends.cupy.reduction import reduced

    x = on_device(values(5, 12, 16), dtype)
    for axis in (None, 0, 1, 2, (0, 2), (0, 1, 2)):
        assert reduced(word, x, axis, False) is not NotImplemented
    assert reduced(word, x.astype(np.complex64) if dtype == "float32" else x, (), False) is (
        NotImplemented
    )


def values(*shape: int, spread: float = 1.0) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0.5, spread, shape)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("word", FLOATS)
@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (0, 2), (1, 2), -1])
def test_axes(word: str, axis: Any, dtype: str) -> None:
    check(word, values(5, 12, 16), axis, dtype)
    check(word, values(3, 7, 11), axis, dtype, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("axis", [(0, 2, 3), 1, (2, 3), 0, None, (0, 1)])
def test_layouts(axis: Any, layout: str, dtype: str) -> None:
    check("sum", Laid(values(6, 8, 4, 8), layout), axis, dtype)
    check("max", Laid(values(6, 8, 4, 8), layout), axis, dtype)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_windows_that_overlap(axis: Any, dtype: str) -> None:
    """Both axes go on by one element, so that packs of 16 bytes would not be aligned."""
    import cupy

    from tensorflow_lite_clone import backends

    x = on_device(values(63), dtype)
    windows = cupy.ndarray((32, 32), x.dtype, x.data, (x.itemsize, x.itemsize))
    exact = np.lib.stride_tricks.sliding_window_view(_host(x, np.float64), 32)
    made = backends.load("cuda:0").F.max(windows, axis=axis)
    np.testing.assert_array_equal(_host(made, np.float64), exact.max(axis))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("shape", [
    (1, 300000), (300000, 1), (3, 70001), (70001, 3), (2048, 1030), (40000, 64), (513, 513),
])  # fmt: skip
def test_large(shape: tuple[int, int], axis: Any) -> None:
    """Rows and columns that several blocks share."""
    check("sum", values(*shape), axis, "float32")
    check("mean", values(*shape), axis, "bfloat16")


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("kind", ["bool", "int8", "int32", "uint8", "int64", "float32"])
def test_truth(kind: str, axis: Any) -> None:
    given = np.zeros((70, 33), kind)
    given[3] = 1
    given[5, 7] = 1
    for word, array in (("any", given), ("all", 1 - given.astype(np.int8))):
        x, made = reduce(word, array.astype(kind), axis, None)
        true = getattr(np, word)(array, axis=axis)
        assert made.dtype == bool and np.array_equal(made.get(), true)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_whole_numbers(axis: Any) -> None:
    from tensorflow_lite_clone import backends

    F = backends.load("cuda:0").F
    given = np.random.default_rng(0).integers(-9, 9, (40, 50)).astype(np.int32)
    x = on_device(given, None)
    for word, dtype in (("sum", np.dtype(np.int64)), ("max", None), ("min", None)):
        made = getattr(F, word)(x, axis=axis, **({"dtype": dtype} if dtype else {}))
        true = getattr(np, word)(given, axis=axis)
        assert np.array_equal(made.get(), true)
        assert made.dtype == (dtype or given.dtype)


def test_nan_wins() -> None:
    given = np.array([[1.0, np.nan, 3.0], [np.inf, 2.0, -np.inf]])
    for word in ("max", "min"):
        _, made = reduce(word, given, 1, "float32")
        np.testing.assert_array_equal(made.get(), getattr(np, word)(given, axis=1))


@pytest.mark.parametrize("axis", [2, -3, (0, 0), (0, 5)])
def test_axes_that_are_not_there_are_refused(axis: Any) -> None:
    from tensorflow_lite_clone import backends

    with pytest.raises(ValueError):
        backends.load("cuda:0").F.sum(on_device(values(3, 4), "float32"), axis=axis)
