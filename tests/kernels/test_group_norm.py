"""Group and instance norm on the GPU: rows in registers and longer ones, planes of every size."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu, on_device, run_override

pytestmark = needs_gpu

# (shape, groups): sub-warps, warps, blocks, long rows; planes with and without packs; no plane
CASES = [
    ((2, 6), 2), ((3, 6, 3), 3), ((2, 6, 2, 2), 6), ((5, 8, 4, 4), 2), ((40, 64, 7, 7), 64),
    ((300, 32, 2, 2), 8), ((2, 12, 16, 20), 3), ((2, 4, 33, 31), 2), ((1, 3, 64, 64), 3),
    ((2, 32, 8, 8), 1), ((1, 2, 128, 128), 1), ((2, 3, 5, 6, 7), 1), ((1, 2, 100, 101), 1),
    ((1, 5, 1, 130), 5), ((2, 2000), 2),
]  # fmt: skip


def values(*shape: int, seed: int = 0, mean: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape) + mean


def moments(x: np.ndarray, groups: int) -> tuple[np.ndarray, np.ndarray]:
    rows = x.reshape(x.shape[0] * groups, -1)
    return rows.mean(1, keepdims=True), 1 / np.sqrt(rows.var(1, keepdims=True) + 0.1)


@pytest.mark.parametrize("case", CASES)
def test_forward_and_backward(case: tuple[tuple[int, ...], int]) -> None:
    shape, groups = case
    x, g = values(*shape, mean=2), values(*shape, seed=1)
    w, b = values(shape[1], seed=2), values(shape[1], seed=3)
    check("group_norm", [x, w, b], {"groups": groups, "eps": 1e-3})
    options = {"groups": groups, "eps": 0.1, "needs": (True, True, True)}
    check("group_norm_backward", [g, x, w, *moments(x, groups)], options, slack=64)


@pytest.mark.parametrize(
    "needs", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
)
def test_needs_and_missing_weights(needs: tuple[bool, bool, bool]) -> None:
    x, g, w = values(3, 8, 5, 4), values(3, 8, 5, 4, seed=1), values(8)
    options = {"groups": 4, "eps": 0.1, "needs": needs}
    check("group_norm_backward", [g, x, w, *moments(x, 4)], options, slack=64)
    if not needs[1]:
        check("group_norm_backward", [g, x, None, *moments(x, 4)], options, slack=64)
    check("group_norm", [x, None, w], {"groups": 4, "eps": 1e-3})
    check("group_norm", [x, w, None], {"groups": 4, "eps": 1e-3})
    check("group_norm", [x, None, None], {"groups": 8, "eps": 1e-3})


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "sliced", "offset"])
def test_layouts(layout: str) -> None:
    x, g = (Laid(values(2, 4, 6, 8, seed=seed), layout) for seed in (0, 1))
    check("group_norm", [x, values(4), values(4)], {"groups": 2, "eps": 1e-3})
    options = {"groups": 2, "eps": 0.1, "needs": (True, True, True)}
    check("group_norm_backward", [g, x, values(4), *moments(x.array, 2)], options, slack=64)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_float32_weights_beside_half(kind: str) -> None:
    import cupy

    x, g = (on_device(values(4, 6, 8, 8, seed=seed), kind) for seed in (0, 1))
    w = cupy.asarray(values(6, seed=2).astype(np.float32))
    y, mean, rstd = run_override("group_norm", [x, w, w], {"groups": 3, "eps": 1e-3})
    options = {"groups": 3, "eps": 1e-3, "needs": (True, True, True)}
    gx, gw, gb = run_override("group_norm_backward", [g, x, w, mean, rstd], options)
    assert (y.dtype, gx.dtype, gw.dtype, gb.dtype) == (x.dtype, x.dtype, w.dtype, w.dtype)
    rows = x.astype(np.float64).reshape(12, -1)
    z = (rows - rows.mean(1, keepdims=True)) / cupy.sqrt(rows.var(1, keepdims=True) + 1e-3)
    z, wide_g = z.reshape(x.shape), g.astype(np.float64)
    scale = w.reshape(1, 6, 1, 1)
    cupy.testing.assert_allclose(y.astype(np.float64), z * scale + scale, rtol=2e-2, atol=2e-2)
    cupy.testing.assert_allclose(gb, wide_g.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)
    cupy.testing.assert_allclose(gw, (wide_g * z).sum((0, 2, 3)), rtol=1e-3, atol=1e-3)


def test_group_norm_kernel_declines() -> None:
    import cupy

    options = {"groups": 2, "eps": 1e-3}
    empty = cupy.empty((0, 4, 2), np.float32)
    assert run_override("group_norm", [empty, None, None], options) is NotImplemented
    x, w = cupy.ones((2, 4, 2), np.float32), cupy.ones(4)
    assert run_override("group_norm", [x, w, w], options) is NotImplemented
