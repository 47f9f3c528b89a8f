"""Convolutions of few channels beside the generic forms, and how weights are laid for others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch import hooks
from tests.kernels.gpu import HALF, needs_gpu, on_device, poison, run_override
from tests.kernels.test_conv2d import assert_tf32, calls, compare, normal

pytestmark = needs_gpu

# n, c, o, size, kernel, stride, padding, dilation, groups
GEOMETRIES = (
    (3, 3, 64, (13, 11), (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 1, 32, (28, 28), (3, 3), (1, 1), (0, 0), (1, 1), 1),
    (2, 1, 72, (14, 17), (5, 5), (2, 1), (2, 0), (1, 1), 1),  # more outputs than a block's
    (3, 2, 8, (9, 10), (4, 3), (2, 3), (1, 2), (1, 2), 1),
    (5, 7, 16, (6, 5), (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (4, 8, 40, (3, 3), (2, 2), (1, 1), (3, 3), (1, 1), 1),  # windows of zeros alone
)


@pytest.fixture
def launched() -> Iterator[list[str]]:
    """Gets the name of each kernel that is launched."""
    found: list[str] = []

    def launching(name: str, *_: Any) -> Any:
        found.append(name.split("<")[0])
        return lambda: None

    hooks.on_launch.append(launching)
    yield found
    hooks.on_launch.remove(launching)


@pytest.fixture(autouse=True)
def rounded() -> Iterator[None]:
    before, flags.cudnn_allow_tf32 = flags.cudnn_allow_tf32, True
    yield
    flags.cudnn_allow_tf32 = before


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_conv2d_of_few_channels_matches_generic(launched: list, geometry: tuple) -> None:
    name, arrays, parameters = calls(geometry)[0]
    for layout in ("contiguous", "channels_last", "transposed", "offset", "expanded"):
        compare(name, arrays, parameters, HALF, (layout, "contiguous"))
    compare(name, arrays, parameters, HALF, ("contiguous", "channels_last"))
    assert launched.count("conv2d_few") == 6 * len(HALF)
    assert_tf32(geometry, "contiguous")
    assert launched.count("conv2d_few") == 6 * len(HALF) + 1


def test_conv2d_of_few_channels_loops_over_many_pixels(launched: list) -> None:
    geometry = (48, 3, 16, (32, 40), (3, 3), (1, 1), (1, 1), (1, 1), 1)
    compare(*calls(geometry)[0], HALF)
    assert launched.count("conv2d_few") == len(HALF)


@pytest.mark.parametrize("shape", [
    (16, 3, 12, 3), (16, 4, 3, 3), (18, 3, 3, 3), (16, 12, 1, 1),
])  # fmt: skip
def test_conv2d_few_declines_other_geometries(launched: list, shape: tuple) -> None:
    outputs, channels, *kernel = shape
    geometry = (2, channels, outputs, (14, 14), kernel, (1, 1), (1, 1), (1, 1), 1)
    compare(*calls(geometry)[0], HALF)
    assert "conv2d_few" not in launched


def cast(x: Any, dtype: Any) -> Any:
    return run_override("cast_weight", [x], {"dtype": dtype})


@pytest.mark.parametrize("shape", [
    (64, 64, 3, 3), (5, 8, 3, 3), (3, 200, 2, 2), (7, 24, 5, 1), (40, 16, 1, 7),
])  # fmt: skip
@pytest.mark.parametrize("name", HALF)
def test_conv2d_weight_casts_are_channels_last(shape: tuple, name: str) -> None:
    x = on_device(normal(*shape), "float32")
    y = cast(x, getattr(dtypes, name))
    expected = on_device(x.get(), name)
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    assert y.dtype == expected.dtype
    assert bool((y == expected).all())


@pytest.mark.parametrize("shape", [
    (8, 8, 1, 1), (8, 12, 3, 3), (8, 8, 3), (8, 8, 9, 9), (8, 0, 3, 3), (0, 8, 3, 3),
])  # fmt: skip
def test_conv2d_weight_casts_of_other_shapes_are_declined(shape: tuple) -> None:
    assert cast(on_device(normal(*shape), "float32"), dtypes.float16) is NotImplemented


@pytest.mark.parametrize("name", ["float32", *HALF])
@pytest.mark.parametrize("shape", [(64, 64, 3, 3), (5, 8, 3, 3), (3, 200, 2, 2), (72, 40, 5, 5)])
def test_conv2d_weights_by_taps_match_a_transpose(name: str, shape: tuple) -> None:
    import cupy

    from tensorflow_lite_clone.backends.cupy.convolution_layout import to_krsc

    x = on_device(normal(*shape), name)
    poison(cupy)
    y: Any = to_krsc(x, x.dtype)
    assert y.transpose(0, 2, 3, 1).flags.c_contiguous
    assert bool((y == x).all())


def test_conv2d_under_autocast_copies_no_weights(launched: list) -> None:
    layer = tlc.nn.Conv2d(32, 32, 3, padding=1, bias=False, device="cuda")
    x = tlc.randn(4, 32, 12, 12, device="cuda", requires_grad=True)
    with tlc.autocast("cuda", tlc.bfloat16):
        y = layer(layer(x))
    y.float().square().mean().backward()
    assert launched.count("conv2d_taps") == 1
    assert layer.weight.grad.is_contiguous()
    again = x.detach().double().requires_grad_()
    w = layer.weight.detach().double().requires_grad_()
    conv = tlc.nn.functional.conv2d
    conv(conv(again, w, padding=1), w, padding=1).square().mean().backward()
    for mine, exact in ((x.grad, again.grad), (layer.weight.grad, w.grad)):
        got, true = mine.double().cpu().numpy(), exact.cpu().numpy()
        assert np.linalg.norm(got - true) < 2e-2 * np.linalg.norm(true)
