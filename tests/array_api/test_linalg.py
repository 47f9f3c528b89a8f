"""The linear algebra functions and the `linalg` extension against array-api-strict."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.domains import FLOATING, PAIRS, strictly
from tests.array_api.judge import ALL, COMPLEX, INTEGERS, NUMERIC, few, strict
from tests.array_api.strategies import xp, xps

SINGLE = {"float32", "complex64"}
LEADS = xps.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=2)


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Numbers of either sign, of which no three are in a simple relation."""
    rng = np.random.default_rng(seed + sum(shape) * 7 + len(shape))
    values = rng.standard_normal(shape)
    if dtype in COMPLEX:
        values = values + 1j * rng.standard_normal(shape)
    if dtype in INTEGERS:
        values = rng.integers(0 if dtype in ("uint8",) or dtype[0] == "u" else -5, 6, shape)
    if dtype == "bool":
        values = values > 0
    return xp.asarray(np.asarray(values, dtype))


def same(found: Any, wanted: Any, factor: float = 1.0) -> None:
    """Assert dtype, shape and values, up to the rounding errors of small matrices."""
    assert isinstance(found, tlc.Tensor)
    values = np.asarray(wanted._array) if not isinstance(wanted, np.ndarray) else wanted
    assert tuple(found.shape) == values.shape
    assert str(found.dtype) == f"torch.{values.dtype.name}"
    rtol = (1e-4 if values.dtype.name in SINGLE else 1e-11) * factor
    np.testing.assert_allclose(np.asarray(found), values, rtol=rtol, atol=rtol)


def close(found: Any, wanted: Any) -> None:
    """Assert that two of our arrays are nearly equal, and of one dtype."""
    same(found, np.asarray(wanted))


def both(name: str, *arrays: Any, **options: Any) -> None:
    """Assert that ``linalg.name`` is that of array-api-strict, results in tuples included."""
    with np.errstate(all="ignore"):
        wanted = getattr(strict.linalg, name)(
            *map(strictly, arrays), **{k: strictly(v) for k, v in options.items()}
        )
    found = getattr(xp.linalg, name)(*arrays, **options)
    if isinstance(wanted, tuple):
        for field, each, one in zip(wanted._fields, found, wanted, strict=True):
            assert getattr(found, field) is each
            same(each, one)
    else:
        same(found, wanted)


def square(data: Any, dtypes: tuple[str, ...] = FLOATING, seed: int = 0) -> Any:
    n = data.draw(st.integers(0, 3))
    return drawn((*data.draw(LEADS), n, n), data.draw(st.sampled_from(dtypes)), seed)


def matrices(data: Any, dtypes: tuple[str, ...] = FLOATING, low: int = 0) -> Any:
    n, m = data.draw(st.integers(low, 3)), data.draw(st.integers(low, 3))
    return drawn((*data.draw(LEADS), n, m), data.draw(st.sampled_from(dtypes)))


def hermitian(data: Any) -> Any:
    """x x^H + 1."""
    x = square(data)
    return x @ xp.conj(xp.matrix_transpose(x)) + xp.eye(x.shape[-1], dtype=x.dtype)


@given(data=st.data())
@few
def test_matmul(data: Any) -> None:
    first, second = data.draw(st.sampled_from([p for p in PAIRS if p[0] != "bool"]))
    n = data.draw(st.integers(0, 3))
    leads = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=2)).input_shapes
    x1 = drawn(data.draw(st.sampled_from([(n,), (2, n), (*leads[0], 3, n)])), first)
    x2 = drawn(data.draw(st.sampled_from([(n,), (n, 2), (*leads[1], n, 1)])), second, 1)
    both("matmul", x1, x2)
    assert xp.matmul is xp.linalg.matmul


@pytest.mark.parametrize("name", ["matmul", "tensordot", "vecdot", "matrix_transpose"])
def test_one_function_in_two_places(name: str) -> None:
    assert getattr(xp, name) is getattr(xp.linalg, name)


