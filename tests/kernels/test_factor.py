"""LU factorizations of batches and what is solved with them: a model of cuBLAS, and a GPU."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cupy")

import tensorflow_lite_clone as tlc  # noqa: E402
from tensorflow_lite_clone.backends.numpy.primitives import lu, solvers  # noqa: E402
from tests.kernels.gpu import why_not  # noqa: E402
from tests.kernels.host_blas import on_host  # noqa: E402

REASON = why_not()
DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = [(3, 4, 4), (2, 3, 5, 5), (1, 1, 1), (70, 33, 33)]
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def on_gpu(test: Any) -> Any:
    return pytest.mark.cuda(pytest.mark.skipif(bool(REASON), reason=str(REASON))(test))


def made(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if "complex" in dtype else x).astype(dtype)


def rebuilt(factors: np.ndarray, pivots: np.ndarray) -> np.ndarray:
    """A from what `lu_factor` gave."""
    m, n = factors.shape[-2:]
    k = min(m, n)
    lower = np.tril(factors[..., :k], -1) + np.eye(m, k, dtype=factors.dtype)
    order = np.argsort(lu.lu_permutation(pivots, m), axis=-1)
    return np.take_along_axis(lower @ np.triu(factors[..., :k, :]), order[..., None], axis=-2)


def close(got: np.ndarray, wanted: np.ndarray, dtype: str) -> None:
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    allowed = 2000 * float(np.finfo(dtype).eps) * float(np.abs(wanted).max())
    np.testing.assert_allclose(got, wanted, rtol=0, atol=allowed)


# ---- with cuBLAS' two routines modelled over host memory


def _at(address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The array that lies there."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype).reshape(shape)


def _getrf(dtype: Any) -> Any:
    def getrf(handle, n, starts, lda, pivots, info, count):
        for i, start in enumerate(_at(starts, (count,), np.uintp).tolist()):
            by_columns = _at(start, (n, lda), dtype)
            factors, places, failed = lu.lu_factor(by_columns.T.copy())
            by_columns[...] = factors.T
            _at(pivots, (count, n), np.int32)[i] = places
            _at(info, (count,), np.int32)[i] = failed

    return getrf


def _getrs(dtype: Any) -> Any:
    def getrs(handle, trans, n, columns, starts, lda, pivots, places, ldb, info, count):
        assert trans == 0 and lda == ldb == n
        matrices, sides = [_at(x, (count,), np.uintp).tolist() for x in (starts, places)]
        for i in range(count):
            a = rebuilt(_at(matrices[i], (n, n), dtype).T, _at(pivots, (count, n), np.int32)[i])
            side = _at(sides[i], (columns, n), dtype)
            side[...] = solvers.solve(a, side.T.copy())[0].T

    return getrs


@pytest.fixture
def primitives(monkeypatch: pytest.MonkeyPatch) -> Any:
    from tensorflow_lite_clone.backends.cupy.primitives import factorizations

    def like(name: str) -> Any:
        return lambda *args, **kwargs: on_host(getattr(np, name)(*args, **kwargs))

    words = "array empty arange broadcast_to ascontiguousarray".split()
    functions = SimpleNamespace(**{name: like(name) for name in words})
    monkeypatch.setattr(factorizations, "cupy", functions)
    routines = {"getrf": _getrf, "getrs": _getrs}
    monkeypatch.setattr(factorizations, "_batched", lambda name, dtype: routines[name](dtype))
    handle = SimpleNamespace(get_cublas_handle=lambda: 1)
    monkeypatch.setattr(factorizations, "device", handle)
    cublas = SimpleNamespace(CUBLAS_OP_N=0)
    monkeypatch.setattr(factorizations, "libs", SimpleNamespace(cublas=cublas))
    return factorizations


@each_dtype
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_model_of_factorizations(primitives: Any, shape: tuple[int, ...], dtype: str) -> None:
    x = made(shape, dtype)
    given = on_host(x.copy())
    factors, pivots, info = primitives.lu_factor(given)
    assert pivots.dtype == info.dtype == np.int32 and pivots.shape == shape[:-1]
    assert info.shape == shape[:-2] and not info.any()
    close(rebuilt(np.asarray(factors), np.asarray(pivots)), x, dtype)
    np.testing.assert_array_equal(given, x)


@each_dtype
def test_model_of_systems(primitives: Any, dtype: str) -> None:
    for left, right in (
        ((3, 4, 4), (3, 4, 2)),
        ((2, 1, 4, 4), (3, 4, 1)),
        ((1, 5, 5), (5, 3)),
        ((3, 4, 4), (2, 1, 4, 2)),
    ):
        a, b = made(left, dtype) + 4 * np.eye(left[-1], dtype=dtype), made(right, dtype, 1)
        x, info = primitives.solve(on_host(a), on_host(b))
        assert info.shape == left[:-2]
        close(np.asarray(x), np.linalg.solve(a, b).astype(dtype), dtype)


def test_batched_factorization_size_limits(primitives: Any) -> None:
    def suits(*shape: int) -> bool:
        return primitives._suits_batches(np.broadcast_to(np.float32(0), shape))

    assert suits(1, 256, 256) and suits(64, 16, 16) and suits(16, 1000, 1000)
    assert not suits(4, 4) and not suits(3, 4, 5) and not suits(2, 1000, 1000)


# ---- on a GPU


@on_gpu
@each_dtype
@pytest.mark.parametrize("shape", [*SHAPES, (6, 6), (2, 5, 3), (3, 5), (2, 400, 400)], ids=str)
def test_factorizations(shape: tuple[int, ...], dtype: str) -> None:
    x = made(shape, dtype)
    result = tlc.linalg.lu_factor_ex(tlc.tensor(x, device="cuda"))
    factors, pivots, info = [part.cpu().numpy() for part in result]
    assert pivots.dtype == info.dtype == np.int32
    assert not info.any() and info.shape == shape[:-2]
    close(rebuilt(factors, pivots), x, dtype)
    assert np.abs(np.tril(factors, -1)).max(initial=0) <= 1.5  # |re| + |im| of the pivot is largest


@on_gpu
@each_dtype
def test_singular_matrices_are_named(dtype: str) -> None:
    x = made((3, 4, 4), dtype)
    x[1, :, 2] = 0
    moved = tlc.tensor(x, device="cuda")
    assert tlc.linalg.lu_factor_ex(moved).info.tolist() == [0, 3, 0]
    solution, info = tlc.linalg.solve_ex(moved, tlc.ones_like(moved)[..., :2])
    assert info.tolist() == [0, 3, 0]
    assert tlc.isfinite(solution.abs()[[0, 2]]).all() and not tlc.isfinite(solution[1].abs()).all()
    with pytest.raises(tlc.linalg.LinAlgError):
        tlc.linalg.solve(moved, tlc.ones_like(moved))


@on_gpu
@each_dtype
def test_systems(dtype: str) -> None:
    for left, right in (
        ((70, 33, 33), (70, 33, 2)),
        ((2, 1, 4, 4), (3, 4, 1)),
        ((3, 4, 4), (2, 1, 4, 2)),
        ((5, 5), (4, 5, 3)),
        ((2, 400, 400), (400, 3)),
    ):
        a = made(left, dtype) + 3 * left[-1] ** 0.5 * np.eye(left[-1], dtype=dtype)
        b = made(right, dtype, 1)
        x = tlc.linalg.solve(tlc.tensor(a, device="cuda"), tlc.tensor(b, device="cuda"))
        close(x.cpu().numpy(), np.linalg.solve(a, b).astype(dtype), dtype)
    inverse = tlc.linalg.inv(tlc.tensor(a, device="cuda")).cpu().numpy()
    close(inverse @ a, np.broadcast_to(np.eye(400, dtype=dtype), a.shape), dtype)
