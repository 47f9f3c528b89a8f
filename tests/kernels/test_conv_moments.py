"""Moments that a convolution leaves for the batch norm that follows it in a captured step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone.core.flags import flags
from tests.kernels.gpu import Laid, needs_gpu, on_device, run_override
from tests.kernels.test_conv2d_sm90 import hopper

pytestmark = needs_gpu

KINDS = ("float32", "bfloat16", "float16")
# images, channels, outputs, (height, width): whole tiles, more of them than blocks, several blocks
# of outputs
SHAPES = (
    (32, 32, 64, 32), (264, 32, 64, 32), (64, 32, 256, 16), (136, 64, 128, 16), (512, 64, 40, 8),
)  # fmt: skip


@pytest.fixture
def chain() -> Iterator[Any]:
    hopper()
    from tensorflow_lite_clone.backends.cupy.fusion.deferred import chain

    before, flags.cudnn_allow_tf32 = flags.cudnn_allow_tf32, True
    chain.on = True
    yield chain
    chain.drop()
    flags.cudnn_allow_tf32 = before


def convolved(shape: tuple, kind: str, bias: Any = None, seed: int = 0, kernel: int = 3) -> Any:
    """A convolution's result, which waits."""
    images, channels, outputs, size = shape
    draw = np.random.default_rng(seed).standard_normal
    x = on_device(Laid(draw((images, channels, size, size)), "channels_last"), kind)
    w = on_device(draw((outputs, channels, kernel, kernel)) / (channels * 9) ** 0.5, kind)
    b = None if bias is None else on_device(bias + draw(outputs), kind)
    pad = kernel // 2
    options = {"stride": (1, 1), "padding": (pad, pad), "dilation": (1, 1), "groups": 1}
    return run_override("conv", [x, w, b], options)


def assert_moments(y: Any, moments: Any, rtol: float = 2e-5) -> None:
    counts, means, squares = moments.get().astype(np.float64)
    exact = y.astype(np.float64).get()
    mean = (counts * means).sum(0) / counts.sum(0)
    variance = (squares + counts * (means - mean) ** 2).sum(0) / counts.sum(0)
    assert (counts.sum(0) == exact.size // exact.shape[1]).all()
    deviation = exact.std((0, 2, 3))
    assert (np.abs(mean - exact.mean((0, 2, 3))) <= 1e-6 * (deviation + np.abs(mean))).all()
    np.testing.assert_allclose(variance, deviation**2, rtol)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments_are_of_what_is_written(chain: Any, shape: tuple, kind: str) -> None:
    y = convolved(shape, kind)
    y.data.memset(255, y.nbytes)
    moments = chain.moments(y)
    assert chain.product is None
    assert_moments(y, moments)
    plain = convolved(shape, kind)
    chain.flush()
    assert bool((plain == y).all())


@pytest.mark.parametrize("kind", KINDS)
def test_a_mean_of_many_deviations(chain: Any, kind: str) -> None:
    y = convolved((32, 32, 64, 32), kind, bias=100.0)
    assert_moments(y, chain.moments(y))


def test_every_cut(chain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorflow_lite_clone.backends.cupy import convolution_plan

    found = 0
    for shape in convolution_plan.SHAPES:
        monkeypatch.setattr(convolution_plan, "SHAPES", (shape,))
        hopper().prepare.cache_clear()
        try:
            y = convolved((64, 128, 128, 16), "bfloat16", bias=3.0)
        finally:
            hopper().prepare.cache_clear()
        moments = chain.moments(y)
        if moments is None:  # blocks share the channels, or tiles are cut
            chain.flush()
        else:
            assert shape.split == 1
            found += 1
            assert_moments(y, moments)
    assert found > 4


def test_cut_tiles_have_none(chain: Any) -> None:
    y = convolved((3, 64, 64, 9), "float32")
    assert chain.moments(y) is None
    assert chain.product is None
