"""Matrix products: layouts and descriptors on any machine, results and captures on a GPU."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

cupy = pytest.importorskip("cupy")
ml_dtypes = pytest.importorskip("ml_dtypes")

from tensorflow_lite_clone.backends.cupy import cublaslt as lt  # noqa: E402
from tensorflow_lite_clone.backends.cupy import gemm, gemm_plan  # noqa: E402
from tensorflow_lite_clone.backends.cupy.tuning import tuning  # noqa: E402
from tensorflow_lite_clone.core.flags import flags  # noqa: E402
from tests.kernels.gpu import Laid, check, needs_gpu  # noqa: E402
from tests.kernels.host_blas import CUPY, Model, gelu, gelu_slope, on_host  # noqa: E402

on_gpu = lambda test: needs_gpu[0](needs_gpu[1](test))
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
DTYPES = (np.float32, np.float16, BFLOAT16, np.float64, np.complex64, np.complex128)
UNITS = {2: 2.0**-7, 4: 2.0**-20, 8: 2.0**-20, 16: 2.0**-48}
SHAPES = [
    ((4, 7), (7, 5)), ((1, 7), (7, 1)), ((3, 1), (1, 5)), ((6, 3), (3, 1)), ((1, 3), (3, 4)),
    ((7,), (7,)), ((7,), (7, 3)), ((4, 7), (7,)), ((2, 3, 7), (7,)), ((7,), (2, 7, 3)),
    ((2, 4, 7), (7, 5)), ((4, 7), (2, 7, 5)), ((2, 4, 7), (2, 7, 5)), ((2, 1, 4, 7), (3, 7, 5)),
    ((3, 2, 4, 7), (3, 1, 7, 5)), ((2, 3, 4, 7), (1, 3, 7, 5)), ((2, 3, 1, 7), (7, 5)),
    ((0, 3), (3, 2)), ((3, 0), (0, 2)), ((3, 4), (4, 0)), ((0, 3, 4), (4, 2)), ((2, 3, 0), (0, 2)),
]  # fmt: skip
LAYOUTS = ("plain", "transposed", "wide", "stepped", "reversed", "expanded", "swapped")


def physical(x: Any, layout: str) -> Any:
    """The same values (for "expanded": as many) in another layout; NumPy's arrays or CuPy's."""
    xp = cupy if isinstance(x, cupy.ndarray) else np
    if layout == "transposed":
        return xp.ascontiguousarray(x.T).T
    if layout in ("wide", "stepped") and x.ndim:
        step = 1 if layout == "wide" else 2
        room = xp.zeros((*x.shape[:-1], 2 * x.shape[-1] + 3), x.dtype)
        room = room[..., 1 : 1 + step * x.shape[-1] : step]
        room[...] = x
        return room
    if layout == "reversed":
        return x[::-1].copy()[::-1]
    if layout == "expanded" and x.shape[0]:
        return xp.broadcast_to(x[:1], x.shape)
    if layout == "swapped" and x.ndim > 2:
        return xp.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
    return x


def drawn(shape: tuple, dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return np.asarray(x).astype(dtype)


def exact(x: Any) -> np.ndarray:
    x = np.asarray(x.get() if isinstance(x, cupy.ndarray) else x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def near(got: Any, wanted: np.ndarray, k: int = 8, slack: float = 0.0) -> None:
    unit = UNITS[got.dtype.itemsize] if got.dtype.kind != "f" or got.dtype.itemsize != 8 else 1e-13
    size = max(1.0, float(np.abs(wanted).max(initial=0)))
    assert got.shape == wanted.shape
    allowed = 4 * unit * size * max(1, k) ** 0.5 + slack
    np.testing.assert_allclose(exact(got), wanted, rtol=0, atol=allowed)


# --- on any machine that has the library --------------------------------------------------------


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    """cuBLASLt's descriptors, with NumPy in the place of the GPU."""
    try:
        lt.library()
    except ImportError as error:
        pytest.skip(str(error))
    made = Model()
    monkeypatch.setattr(lt, "make_handle", lambda: 1)
    monkeypatch.setattr(lt, "heuristics", made.heuristics)
    monkeypatch.setattr(gemm, "cupy", CUPY)
    monkeypatch.setattr(gemm_plan, "cupy", CUPY)
    monkeypatch.setattr(gemm, "plans", {})
    monkeypatch.setattr(gemm_plan, "plans", gemm.plans)
    monkeypatch.setattr(gemm_plan, "_devices", {})
    gemm_plan.device_state(0).launch = made
    return made


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_gemm_of_any_layout_matches_numpy(model: Model, shapes: tuple) -> None:
    for a, b, dtype in itertools.product(LAYOUTS, LAYOUTS, (np.float64, BFLOAT16, np.complex64)):
        x = on_host(physical(drawn(shapes[0], dtype), a))
        y = on_host(physical(drawn(shapes[1], dtype, 1), b))
        wanted = np.matmul(exact(x), exact(y))
        for alpha in (1.0, 1.0, -0.5):  # the second time the plan is there
            z = gemm.matmul(x, y, alpha=alpha)
            assert z.dtype == dtype
            near(z, alpha * wanted)