@pytest.mark.parametrize(
    "shapes",
    [((), (3,)), ((3,), ()), ((2,), (3,)), ((2,), (3, 2)), ((2, 3), (2,)), ((2, 3), (2, 3))],
)
def test_matmul_refuses(shapes: Any) -> None:
    with pytest.raises((RuntimeError, ValueError, IndexError)):
        xp.matmul(*[xp.ones(shape) for shape in shapes])


@given(data=st.data())
@few
def test_vecdot(data: Any) -> None:
    pairs = [p for p in PAIRS if p[0] in NUMERIC]
    first, second = data.draw(st.sampled_from(pairs))
    n = data.draw(st.integers(0, 3))
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=2)).input_shapes
    axis = data.draw(st.integers(-1 - min(map(len, shapes)), -1))
    shapes = [list(shape) for shape in shapes]
    for shape in shapes:
        shape.insert(len(shape) + axis + 1, n)
    both("vecdot", drawn(tuple(shapes[0]), first), drawn(tuple(shapes[1]), second, 1), axis=axis)


@given(data=st.data())
@few
def test_tensordot(data: Any) -> None:
    first, second = data.draw(st.sampled_from([p for p in PAIRS if p[0] in NUMERIC]))
    common = data.draw(xps.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    rest = [data.draw(xps.array_shapes(min_dims=0, max_dims=2, max_side=2)) for _ in range(2)]
    x1, x2 = drawn((*rest[0], *common), first), drawn((*common, *rest[1]), second, 1)
    both("tensordot", x1, x2, axes=len(common))
    axes1 = [i - len(common) for i in range(len(common))]
    both("tensordot", x1, x2, axes=(axes1[::-1], list(range(len(common)))[::-1]))


@given(data=st.data())
@few
def test_layout(data: Any) -> None:
    x = matrices(data, ALL)
    both("matrix_transpose", x)
    offset = data.draw(st.integers(-max(x.shape[-2] - 1, 0), max(x.shape[-1] - 1, 0)))
    both("diagonal", x, offset=offset)
    if str(x.dtype) != "torch.bool":
        both("trace", x, offset=offset)
        both("trace", xp.astype(x, xp.float32) if str(x.dtype)[6] != "c" else x)
    if xp.isdtype(x.dtype, ("integral", "real floating")):
        found = xp.linalg.trace(x, dtype=xp.float64)
        same(found, np.asarray(np.trace(np.asarray(x), axis1=-2, axis2=-1, dtype=np.float64)))


@given(data=st.data())
@few
def test_cross(data: Any) -> None:
    dtype = data.draw(st.sampled_from(NUMERIC))
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=2)).input_shapes
    axis = data.draw(st.integers(-1 - min(map(len, shapes)), -1))
    shapes = [(*s[: len(s) + axis + 1], 3, *s[len(s) + axis + 1 :]) for s in shapes]
    both("cross", *[drawn(shape, dtype, i) for i, shape in enumerate(shapes)], axis=axis)
    with pytest.raises((RuntimeError, ValueError)):
        xp.linalg.cross(xp.ones((2, 4)), xp.ones((2, 4)))


@given(data=st.data())
@few
def test_outer(data: Any) -> None:
    first, second = data.draw(st.sampled_from([p for p in PAIRS if p[0] in NUMERIC]))
    sizes = [data.draw(st.integers(0, 3)) for _ in range(2)]
    both("outer", drawn((sizes[0],), first), drawn((sizes[1],), second, 1))
    with pytest.raises((RuntimeError, ValueError)):
        xp.linalg.outer(xp.ones((2, 2)), xp.ones(2))


@given(data=st.data())
@few
def test_determinants_and_inverses(data: Any) -> None:
    x = square(data)
    x = x + 3 * xp.eye(x.shape[-1], dtype=x.dtype)
    both("det", x)
    both("slogdet", x)
    both("inv", x)
    for n in (-2, -1, 0, 1, 3):
        same(xp.linalg.matrix_power(x, n), strict.linalg.matrix_power(strictly(x), n), 10)


