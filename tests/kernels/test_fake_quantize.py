"""Fake quantization beside the generic form: values, masks, layouts, and what is declined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.kernels import gpu
from tests.kernels.gpu import Laid, needs_gpu

pytestmark = needs_gpu
PER_TENSOR, PER_CHANNEL = "fake_quantize_per_tensor_affine", "fake_quantize_per_channel_affine"
RANGE = {"quant_min": -8, "quant_max": 7}
SERVED = ("float32", "float16", "bfloat16")


def between_levels(*shape: int) -> np.ndarray:
    """Values with one nearest multiple of 0.25, which bfloat16 has as well."""
    whole = np.random.default_rng(sum(shape)).integers(-20, 20, shape)
    return 0.25 * whole + 0.0625


def run(name: str, arrays: Sequence[Any], parameters: dict) -> Any:
    """The override's result; scales and zero points that are floats are so in float32."""
    x, *levels = arrays
    levels = [one if one.dtype.kind in "iu" else one.astype(np.float32) for one in levels]
    return gpu.run_override(name, [x, *levels], parameters)


def check(name: str, x: Any, scale: np.ndarray, zero_point: np.ndarray) -> None:
    gpu.check(name, [x, scale, zero_point], RANGE, SERVED, run=run)


@pytest.mark.parametrize("size", [1, 3, 8, 255, 4096, 4099])
@pytest.mark.parametrize("zero_point", [np.array(2), np.array(0.5)], ids=["whole", "fraction"])
def test_one_scale(zero_point: np.ndarray, size: int) -> None:
    check(PER_TENSOR, between_levels(size), np.array(0.25), zero_point)


@pytest.mark.parametrize("shape", [(3,), (4, 6, 5, 8), (2, 5, 64), (7, 1)])
@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_a_scale_for_each_channel(kind: type, shape: tuple[int, ...]) -> None:
    for axis, size in enumerate(shape):
        sizes = [size if one == axis else 1 for one in range(len(shape))]
        scale = 0.25 * 2.0 ** (np.arange(size) % 3)
        zero_point: np.ndarray = (np.arange(size) % 4).astype(kind)
        check(PER_CHANNEL, between_levels(*shape), scale.reshape(sizes), zero_point.reshape(sizes))


@pytest.mark.parametrize("layout", ["channels_last", "transposed", "offset"])
def test_layouts(layout: str) -> None:
    x = Laid(between_levels(3, 8, 5, 16), layout)
    scale = 0.25 * 2.0 ** (np.arange(8) % 3).reshape(1, 8, 1, 1)
    check(PER_TENSOR, x, np.array(0.25), np.array(1))
    check(PER_CHANNEL, x, scale, np.arange(8).reshape(1, 8, 1, 1) % 4)


def test_results_lie_as_the_input() -> None:
    x = gpu.on_device(Laid(between_levels(2, 3, 4, 5), "channels_last"), "float16")
    levels = [gpu.on_device(value, None) for value in (np.array(0.25), np.array(0))]
    y, inside = run(PER_TENSOR, [x, *levels], RANGE)
    assert y.strides == x.strides
    assert inside.strides == tuple(stride // 2 for stride in x.strides)


def test_values_without_a_number() -> None:
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e30, -1e30])
    gpu.check(PER_TENSOR, [x, np.array(0.25), np.array(1)], RANGE, ("float32",), run=run)


def test_what_is_declined() -> None:
    """Doubles, arrays with gaps and empty ones are the generic form's."""
    import cupy

    levels = cupy.ones((), np.float32), cupy.ones((), np.int64)
    for x in (cupy.ones(4), cupy.ones(8, np.float32)[::2], cupy.ones((0, 4), np.float32)):
        assert gpu.run_override(PER_TENSOR, [x, *levels], RANGE) is NotImplemented