def pairs(shapes: tuple, dtype: Any, make: Any) -> tuple:
    """x, y, a bias and an addend for a product."""
    x, y = drawn(shapes[0], dtype), drawn(shapes[1], dtype, 1)
    z = np.matmul(exact(x), exact(y))
    bias = drawn(z.shape[-1:], dtype, 2)
    return (*map(make, (x, y, bias, drawn(z.shape, dtype, 3))), z)


MATRICES: list[Any] = [((4, 7), (7, 5)), ((4, 7), (7, 130)), ((3, 1), (1, 1)), ((1, 3), (3, 9)),
            ((2, 3, 4, 7), (7, 9)), ((3, 0), (0, 2)), ((0, 4), (4, 3))]  # fmt: skip
BATCHES: list[Any] = [((2, 4, 7), (2, 7, 5)), ((4, 7), (2, 7, 5))]


def compute_epilogues(shapes: tuple, dtype: Any, make: Any) -> None:
    """Every epilogue that a product of these shapes has, against NumPy."""
    x, y, bias, addend, z = pairs(shapes, dtype, make)
    k = shapes[0][-1]
    b, c = exact(bias), exact(addend)
    near(gemm.matmul(x, y, bias=bias), z + b, k)
    near(gemm.matmul(x, y, addend=addend, alpha=2.0, beta=-0.5), 2 * z - 0.5 * c, k)
    near(gemm.matmul(x, y, addend=bias, beta=2.0), z + 2 * b, k)
    near(gemm.matmul(x, y, addend=make(physical(addend, "wide"))), z + c, k)
    near(gemm.matmul(x, y, addend=make(physical(addend, "transposed"))), z + c, k)
    for with_bias in (False, True):
        extra = {"bias": bias} if with_bias else {}
        before = z + b * with_bias
        near(gemm.matmul(x, y, epilogue="relu", **extra), np.maximum(before, 0), k)
        # cuBLASLt takes the tangent from the GPU's unit for it: errors up to 2e-5 were seen
        slack = 0.0 if x.dtype.itemsize == 8 else 1e-4 * max(1.0, float(np.abs(z).max(initial=0)))
        near(gemm.matmul(x, y, epilogue="gelu", **extra), gelu(before), k, slack)
        out, aux = gemm.matmul(x, y, epilogue="gelu", keep=True, **extra)
        near(out, gelu(before), k, slack)
        back = gemm.matmul(x, y, epilogue="gelu_backward", aux=aux)
        near(back, z * gelu_slope(before), k, slack)
        out, aux = gemm.matmul(x, y, epilogue="relu", keep=True, **extra)
        near(out, np.maximum(before, 0), k)
        back = gemm.matmul(x, y, epilogue="relu_backward", aux=aux)
        near(back, z * (exact(out) > 0), k)  # a rounded product may have another sign
    if x.ndim == 2 and y.ndim == 2:
        out, sums = gemm.matmul(x, y, epilogue="sums")
        near(out, z, k)
        near(sums, exact(x).sum(1), k)


@pytest.mark.parametrize("shapes", MATRICES + BATCHES, ids=str)
@pytest.mark.parametrize("fused", [True, False])
def test_gemm_epilogues_match_numpy(model: Model, shapes: tuple, fused: bool) -> None:
    if not fused:
        model.supported = lambda epilogue: epilogue == lt.EPILOGUE_DEFAULT
    for dtype in (np.float64, np.float32):
        compute_epilogues(shapes, dtype, on_host)


def test_gemm_plan_of_equal_shapes_is_made_once(model: Model) -> None:
    x, y = on_host(drawn((4, 6), np.float32)), on_host(drawn((6, 5), np.float32))
    for _ in range(3):
        gemm.matmul(x, y)
    aligned = len(gemm.plans)
    gemm.matmul(x[1:], y)
    assert aligned == 1 and len(gemm.plans) == 2 and model.calls == 4


def test_gemm_plan_cache_at_its_limit_is_cleared(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "gemm_plans", 3)
    for n in range(1, 9):
        gemm.matmul(on_host(drawn((n, 3), np.float32)), on_host(drawn((3, 2), np.float32)))
    assert len(gemm.plans) == 3


