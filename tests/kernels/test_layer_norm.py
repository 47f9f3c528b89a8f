"""Layer norm and RMS norm on the GPU: every variant and its boundaries, tails, layouts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu, on_device, run_override

pytestmark = needs_gpu

# (rows, columns): sub-warps, warps, blocks, the longest rows in registers, longer ones
SHAPES = [
    (1, 1), (5, 3), (300, 8), (7, 33), (37, 64), (9, 130), (33, 256), (1030, 260), (19, 768),
    (6, 1000), (1025, 1024), (5, 1027), (3, 2052), (3, 4096), (2, 4104), (3, 5001), (2, 8200),
    (2, 16384), (2, 16392), (3, 16401), (600, 4100),
]  # fmt: skip


def values(*shape: int, seed: int = 0, mean: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape) + mean


def dtypes_for(rows: int, columns: int) -> tuple[str, ...]:
    small = rows * columns < 1 << 20
    return ("float32", "float16", "bfloat16", "float64") if small else ("float32", "bfloat16")


@pytest.mark.parametrize("shape", SHAPES)
def test_forward(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x, w, b = values(rows, columns, mean=3), values(columns, seed=1), values(columns, seed=2)
    kinds = dtypes_for(rows, columns)
    check("layer_norm", [x, w, b], {"ndim": 1, "eps": 1e-5}, kinds)
    check("rms_norm", [x, w], {"ndim": 1, "eps": 1e-6}, kinds)


@pytest.mark.parametrize("shape", SHAPES)
def test_backward(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x, w, g = values(rows, columns), values(columns, seed=1), values(rows, columns, seed=2)
    mean = x.mean(1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(1, keepdims=True) + 0.1)
    options = {"ndim": 1, "eps": 0.1}
    kinds = dtypes_for(rows, columns)
    check("layer_norm_backward", [g, x, w, mean, rstd], {**options, "needs": (True,) * 3}, kinds)
    check("rms_norm_backward", [g, x, w, rstd], {**options, "needs": (True, True)}, kinds)


@pytest.mark.parametrize("columns", [7, 512, 5000])
@pytest.mark.parametrize(
    "needs", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
)
def test_needs(columns: int, needs: tuple[bool, bool, bool]) -> None:
    x, w, g = values(11, columns), values(columns, seed=1), values(11, columns, seed=2)
    mean, rstd = x.mean(1, keepdims=True), 1 / x.std(1, keepdims=True)
    options = {"ndim": 1, "eps": 1e-5, "needs": needs}
    check("layer_norm_backward", [g, x, w, mean, rstd], options)
    if not needs[1]:
        check("layer_norm_backward", [g, x, None, mean, rstd], options)
    if not needs[2]:
        options["needs"] = needs[:2]
        check("rms_norm_backward", [g, x, w, rstd], options)


@pytest.mark.parametrize("layout", ["transposed", "sliced", "offset", "expanded"])
def test_layouts(layout: str) -> None:
    x, g = (Laid(values(6, 24, seed=seed), layout) for seed in (0, 1))
    if layout == "expanded":  # the oracle sees what the device sees
        x, g = (Laid(np.broadcast_to(v.array[:1], v.array.shape), layout) for v in (x, g))
    w = Laid(values(24, seed=2), "offset" if layout == "offset" else "contiguous")
    mean, rstd = values(6, 1), np.ones((6, 1))
    check("layer_norm", [x, w, w], {"ndim": 1, "eps": 1e-5})
    options = {"ndim": 1, "eps": 1e-5, "needs": (True, True, True)}
    check("layer_norm_backward", [g, x, w, mean, rstd], options)


def test_several_dimensions_and_missing_weights() -> None:
    x = values(2, 3, 4, 5)
    check("layer_norm", [x, None, None], {"ndim": 2, "eps": 1e-5})
    check("layer_norm", [x, None, values(3, 4, 5)], {"ndim": 3, "eps": 1e-5})
    check("layer_norm", [x, values(2, 3, 4, 5), None], {"ndim": 4, "eps": 1e-5})
    check("rms_norm", [x, None], {"ndim": 2, "eps": 1e-5})
    check("rms_norm", [x, values(4, 5)], {"ndim": 2, "eps": 1e-5})


def test_a_mean_of_many_deviations() -> None:
    for columns in (64, 1000, 5000, 20000):
        check("layer_norm", [values(4, columns, mean=300), None, None], {"ndim": 1, "eps": 1e-5},
              ("float32", "float64"), slack=400)  # fmt: skip


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_float32_weights_beside_half(kind: str) -> None:
    import cupy

    for columns in (48, 130, 9000, 20000):
        x, g = (on_device(values(5, columns, seed=seed), kind) for seed in (0, 1))
        w = cupy.asarray(values(columns, seed=2).astype(np.float32))
        y, mean, rstd = run_override("layer_norm", [x, w, w], {"ndim": 1, "eps": 1e-5})
        assert y.dtype == x.dtype
        options = {"ndim": 1, "eps": 1e-5, "needs": (True, True, True)}
        gx, gw, gb = run_override("layer_norm_backward", [g, x, w, mean, rstd], options)
        assert (gx.dtype, gw.dtype, gb.dtype) == (x.dtype, w.dtype, w.dtype)
        wide = [v.astype(np.float64) for v in (g, x, w)]
        true_y = (wide[1] - wide[1].mean(1, keepdims=True)) / wide[1].std(1, keepdims=True)
        cupy.testing.assert_allclose(
            y.astype(np.float64), true_y * wide[2] + wide[2], rtol=2e-2, atol=2e-2
        )
        cupy.testing.assert_allclose(gb, wide[0].sum(0), rtol=1e-4, atol=1e-4)
        cupy.testing.assert_allclose(gw, (wide[0] * true_y).sum(0), rtol=1e-3, atol=1e-3)
    w = w.astype(np.float64)
    assert run_override("layer_norm", [x, w, w], {"ndim": 1, "eps": 1e-5}) is NotImplemented


def test_empty_arrays_are_declined() -> None:
    import cupy

    x = cupy.empty((0, 4), np.float32)
    options = {"ndim": 1, "eps": 1e-5}
    assert run_override("layer_norm", [x, None, None], options) is NotImplemented
    assert run_override("rms_norm", [x, None], options) is NotImplemented
