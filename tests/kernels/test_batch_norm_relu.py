"""Batch norm with its ReLU on the GPU, with and without a residual, in both layouts."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu, on_device, run_override

pytestmark = needs_gpu

# (N, C, ...): planes that packs fit and do not, several parts, many channels
SHAPES = [
    (4, 3), (300, 5), (7, 64), (5, 3, 7, 7), (3, 4, 8, 16), (2, 600, 5, 5), (4, 2, 96, 100),
    (4, 8, 64, 64), (6, 16, 32, 32),
]  # fmt: skip
OPTIONS = {"momentum": 0.1, "eps": 1e-3}


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("shape", SHAPES)
def test_forward(shape: tuple[int, ...], layout: str) -> None:
    layout = layout if len(shape) > 2 else "contiguous"
    x, residual = (Laid(values(*shape, seed=seed), layout) for seed in (0, 1))
    w, b = (values(shape[1], seed=seed) for seed in (2, 3))
    check("batch_norm_relu", [x, w, b, None, None], OPTIONS)
    check("batch_norm_add_relu", [x, residual, w, b, None, None], OPTIONS)
    check("batch_norm_add_relu", [x, residual.array, None, None, None, None], OPTIONS)


def gradients(name, given, needs):
    results = run_override(name, given, {"eps": 1e-3, "needs": needs})
    assert [result is not None for result in results] == list(needs)
    return [None if result is None else result.astype(np.float64).get() for result in results]


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_backward_is_that_of_what_passed(shape: tuple[int, ...], dtype: str, layout: str) -> None:
    """g where the forward kernel's own output is positive, then batch norm's gradients."""
    import cupy

    layout = layout if len(shape) > 2 else "contiguous"
    g, x, residual = (on_device(Laid(values(*shape, seed=i), layout), dtype) for i in range(3))
    w, b = (on_device(values(shape[1], seed=i), dtype) for i in (3, 4))
    y, mean, variance = run_override("batch_norm_relu", [x, w, b, None, None], OPTIONS)
    needs = (True, True, True)
    found = gradients("batch_norm_relu_backward", [g, x, w, b, mean, variance], needs)
    passed = cupy.where(y.astype(np.float64) <= 0, 0, g.astype(np.float64)).astype(g.dtype)
    expected = gradients("batch_norm_backward", [passed, x, w, mean, variance], needs)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)

    given = [x, residual, w, b, None, None]
    y, mean, variance = run_override("batch_norm_add_relu", given, OPTIONS)
    passed = cupy.where(y.astype(np.float64) <= 0, 0, g.astype(np.float64)).astype(g.dtype)
    name, given = "batch_norm_add_relu_backward", [g, x, w, y, mean, variance]
    for wanted in ((True, True, True, True), (True, False, True, True), (False, True, True, False)):
        gx, gr, gw, gb = gradients(name, given, wanted)
        own = (wanted[0], *wanted[2:])
        expected = gradients("batch_norm_backward", [passed, x, w, mean, variance], own)
        for ours, theirs in zip((gx, gw, gb), expected, strict=True):
            if ours is not None:
                np.testing.assert_array_equal(ours, theirs)
        if gr is not None:
            np.testing.assert_array_equal(gr, passed.astype(np.float64).get())


def test_the_layout_is_the_input_s() -> None:
    shape = (3, 8, 6, 4)
    x, residual = (on_device(Laid(values(*shape), "channels_last"), "float32") for _ in range(2))
    y, mean, variance = run_override("batch_norm_add_relu", [x, residual, *[None] * 4], OPTIONS)
    options = {"eps": 1e-3, "needs": (True, True, False, False)}
    given = [y.copy(order="C"), x, None, y, mean, variance]
    gx, gr, *_ = run_override("batch_norm_add_relu_backward", given, options)
    assert y.strides == gx.strides == gr.strides == x.strides


def test_nan_stays() -> None:
    x = values(4, 3, 8, 8)
    x[0, 1, 2, 3] = np.nan
    check("batch_norm_relu", [x, None, None, None, None], OPTIONS)