def test_gemm_of_large_batches_is_split(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "gemm_matrices", 3)
    for shapes in (((7, 2, 5), (7, 5, 3)), ((6, 2, 5), (6, 5, 1)), ((2, 5), (4, 5, 3))):
        gemm.plans.clear()
        x, y, bias, addend, z = pairs(shapes, np.float64, on_host)
        before = model.calls
        near(gemm.matmul(x, y), z)
        assert model.calls - before == 2 + (len(z) > 6)
        near(gemm.matmul(x, y, bias=bias, addend=addend, alpha=2.0), 2 * z + bias + addend)


def test_gemm_failures_raise(model: Model) -> None:
    x, y = on_host(drawn((4, 6), np.float32)), on_host(drawn((6, 5), np.float32))
    gemm_plan.device_state(0).launch = lambda *args: lt.NOT_SUPPORTED
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"\(4, 6\) and \(6, 5\).*CUBLAS_STATUS_NOT_SUPP"):
            gemm.matmul(x, y)
    model.supported = lambda epilogue: False
    gemm.plans.clear()
    with pytest.raises(RuntimeError, match="no algorithm .* float32"):
        gemm.matmul(x, y)
    for bad in ((5, 6), (), (3, 2, 6, 5)):
        with pytest.raises(ValueError, match="matmul"):
            gemm.matmul(on_host(drawn((2, 2, 4, 6), np.float32)), on_host(drawn(bad, np.float32)))
    with pytest.raises(ValueError, match="broadcast"):
        gemm.matmul(on_host(drawn((2, 4, 6), "f4")), on_host(drawn((3, 6, 5), "f4")))


def test_gemm_of_other_dtypes_matches_numpy(model: Model) -> None:
    x, y = on_host(np.arange(6).reshape(2, 3)), on_host(np.arange(12).reshape(3, 4))
    np.testing.assert_array_equal(gemm.matmul(x, y), np.matmul(x, y))
    mixed = gemm.matmul(x.astype(np.float32), y.astype(np.float64))
    assert mixed.dtype == np.float64 and (mixed == np.matmul(x, y)).all()


# --- on a GPU -----------------------------------------------------------------------------------


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_gemm_products_match_numpy(dtype: Any) -> None:
    for shapes in SHAPES:
        for a, b in [(a, "plain") for a in LAYOUTS] + [("plain", b) for b in LAYOUTS]:
            x = physical(cupy.asarray(drawn(shapes[0], dtype)), a)
            y = physical(cupy.asarray(drawn(shapes[1], dtype, 1)), b)
            z = gemm.matmul(x, y)
            assert z.dtype == dtype and z.flags.c_contiguous
            near(z, np.matmul(exact(x), exact(y)))


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES[:4], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("m, n, k", [(128, 256, 64), (129, 130, 131), (1, 513, 40), (512, 1, 300)])
def test_gemm_of_larger_matrices_matches_numpy(m: int, n: int, k: int, dtype: Any) -> None:
    for a, b in itertools.product(("plain", "transposed", "wide"), repeat=2):
        x = physical(cupy.asarray(drawn((m, k), dtype)), a)
        y = physical(cupy.asarray(drawn((k, n), dtype, 1)), b)
        near(gemm.matmul(x, y), np.matmul(exact(x), exact(y)), k)


