"""Batch norm on the GPU: planes and channels_last, one part and several, running statistics."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.gpu import Laid, check, needs_gpu, on_device, run_override

pytestmark = needs_gpu

# (N, C, ...): planes that packs fit and do not, several parts, many channels, no plane
SHAPES = [
    (2, 1, 1, 2), (4, 3), (300, 5), (7, 64), (2, 3, 4), (5, 3, 7, 7), (2, 6, 2, 2), (3, 4, 8, 16),
    (2, 600, 5, 5), (33, 40, 4, 4), (4, 2, 96, 100), (1, 3, 60, 201), (2, 3, 4, 5, 6), (9, 130, 3),
    (6, 1, 64, 64), (4, 8, 64, 64), (700, 16),
]  # fmt: skip
LAST = [shape for shape in SHAPES if len(shape) > 2]
OPTIONS = {"momentum": 0.1, "eps": 1e-3}


def values(*shape: int, seed: int = 0, mean: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape) + mean


def forward_and_backward(x, g, w, b) -> None:
    host = x.array if isinstance(x, Laid) else x
    axes = (0, *range(2, host.ndim))
    mean, variance = host.mean(axes), host.var(axes) + 0.05
    check("batch_norm", [x, w, b, None, None], OPTIONS)
    check("batch_norm_eval", [x, w, b, mean, variance], {"eps": 1e-3})
    gradient = {"eps": 1e-3, "needs": (True, True, True)}
    check("batch_norm_backward", [g, x, w, mean, variance], gradient, slack=64)
    check("batch_norm_eval_backward", [g, x, w, mean, variance], gradient, slack=64)


@pytest.mark.parametrize("shape", SHAPES)
def test_contiguous(shape: tuple[int, ...]) -> None:
    x, g = values(*shape, mean=2), values(*shape, seed=1)
    forward_and_backward(x, g, values(shape[1], seed=2), values(shape[1], seed=3))


@pytest.mark.parametrize("shape", LAST)
def test_channels_last(shape: tuple[int, ...]) -> None:
    x, g = (Laid(values(*shape, seed=i, mean=2 - 2 * i), "channels_last") for i in (0, 1))
    forward_and_backward(x, g, values(shape[1], seed=2), values(shape[1], seed=3))


@pytest.mark.parametrize("layout", ["transposed", "sliced", "offset", "channels_last"])
def test_layouts_that_differ(layout: str) -> None:
    x, g = values(3, 4, 6, 8, mean=1), Laid(values(3, 4, 6, 8, seed=1), layout)
    forward_and_backward(x, g, values(4), values(4))
    forward_and_backward(Laid(x, layout), g.array, values(4), values(4))
    forward_and_backward(Laid(x, layout), g, Laid(values(4), "offset"), values(4))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize(
    "needs", [(True, False, False), (False, True, False), (False, False, True), (True, False, True)]
)
def test_needs(needs: tuple[bool, bool, bool], layout: str) -> None:
    for shape in ((3, 5, 4, 4), (4, 2, 96, 100)):
        g, x = (Laid(values(*shape, seed=seed), layout) for seed in (0, 1))
        w, mean, variance = values(shape[1]), values(shape[1]), values(shape[1]) ** 2
        for name in ("batch_norm_backward", "batch_norm_eval_backward"):
            check(name, [g, x, w, mean, variance], {"eps": 0.1, "needs": needs}, slack=64)
            if not needs[1]:
                options = {"eps": 0.1, "needs": needs}
                check(name, [g, x, None, mean, variance], options, slack=64)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_a_mean_of_many_deviations(layout: str) -> None:
    """The variance keeps its digits when the mean is 100 times the deviation."""
    for shape in ((8, 3, 40, 40), (64, 96, 2, 2), (4, 2, 128, 160)):
        x = values(*shape, mean=100)
        x[0, :, 0, 0] = 0  # an outlier must not become the origin of sums
        given = on_device(Laid(x, layout), "float32")
        y, mean, variance = run_override("batch_norm", [given, None, None, None, None], OPTIONS)
        exact = given.get().astype(np.float64)
        true_mean, true_variance = exact.mean((0, 2, 3)), exact.var((0, 2, 3))
        np.testing.assert_allclose(mean.get(), true_mean, rtol=1e-6)
        np.testing.assert_allclose(variance.get(), true_variance, rtol=1e-5)
        back = (1, -1, 1, 1)
        true_y = (exact - true_mean.reshape(back)) / np.sqrt(true_variance.reshape(back) + 1e-3)
        np.testing.assert_allclose(y.get(), true_y, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("shape", [(3, 5, 4, 4), (4, 2, 96, 100), (2, 600, 3, 3)])
def test_outputs_keep_the_layout(shape: tuple[int, ...], layout: str) -> None:
    x, g = (on_device(Laid(values(*shape, seed=seed), layout), "float32") for seed in (0, 1))
    y, mean, variance = run_override("batch_norm", [x, None, None, None, None], OPTIONS)
    assert y.strides == x.strides
    assert run_override("batch_norm_eval", [x, None, None, mean, variance], {"eps": 1}).strides == (
        x.strides
    )
    needs = {"eps": 1.0, "needs": (True, False, False)}
    for name in ("batch_norm_backward", "batch_norm_eval_backward"):
        gx, *_ = run_override(name, [g.copy(order="C"), x, None, mean, variance], needs)
        assert gx.strides == x.strides


@pytest.mark.parametrize("kind", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("shape", [(3, 5, 4, 4), (4, 2, 96, 100), (40, 6)])
def test_running_statistics_are_written(shape: tuple[int, ...], kind: str) -> None:
    import cupy

    x = on_device(values(*shape, mean=1), kind)
    wide = x.astype(np.float64).get()
    axes = (0, *range(2, wide.ndim))
    count = wide.size // shape[1]
    for own in {kind, "float64" if kind == "float64" else "float32"}:
        start = np.arange(1.0, shape[1] + 1)
        m, v = on_device(start, own), on_device(start, own)
        result = run_override("batch_norm", [x, None, None, m, v], {"momentum": 0.25, "eps": 1e-5})
        assert len(result) == 3
        unbiased = wide.var(axes) * count / (count - 1)
        tolerance = {"float16": 1e-3, "bfloat16": 1e-2, "float64": 1e-12}.get(own, 1e-5)
        for mine, new in ((m, wide.mean(axes)), (v, unbiased)):
            true = start + 0.25 * (new - start)
            cupy.testing.assert_allclose(mine.astype(np.float64), true, rtol=tolerance)
    wider = np.float64 if kind == "float64" else np.float32
    half = cupy.zeros((shape[1], 2), wider)[:, 0]  # cannot be written in place
    result = run_override("batch_norm", [x, None, None, half, None], OPTIONS)
    assert len(result) == 4
    assert result[3] is not half
    assert not half.any()


def test_the_public_function_counts_the_write() -> None:
    import tensorflow_lite_clone as tlc

    batch_norm = tlc.nn.functional.batch_norm
    x = tlc.randn(4, 3, 5, 5)
    on_host = [tlc.zeros(3), tlc.ones(3)]
    on_gpu = [t.to("cuda") for t in on_host]
    expected = batch_norm(x, *on_host, training=True)
    found = batch_norm(x.to("cuda"), *on_gpu, training=True)
    assert tlc.allclose(found.cpu(), expected, atol=1e-5)
    for mine, true in zip(on_gpu, on_host):
        assert mine._version == 1
        assert tlc.allclose(mine.cpu(), true, atol=1e-6)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_float32_weights_beside_half(kind: str, layout: str) -> None:
    import cupy

    x, g = (on_device(Laid(values(4, 16, 6, 8, seed=seed), layout), kind) for seed in (0, 1))
    w = cupy.asarray(values(16, seed=2).astype(np.float32))
    y, mean, variance = run_override("batch_norm", [x, w, w, None, None], OPTIONS)
    options = {"eps": 1e-3, "needs": (True, True, True)}
    gx, gw, gb = run_override("batch_norm_backward", [g, x, w, mean, variance], options)
    again = run_override("batch_norm_eval", [x, w, w, mean, variance], {"eps": 1e-3})
    assert (y.dtype, gx.dtype, gw.dtype, gb.dtype) == (x.dtype, x.dtype, w.dtype, w.dtype)
    assert bool((again.view(np.uint16) == y.view(np.uint16)).all())
    wide_x, wide_g = x.astype(np.float64), g.astype(np.float64)
    z = wide_x - wide_x.mean((0, 2, 3), keepdims=True)
    z /= cupy.sqrt((z * z).mean((0, 2, 3), keepdims=True) + 1e-3)
    cupy.testing.assert_allclose(gb, wide_g.sum((0, 2, 3)), rtol=1e-4, atol=1e-4)
    cupy.testing.assert_allclose(gw, (wide_g * z).sum((0, 2, 3)), rtol=1e-3, atol=1e-3)
    scale = w.reshape(1, 16, 1, 1)
    cupy.testing.assert_allclose(y.astype(np.float64), z * scale + scale, rtol=2e-2, atol=2e-2)


def test_batch_norm_kernel_declines() -> None:
    import cupy

    empty = cupy.empty((0, 3), np.float32)
    assert run_override("batch_norm", [empty, *[None] * 4], OPTIONS) is NotImplemented
    x, w = cupy.ones((2, 3), np.float32), cupy.ones(3)
    assert run_override("batch_norm", [x, w, w, None, None], OPTIONS) is NotImplemented
    assert run_override("batch_norm_eval", [x, None, None, w, w], {"eps": 1}) is NotImplemented