@given(data=st.data())
@few
def test_singular_matrices(data: Any) -> None:
    dtype = data.draw(st.sampled_from(FLOATING))
    x = xp.zeros((*data.draw(LEADS), 2, 2), dtype=getattr(xp, dtype))
    both("slogdet", x)
    both("det", x)


@given(data=st.data())
@few
def test_cholesky(data: Any) -> None:
    x = hermitian(data)
    both("cholesky", x)
    upper = xp.linalg.cholesky(x, upper=True)
    close(xp.conj(xp.matrix_transpose(upper)) @ upper, x)
    close(xp.triu(upper), upper)


@given(data=st.data())
@few
def test_solve(data: Any) -> None:
    first, second = data.draw(st.sampled_from([p for p in PAIRS if p[0] in FLOATING]))
    n = data.draw(st.integers(0, 3))
    leads = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=2)).input_shapes
    x1 = drawn((*leads[0], n, n), first) + 3 * xp.eye(n, dtype=getattr(xp, first))
    x2 = drawn(data.draw(st.sampled_from([(n,), (*leads[1], n, 2)])), second, 1)
    both("solve", x1, x2)


@given(data=st.data())
@few
def test_hermitian_eigenvalues(data: Any) -> None:
    x = hermitian(data)
    both("eigvalsh", x)
    values, vectors = xp.linalg.eigh(x)
    same(values, strict.linalg.eigvalsh(strictly(x)))
    close(x @ vectors, vectors * xp.astype(values, x.dtype)[..., None, :])
    close(
        xp.conj(xp.matrix_transpose(vectors)) @ vectors,
        xp.broadcast_to(xp.eye(x.shape[-1], dtype=x.dtype), x.shape),
    )
    assert (
        xp.linalg.eigh(x).eigenvalues.dtype is values.dtype and xp.linalg.eigh(x).eigenvectors.shape
    )


@given(data=st.data())
@few
def test_eigenvalues(data: Any) -> None:
    x = square(data)
    values, vectors = xp.linalg.eig(x)
    complex_ = xp.result_type(x.dtype, 1j)
    assert values.dtype is vectors.dtype is complex_ and vectors.shape == x.shape
    z = xp.astype(x, complex_)
    close(z @ vectors, vectors * values[..., None, :])
    eigenvalues = xp.linalg.eigvals(x)
    assert eigenvalues.dtype is complex_ and eigenvalues.shape == values.shape
    wanted = np.asarray(strict.linalg.eigvals(strictly(x))._array)
    for found in (values, eigenvalues):
        found = np.asarray(found)
        distance = np.abs(found[..., :, None] - wanted[..., None, :])
        assert not distance.size or distance.min(axis=-1).max() < 1e-3
    result = xp.linalg.eig(x)
    assert result.eigenvalues.shape == values.shape and result.eigenvectors.shape == x.shape


@given(data=st.data())
@few
def test_qr(data: Any) -> None:
    x = matrices(data)
    n, m = x.shape[-2:]
    for mode, size in (("reduced", min(n, m)), ("complete", n)):
        result = xp.linalg.qr(x, mode=mode)
        q, r = result
        assert result.Q is q and result.R is r
        assert q.shape == (*x.shape[:-2], n, size) and r.shape == (*x.shape[:-2], size, m)
        close(q @ r, x)
        close(xp.triu(r), r)
        unit = xp.eye(size, dtype=x.dtype)
        close(
            xp.conj(xp.matrix_transpose(q)) @ q,
            xp.broadcast_to(unit, (*x.shape[:-2], size, size)),
        )