@on_gpu
@pytest.mark.parametrize("dtype", DTYPES[:4], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shapes", [*MATRICES, *BATCHES, ((64, 128), (128, 256))], ids=str)
def test_gemm_with_fused_epilogue_matches_numpy(shapes: tuple, dtype: Any) -> None:
    compute_epilogues(shapes, dtype, cupy.asarray)


@on_gpu
@pytest.mark.parametrize("dtype", (np.float32, np.float16))
def test_gemm_of_many_matrices_matches_numpy(dtype: Any) -> None:
    x, y = (cupy.asarray(drawn((70000, 3, 3), dtype, i)) for i in range(2))
    near(gemm.matmul(x, y), np.matmul(exact(x), exact(y)))
    near(gemm.matmul(x, y[0, 0][:, None]), np.matmul(exact(x), exact(y[0, 0])[:, None]))
    near(gemm.matmul(x[0, :1], y), np.matmul(exact(x[0, :1]), exact(y)))


@on_gpu
def test_gemm_of_unaligned_operands_matches_numpy() -> None:
    for dtype, start in itertools.product(DTYPES[:4], (1, 2, 4)):
        room = cupy.asarray(drawn((4096,), dtype))
        x, y = room[start : start + 24 * 16].reshape(24, 16), room[1024 : 1024 + 16 * 32]
        y = y.reshape(16, 32)
        bias = room[2048 + start : 2048 + start + 32]
        near(gemm.matmul(x, y, bias=bias), exact(x) @ exact(y) + exact(bias), 16)
        near(gemm.matmul(y.T, x.T), exact(y).T @ exact(x).T, 16)


@on_gpu
def test_gemm_with_out_dtype_gives_that_dtype() -> None:
    for dtype in (np.float16, BFLOAT16):
        x, y = (cupy.asarray(drawn((32, 32), dtype, i)) for i in range(2))
        z = gemm.matmul(x, y, out_dtype=np.float32)
        assert z.dtype == np.float32
        near(z, exact(x) @ exact(y), 32)


@on_gpu
def test_gemm_uses_tf32_only_when_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (cupy.asarray(drawn((256, 256), np.float32, i)) for i in range(2))
    wanted = exact(x) @ exact(y)
    error = lambda: np.abs(exact(gemm.matmul(x, y)) - wanted).max()
    monkeypatch.setattr(flags, "matmul_allow_tf32", False)
    assert error() < 1e-4
    monkeypatch.setattr(flags, "matmul_allow_tf32", True)
    assert error() < 0.2


@on_gpu
def test_gemm_of_two_byte_floats_sums_in_float32() -> None:
    x = cupy.ones((1, 8192), np.float16)
    assert float(gemm.matmul(x, x.T)[0, 0]) == 8192
    x[...] = 0.1
    near(gemm.matmul(x, x.T), exact(x) @ exact(x).T, 1)


@on_gpu
def test_gemm_in_a_captured_graph_is_replayed() -> None:
    stream = cupy.cuda.Stream(non_blocking=True)
    x, y = (cupy.asarray(drawn((64, 64), np.float32, i)) for i in range(2))
    bias = cupy.asarray(drawn((64,), np.float32, 2))
    step = lambda: gemm.matmul(gemm.matmul(x, y, bias=bias), y.T, alpha=2.0)
    with stream:
        step()
        stream.synchronize()
        stream.begin_capture()
        z = step()
        graph = stream.end_capture()
        for seed in (5, 6):
            x[...] = cupy.asarray(drawn((64, 64), np.float32, seed))
            graph.launch()
            stream.synchronize()
            wanted = 2 * (exact(x) @ exact(y) + exact(bias)) @ exact(y).T
            near(z, wanted, 64)


@on_gpu
def test_gemm_on_two_streams_keeps_workspaces_apart() -> None:
    x, y = (cupy.asarray(drawn((256, 256), np.float32, i)) for i in range(2))
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    cupy.cuda.Device().synchronize()
    results = []
    for _ in range(4):
        for stream in streams:
            with stream:
                results.append(gemm.matmul(x, y))
    cupy.cuda.Device().synchronize()
    for z in results:
        near(z, exact(x) @ exact(y), 256)


ROWS = np.random.default_rng(3)
A, B, BATCH = (ROWS.standard_normal(shape) for shape in ((5, 7), (7, 9), (3, 5, 7)))


@on_gpu
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced", "offset"])
def test_gemm_overrides_match_generic_ops(layout: str) -> None:
    x, y = Laid(A, layout), Laid(B, layout)
    check("mm", (x, y), {})
    check("mm", (Laid(BATCH, layout), y), {})
    check("bmm", (Laid(BATCH, layout), Laid(BATCH.swapaxes(1, 2).copy(), layout)), {})
    check("mv", (x, B[:, 0]), {})
    check("dot", (B[:, 0], B[:, 1]), {})
    w = ROWS.standard_normal((9, 7))
    for bias in (None, B[0]):
        check("linear", (x, Laid(w, layout), bias), {})
        check("linear", (Laid(BATCH, layout), w, bias), {})
        check("linear", (A[0], w, bias), {})
    g = ROWS.standard_normal((3, 5, 9))
    check("linear_backward_weight", (Laid(g, layout), Laid(BATCH, layout)), {})
    check("linear_backward_weight", (Laid(g[0], layout), x), {})
    check("linear_backward_weight", (g[0, 0], A[0]), {})
    for addend in (ROWS.standard_normal((5, 9)), B[0], ROWS.standard_normal((5, 1))):
        for scales in ({"beta": 1, "alpha": 1}, {"beta": 0.5, "alpha": 2}, {"beta": 0, "alpha": 1}):
            check("addmm", (addend, x, y), scales)
    z = ROWS.standard_normal((3, 7, 4))
    for addend in (ROWS.standard_normal((3, 5, 4)), z[0, 0], ROWS.standard_normal((5, 1))):
        check("baddbmm", (addend, Laid(BATCH, layout), z), {"beta": 2, "alpha": -1})
