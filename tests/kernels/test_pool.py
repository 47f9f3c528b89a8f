"""Pools on the GPU beside the generic ones: geometries, layouts, ties and NaNs."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import Laid, check, needs_gpu, on_device, run_override

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

RNG = np.random.default_rng(0)
# shape of x, kernel, stride, padding, dilation, ceil_mode
GEOMETRIES = {
    "3/2": ((2, 5, 12, 16), (3, 3), (2, 2), (1, 1), (1, 1), False),
    "3/2 odd": ((2, 3, 9, 11), (3, 3), (2, 2), (1, 1), (1, 1), True),
    "3/2 tall": ((2, 3, 19, 8), (3, 3), (2, 2), (1, 1), (1, 1), False),
    "3/2 across warps": ((3, 2, 10, 72), (3, 3), (2, 2), (1, 1), (1, 1), False),
    "3/2 last window": ((2, 8, 7, 6), (3, 3), (2, 2), (1, 1), (1, 1), True),
    "3/2 unpadded": ((2, 4, 9, 12), (3, 3), (2, 2), (0, 0), (1, 1), False),
    "2/2 tall": ((2, 3, 13, 6), (2, 2), (2, 2), (0, 0), (1, 1), True),
    "2/2": ((3, 4, 8, 8), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "2/2 odd": ((3, 4, 7, 9), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "3/1": ((2, 8, 6, 24), (3, 3), (1, 1), (1, 1), (1, 1), False),
    "uneven": ((2, 6, 10, 12), (2, 4), (3, 1), (1, 2), (1, 1), True),
    "gaps": ((1, 16, 9, 8), (2, 2), (3, 4), (0, 0), (1, 1), False),
    "dilated": ((2, 3, 12, 10), (3, 2), (2, 1), (1, 1), (2, 3), False),
    "one": ((2, 3, 5, 5), (1, 1), (1, 1), (0, 0), (1, 1), False),
    "global": ((4, 24, 7, 7), (7, 7), (7, 7), (0, 0), (1, 1), False),
    "wide": ((1, 2, 20, 20), (15, 16), (1, 2), (3, 4), (1, 1), False),
    "1-d": ((2, 3, 17), (3,), (2,), (1,), (1,), True),
    "1-d long": ((2, 3, 1000), (4,), (4,), (0,), (1,), False),
    "many planes": ((70000, 2, 2, 3), (2, 2), (1, 1), (0, 0), (1, 1), False),
}
SMALL = {name: values for name, values in GEOMETRIES.items() if name != "many planes"}


def layouts(shape):
    return (
        ("contiguous", "channels_last", "sliced") if len(shape) == 4 else ("contiguous", "sliced")
    )


def maxima(geometry):
    names = ("kernel", "stride", "padding", "dilation", "ceil_mode")
    return dict(zip(names, geometry[1:], strict=True))


def eighths(shape):
    """Numbers that every dtype holds, with ties."""
    return RNG.integers(-64, 64, shape) / 8


def cases(geometries=GEOMETRIES):
    return [(name, layout) for name in geometries for layout in layouts(geometries[name][0])]


def same(layout):
    return layout if layout == "channels_last" else "contiguous"


def check_maximum(x, layout, parameters):
    """Forward, winners, and the gradient with and without them."""
    from tensorflow_lite_clone import backends

    physical = Laid(x, layout)
    check("max_pool", (physical,), parameters, compare=lambda result: result[0])
    y, codes = run_override("max_pool", (on_device(physical, "float32"),), parameters)
    assert codes.dtype == np.uint8 and codes.shape == y.shape
    if layout == "channels_last":
        assert cupy.moveaxis(y, 1, -1).flags.c_contiguous
        assert y.base is None, "a view, which is copied when it is handed on"
    settings = {key: value for key, value in parameters.items() if key != "ceil_mode"}
    exact = backends.load("cpu").F.max_pool(x, **parameters)[0]
    check("max_pool_winners", (physical, Laid(exact, same(layout))), settings)
    g = eighths(exact.shape)
    for upstream in {"contiguous", same(layout)}:
        for hint in (None, Laid(codes.get(), same(layout))):
            check("max_pool_backward", (Laid(g, upstream), physical, exact, hint), settings)


@pytest.mark.parametrize("name, layout", cases())
def test_maximum(name, layout):
    geometry = GEOMETRIES[name]
    check_maximum(eighths(geometry[0]), layout, maxima(geometry))


@pytest.mark.parametrize(
    "name, layout",
    [
        ("3/2", "contiguous"),
        ("3/2", "channels_last"),
        ("dilated", "contiguous"),
        ("1-d", "contiguous"),
    ],
)
@pytest.mark.parametrize("odd", [np.nan, -np.inf, np.inf])
def test_odd_values(name, layout, odd):
    geometry = GEOMETRIES[name]
    x = eighths(geometry[0])
    x[RNG.random(x.shape) < 0.3] = odd
    check_maximum(x, layout, maxima(geometry))
    check_maximum(np.full(x.shape, odd), layout, maxima(geometry))


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("divisor", [None, 3])
@pytest.mark.parametrize(
    "name, layout",
    cases({name: values for name, values in SMALL.items() if set(values[4]) == {1}}),
)
def test_mean(name, layout, include, divisor):
    shape, kernel, stride, padding, _, ceil_mode = GEOMETRIES[name]
    parameters = {
        "size": shape[2:], "kernel": kernel, "stride": stride, "padding": padding,
        "ceil_mode": ceil_mode, "include": include, "divisor": divisor,
    }  # fmt: skip
    x = RNG.standard_normal(shape)
    check("avg_pool", (Laid(x, layout),), parameters)
    y = run_override("avg_pool", (on_device(Laid(x, layout), "float32"),), parameters)
    g = Laid(RNG.standard_normal(y.shape), same(layout))
    check("avg_pool_backward", (g,), parameters)


def test_max_pool_kernel_declines():
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch import table

    F = backends.load("cuda:0").F
    maximum = table.overrides["max_pool", "cupy"]
    large = {"kernel": (16, 16), "stride": (1, 1), "padding": (0, 0), "dilation": (1, 1),
             "ceil_mode": False}  # fmt: skip
    assert maximum(F, cupy.zeros((1, 1, 20, 20)), **large) is NotImplemented
    cube = {key: value if key == "ceil_mode" else (1, 1, 1) for key, value in large.items()}
    assert maximum(F, cupy.zeros((1, 1, 2, 2, 2)), **cube) is NotImplemented
    assert maximum(F, cupy.zeros((1, 1, 20, 20), np.int64), **large) is NotImplemented


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_second_derivatives(ndim):
    F = tlc.nn.functional
    for pool in (getattr(F, f"max_pool{ndim}d"), getattr(F, f"avg_pool{ndim}d")):
        results = []
        for device in ("cpu", "cuda"):
            tlc.manual_seed(0)
            x = tlc.randn(2, 3, *(6,) * ndim, dtype=tlc.float64).to(device).requires_grad_(True)
            y = pool(x * x, 3, 2, 1)
            (gx,) = tlc.autograd.grad((y * y).sum(), x, create_graph=True)
            (ggx,) = tlc.autograd.grad(gx.sum(), x)
            results.append([t.detach().cpu().numpy() for t in (y, gx, ggx)])
        for ours, theirs in zip(*results):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_max_pool2d_indices_match_the_cpu():
    x = tlc.randn(2, 3, 9, 8)
    results = [
        tlc.nn.functional.max_pool2d(x.to(device), 3, 2, 1, return_indices=True)
        for device in ("cpu", "cuda")
    ]
    for ours, theirs in zip(*results):
        np.testing.assert_array_equal(ours.cpu().numpy(), theirs.cpu().numpy())
