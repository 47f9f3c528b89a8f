"""Factorizations of NumPy's primitives, by LAPACK and by its own code, beside PyTorch's."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from tensorflow_lite_clone.backends.numpy import lapack, primitives, with_scipy
from tests.backends.scipy_switch import beside, both, needs_scipy, without_scipy

DTYPES = ("float32", "float64", "complex64", "complex128")
# LU by one panel and several, tall and wide, one and many matrices.
SHAPES = [(1, 1), (5, 5), (40, 40), (100, 70), (70, 100), (2, 40, 33), (3, 5, 7), (2, 3, 40, 40)]
SHAPES += [(70, 6, 6), (5, 70, 40)]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def made(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Normal numbers; their sizes are nowhere so close that rounding decides on a pivot."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def close(got: Any, wanted: Any, dtype: str, scale: float = 1.0) -> None:
    """Equal but for rounding: some thousand units of the largest element."""
    wanted = np.asarray(wanted)
    allowed = 3000 * np.finfo(dtype).eps * scale * max(1.0, float(np.abs(wanted).max(initial=0)))
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=allowed)


def definite(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = made(shape, dtype)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


@both
@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_lu(shape: tuple[int, ...], dtype: str, scipy: bool) -> None:
    x = made(shape, dtype)
    before = x.copy()
    with beside(scipy):
        factors, pivots, info = primitives.lu_factor(x)
        order = primitives.lu_permutation(pivots, size=shape[-2])
    np.testing.assert_array_equal(x, before)
    wanted, places, places_info = torch.linalg.lu_factor_ex(torch.from_numpy(x))
    assert pivots.dtype == info.dtype == np.int32 and order.dtype == np.int64
    np.testing.assert_array_equal(pivots, places)
    np.testing.assert_array_equal(info, places_info)
    close(factors, wanted, dtype, 3.0)
    assert factors.strides == tuple(x.itemsize * s for s in wanted.stride())
    m, n = shape[-2:]
    k = min(m, n)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k, dtype=dtype)
    rows = np.take_along_axis(x, order[..., None], axis=-2)
    close(lower @ np.triu(factors[..., :k, :]), rows, dtype)


@both
@each_dtype
def test_lu_of_singular_matrices(dtype: str, scipy: bool) -> None:
    """Zero columns and repeated ones, inside and at the end of a panel."""
    x = made((4, 40, 40), dtype)
    x[0, :, 0] = 0
    x[1, :, 35] = 0
    x[3] = 0
    one, many = x[:2, None], x
    for a in (one[0], one[1], many):
        with beside(scipy):
            factors, pivots, info = primitives.lu_factor(a)
        wanted = torch.linalg.lu_factor_ex(torch.from_numpy(a))
        np.testing.assert_array_equal(info, wanted.info)
        np.testing.assert_array_equal(pivots, wanted.pivots)
        close(factors, wanted.LU, dtype, 3.0)


@both
@each_dtype
def test_triangular_systems(dtype: str, scipy: bool) -> None:
    """Every layout of the matrices, every broadcast, both triangles; NaN in the other one."""
    shapes = [((5, 5), (5, 2)), ((40, 40), (3, 40, 1)), ((3, 20, 20), (20, 4))]
    shapes += [((2, 1, 9, 9), (3, 9, 2)), ((1, 1), (1, 1)), ((60, 3, 3), (60, 3, 2))]
    flags = itertools.product((True, False), (True, False), ("rows", "columns", "gaps"))
    for (left, right), (upper, unit, layout) in itertools.product(shapes, flags):
        n = left[-1]
        a = made(left, dtype) / n + 2 * np.eye(n, dtype=dtype)
        below = np.tri(n, k=-1, dtype=bool)
        triangle = np.where(below if upper else below.T, np.nan, a).astype(dtype)
        if layout == "columns":
            triangle = triangle.swapaxes(-1, -2).copy().swapaxes(-1, -2)
        elif layout == "gaps":
            triangle = np.repeat(triangle, 2, axis=-1)[..., ::2]
        b = made(right, dtype, 1)
        before = b.copy()
        with beside(scipy):
            x = primitives.solve_triangular(triangle, b, upper=upper, unitriangular=unit)
        np.testing.assert_array_equal(b, before)
        wanted = torch.linalg.solve_triangular(
            torch.from_numpy(triangle.copy()),
            torch.from_numpy(b),
            upper=upper,
            unitriangular=unit,
        )
        close(x, wanted, dtype)


@both
@pytest.mark.parametrize("n", [3, 40])
def test_a_zero_on_the_diagonal_is_divided_by(n: int, scipy: bool) -> None:
    a = np.eye(n) * 2
    a[0, 0] = 0
    with beside(scipy):
        x = primitives.solve_triangular(a, np.ones((n, 1)), upper=True, unitriangular=False)
        y, info = primitives.solve(a, np.ones((n, 1)))
    assert x[0, 0] == np.inf and (x[1:] == 0.5).all()
    assert y[0, 0] == np.inf and int(info) == 1


@both
@each_dtype
@pytest.mark.parametrize("n", [3, 40])
def test_systems(n: int, dtype: str, scipy: bool) -> None:
    for left, right in (((n, n), (n, 2)), ((3, 1, n, n), (2, n, 1)), ((n, n), (4, n, 3))):
        a, b = made(left, dtype), made(right, dtype, 1)
        with beside(scipy):
            x, info = primitives.solve(a, b)
        assert info.shape == left[:-2] and not info.any()
        close(a @ x, np.broadcast_to(b, (a @ x).shape), dtype, 10.0)
    a = made((3, n, n), dtype)
    a[1, :, 1] = a[1, :, 0]
    a[1, :2] = 0  # no rounding: elimination leaves zeros
    with beside(scipy):
        x, info = primitives.solve(a, made((n, 2), dtype, 1))
    assert info[0] == info[2] == 0 < info[1] and np.isfinite(x[[0, 2]]).all()
    assert not np.isfinite(x[1]).all()


@both
@each_dtype
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 5, 5), (40, 40), (2, 50, 50)], ids=str)
def test_cholesky(shape: tuple[int, ...], dtype: str, scipy: bool) -> None:
    x = definite(shape, dtype)
    given = np.tril(x) + np.triu(np.full_like(x, np.nan), 1)
    with beside(scipy):
        factor, info = primitives.cholesky(given)
    assert not info.any() and info.shape == shape[:-2]
    assert not np.triu(factor, 1).any()
    close(factor @ factor.conj().swapaxes(-1, -2), x, dtype)


@both
@pytest.mark.parametrize("n", [4, 40])
def test_cholesky_that_fails(n: int, scipy: bool) -> None:
    x = definite((4, n, n), "float64")
    x[1, 2, 2] = -1
    x[2, 3, 3] = np.nan
    with beside(scipy):
        factor, info = primitives.cholesky(x)
        first = primitives.cholesky(x[:2])[1]
    assert info.tolist() == [0, 3, 4, 0] and first.tolist() == [0, 3]
    np.testing.assert_allclose(factor[3] @ factor[3].T, x[3], atol=1e-10)


def symmetric(shape: tuple[int, ...], dtype: str, hermitian: bool) -> np.ndarray:
    """Indefinite matrices that have blocks of both orders."""
    x = made(shape, dtype)
    x = x + (x.conj() if hermitian else x).swapaxes(-1, -2)
    x[..., range(0, shape[-1], 2), range(0, shape[-1], 2)] *= 1e-3
    return x


@both
@each_dtype
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (9, 9), (80, 80), (2, 3, 10, 10)], ids=str)
def test_ldl(shape: tuple[int, ...], dtype: str, hermitian: bool, scipy: bool) -> None:
    x, b = symmetric(shape, dtype, hermitian), made((*shape[:-1], 2), dtype, 1)
    with beside(scipy):
        factors, pivots, info = primitives.ldl_factor(x, hermitian=hermitian)
        solution = primitives.ldl_solve(factors, pivots, b, hermitian=hermitian)
    wanted = torch.linalg.ldl_factor_ex(torch.from_numpy(x), hermitian=hermitian)
    assert pivots.dtype == info.dtype == np.int32
    np.testing.assert_array_equal(pivots, wanted.pivots)
    assert shape[-1] < 3 or (pivots < 0).any()
    np.testing.assert_array_equal(info, wanted.info)
    close(factors, wanted.LD, dtype, 100.0)
    assert factors.strides == tuple(x.itemsize * s for s in wanted.LD.stride())
    close(x @ solution, b, dtype, 100.0)


@both
def test_sides_of_ldl_broadcast(scipy: bool) -> None:
    x, b = symmetric((3, 1, 5, 5), "float64", False), made((2, 5, 2), "float64", 1)
    with beside(scipy):
        factors, pivots, _ = primitives.ldl_factor(x, hermitian=False)
        solution = primitives.ldl_solve(factors, pivots, b, hermitian=False)
    close(x @ solution, np.broadcast_to(b, (3, 2, 5, 2)), "float64", 100.0)


@needs_scipy
@pytest.mark.parametrize(
    "pivots", [[1, 2, 9], [0, 2, 3], [1, 2, -3], [-2, 1, 3], [-9, -9, 1], [-(2**31), -2, 1]]
)
def test_pivots_that_point_nowhere_do_not_reach_lapack(pivots: list[int]) -> None:
    x, b = np.eye(3), np.ones((3, 1))
    assert lapack.ldl_solve(x, np.array(pivots, np.int32), b, hermitian=False) is None
    sound = np.array([-2, -2, 3], np.int32)
    assert lapack.ldl_solve(x[::-1], sound, b, hermitian=False) is not None


@needs_scipy
def test_lapack_serves_what_it_knows() -> None:
    x = np.eye(40)
    assert lapack.cholesky(x) is not None and lapack.solve(x, x) is not None
    assert lapack.cholesky(x.astype(np.longdouble)) is None
    assert lapack.solve(x, x.astype(np.float32)) is None
    assert lapack.lu_factor(np.zeros((1000, 3, 3))) is None  # many small ones
    with without_scipy():
        assert with_scipy.routine("getrf", x.dtype) is None and lapack.lu_factor(x) is None
    assert lapack.lu_factor(x) is not None


@needs_scipy
def test_an_older_scipy_without_the_solvers_of_ldl(monkeypatch: pytest.MonkeyPatch) -> None:
    known = with_scipy.routine
    monkeypatch.setattr(
        lapack, "routine", lambda name, d: None if name.endswith("trs") else known(name, d)
    )
    x, b = symmetric((9, 9), "float64", False), made((9, 2), "float64", 1)
    factors, pivots, _ = primitives.ldl_factor(x, hermitian=False)
    close(x @ primitives.ldl_solve(factors, pivots, b, hermitian=False), b, "float64", 100.0)
    assert lapack.ldl_solve(factors, pivots, b, hermitian=False) is None


@needs_scipy
def test_the_number_of_threads_holds_for_scipy() -> None:
    pytest.importorskip("threadpoolctl")
    code = (
        "import tensorflow_lite_clone as torch, threadpoolctl, sys; torch.set_num_threads(1); "
        "torch.erfinv(torch.zeros(1)); torch.linalg.lu_factor(torch.eye(3)); "
        "assert 'scipy.linalg' in sys.modules; pools = threadpoolctl.threadpool_info(); "
        "assert len(pools) > 1 and all(pool['num_threads'] == 1 for pool in pools), pools"
    )
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