@given(data=st.data())
@few
def test_svd(data: Any) -> None:
    x = matrices(data)
    n, m = x.shape[-2:]
    both("svdvals", x)
    for full in (True, False):
        result = xp.linalg.svd(x, full_matrices=full)
        u, s, vh = result
        assert result.U is u and result.S is s and result.Vh is vh
        k = min(n, m)
        assert u.shape == (*x.shape[:-2], n, n if full else k)
        assert vh.shape == (*x.shape[:-2], m if full else k, m)
        same(s, strict.linalg.svdvals(strictly(x)))
        close((u[..., :k] * xp.astype(s, x.dtype)[..., None, :]) @ vh[..., :k, :], x)


@given(data=st.data())
@few
def test_rank_and_pinv(data: Any) -> None:
    x = matrices(data, low=1)
    if data.draw(st.booleans()):  # of rank one
        x = x[..., :1] @ x[..., :1, :] if x.shape[-2] == x.shape[-1] else x
    both("matrix_rank", x)
    both("pinv", x)
    both("matrix_rank", x, rtol=0.3)
    both("pinv", x, rtol=1e-3)
    real = xp.real(x).dtype
    tolerance = xp.asarray(np.linspace(0.1, 0.9, math.prod(x.shape[:-2])), dtype=real)
    tolerance = xp.reshape(tolerance, tuple(x.shape[:-2]))
    both("matrix_rank", x, rtol=tolerance)
    both("pinv", x, rtol=tolerance)


@pytest.mark.parametrize("order", [1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc", None])
@given(data=st.data())
@few
def test_matrix_norm(order: Any, data: Any) -> None:
    x = matrices(data, low=1)
    both("matrix_norm", x, ord=order, keepdims=data.draw(st.booleans()))
    both("matrix_norm", x)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 0.5, -1, -2, 2.5, math.inf, -math.inf])
@given(data=st.data())
@few
def test_vector_norm(order: Any, data: Any) -> None:
    dtype = data.draw(st.sampled_from(FLOATING))
    x = drawn(data.draw(xps.array_shapes(min_dims=0, max_dims=3, max_side=3)), dtype)
    axes = st.none()
    if x.ndim:
        one = st.integers(-x.ndim, x.ndim - 1)
        some = st.sets(st.integers(0, x.ndim - 1), min_size=1).map(tuple)
        axes = axes | one | some
    axis = data.draw(axes)
    both("vector_norm", x, axis=axis, ord=order, keepdims=data.draw(st.booleans()))
    both("vector_norm", x)


def test_names_and_signatures() -> None:
    names = strict.linalg.__all__ + ["eig", "eigvals"]
    assert set(names) == set(xp.linalg.__all__)
    for name in names:
        found = inspect.signature(getattr(xp.linalg, name)).parameters.values()
        wanted = inspect.signature(getattr(strict.linalg, name)).parameters.values()
        assert [(p.name, p.kind, p.default) for p in found] == [
            (p.name, p.kind, p.default) for p in wanted
        ], name


def test_gradients() -> None:
    x = tlc.randn(2, 3, 3, dtype=tlc.float64, requires_grad=True)
    assert tlc.autograd.gradcheck(lambda x: xp.linalg.inv(x + 4 * xp.eye(3, dtype=xp.float64)), x)
    assert tlc.autograd.gradcheck(lambda x: xp.linalg.vector_norm(x, axis=(0, 2)), x)
    assert tlc.autograd.gradcheck(lambda x: xp.tensordot(x, x, axes=((0, 1), (0, 2))), x)


@pytest.mark.parametrize(
    ("first", "second", "axis"),
    [((3,), (1,), -1), ((2, 3), (2, 1), -1), ((1, 3), (2, 3), -2), ((3,), (3,), 0),
     ((3,), (3,), -2), ((2, 3), (3,), -2), ((), (3,), -1)],
)  # fmt: skip
def test_vecdot_does_not_broadcast_what_it_sums_over(first: Any, second: Any, axis: int) -> None:
    with pytest.raises(ValueError, match="one size along the negative axis"):
        xp.vecdot(xp.ones(first), xp.ones(second), axis=axis)
