"""Softmax's kernels beside the generic forms, at the borders of every variant."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu

pytestmark = needs_gpu
OPS = ("softmax", "log_softmax")
# The least and the most columns of every variant, and rows no pack divides.
COLUMNS: tuple[int, ...] = (1, 2, 3, 4, 8, 10, 31, 32, 33, 64, 100, 127, 128, 129, 256, 1000)
COLUMNS += (1024, 1025, 1028, 2047, 2048, 2052, 4096, 4100, 8192, 8200, 16384, 16385, 16392)
COLUMNS += (20001,)
# (outer, n, inner): one X each, ends of tiles, packs and none
SLABS = ((2, 3, 4), (3, 70, 5), (2, 33, 64), (2, 100, 200), (2, 7, 45), (1, 1, 3), (16, 21, 2056))


def values(*shape: int, scale: float = 3.0) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(0, scale, shape)


def logits(name: str, *shape: int, axis: int = -1) -> np.ndarray:
    """What a gradient is given of the forward's result."""
    x = values(*shape)
    x = x - np.log(np.exp(x).sum(axis, keepdims=True))
    return x if name == "log_softmax" else np.exp(x)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("columns", COLUMNS)
def test_softmax_of_rows_matches_generic(name: str, columns: int) -> None:
    rows = 5 if columns > 256 else 67
    check(name, [values(rows, columns)], {"axis": 1})
    g = values(rows, columns, scale=1.0)
    # Terms cancel: the largest gradient of short rows may be smaller than what was rounded.
    slack = 32 if columns < 8 else 8
    check(f"{name}_backward", [g, logits(name, rows, columns)], {"axis": 1}, slack=slack)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_softmax_of_negative_axes_matches_generic(name: str, axis: int) -> None:
    x = values(3, 5, 7)
    check(name, [x], {"axis": axis})
    g = values(3, 5, 7, scale=1.0)
    check(f"{name}_backward", [g, logits(name, 3, 5, 7, axis=axis)], {"axis": axis}, slack=32)


@pytest.mark.parametrize("name", OPS)
def test_softmax_of_many_long_rows_matches_generic(name: str) -> None:
    x, g = values(260, 16390), values(260, 16390, scale=1.0)
    check(name, [x], {"axis": 1}, ("float32", "bfloat16"))
    check(f"{name}_backward", [g, logits(name, 260, 16390)], {"axis": 1}, ("float32", "bfloat16"))


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("slab", SLABS)
def test_softmax_of_inner_axes_matches_generic(name: str, slab: tuple) -> None:
    check(name, [values(*slab)], {"axis": 1})
    y = logits(name, *slab, axis=1)
    check(f"{name}_backward", [values(*slab, scale=1.0), y], {"axis": 1})


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("layout", ["channels_last", "transposed", "sliced", "offset", "expanded"])
@pytest.mark.parametrize("axis", [0, 1, 3])
def test_softmax_of_any_layout_matches_generic(name: str, layout: str, axis: int) -> None:
    shape = (3, 8, 4, 16)
    x = Laid(values(*shape), layout)
    check(name, [x], {"axis": axis})
    y = logits(name, *shape, axis=axis)
    if layout != "expanded" or axis:  # else the gradient is 0 but for rounding
        check(f"{name}_backward", [x, y], {"axis": axis})
    check(f"{name}_backward", [y, Laid(y, layout)], {"axis": axis})


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("columns", [5, 3000, 20001])
def test_softmax_of_nan_and_infinity_matches_generic(name: str, columns: int) -> None:
    """Rows of -inf, with an infinity, with NaN, masked ones, and large numbers."""
    x = values(6, columns)
    x[0] = -np.inf
    x[1, columns // 2] = np.inf
    x[2, columns - 1] = np.nan
    x[3, 1:] = -np.inf
    x[4] += 1e4
    check(name, [x], {"axis": 1}, ("float32", "float64"))
    check(name, [np.ascontiguousarray(x.T)], {"axis": 0}, ("float32", "float64"))


def test_softmax_kernel_declines() -> None:
    """Integers and empty arrays are the generic form's."""
    import cupy

    from tests.kernels.gpu import run_override

    for x in (cupy.ones((3, 4), np.int64), cupy.ones((0, 4), np.float32)):
        assert run_override("softmax", [x], {"axis": 1}) is NotImplemented
