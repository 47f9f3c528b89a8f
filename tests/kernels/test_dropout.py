"""Dropout by counter: what is dropped is foretold, and the gradient drops the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tests.kernels.gpu import Laid, needs_gpu, on_device, poison
from tests.kernels.philox import words

cupy = pytest.importorskip("cupy")
pytestmark = needs_gpu

P = 0.3
SHAPES = [(1,), (3,), (4,), (7,), (8,), (9,), (63,), (5, 1001)]


def kept(shape, offset=0, seed=3):
    """The factors that a draw with this seed gives, in row-major order."""
    count = math.prod(shape)
    keep = words(seed, offset, count) < math.ceil((1 - P) * 2.0**32)
    return keep.reshape(shape) / (1 - P)


def run(x, backward=None):
    """y (or gx) of the overrides themselves on an array, with seed 3 from the start."""
    from tensorflow_lite_clone import backends
    from tensorflow_lite_clone.dispatch import table

    F = backends.load("cuda:0").F
    F.backend.generator.manual_seed(3)
    poison(cupy)
    y, ticket = table.overrides["dropout", "cupy"](F, x, p=P)
    if backward is not None:
        y = table.overrides["dropout_backward", "cupy"](F, backward, ticket, p=P)
    return y


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("layout", ["contiguous", "offset", "sliced", "transposed"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values(shape, layout, dtype):
    if layout == "transposed" and len(shape) < 2:
        pytest.skip("one axis")
    x = on_device(Laid(np.arange(1.0, math.prod(shape) + 1).reshape(shape) % 250, layout), dtype)
    unit = {"float16": 2e-3, "bfloat16": 2e-2}.get(dtype, 1e-6)
    expected = x.get().astype(np.float64) * kept(shape)
    for y in (run(x), run(cupy.zeros(shape, x.dtype), backward=x)):
        assert y.dtype == x.dtype
        np.testing.assert_allclose(y.get().astype(np.float64), expected, rtol=unit)


def test_channels_last_drops_what_contiguous_drops():
    host = np.random.default_rng(0).standard_normal((2, 6, 5, 7))
    plain, last = on_device(host, "float32"), on_device(Laid(host, "channels_last"), "float32")
    y = run(last)
    assert y.strides == last.strides
    np.testing.assert_array_equal(y.get(), run(plain).get())
    np.testing.assert_array_equal(run(plain, backward=last).get(), run(last, backward=plain).get())


def test_nan_stays():
    y = run(cupy.full(100, np.nan, np.float32))
    assert bool(cupy.isnan(y).all())


def test_gradients():
    x = tlc.ones(50, 40, device="cuda").requires_grad_(True)
    y = tlc.nn.functional.dropout(x, P)
    (gx,) = tlc.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(gx.cpu().numpy(), y.detach().cpu().numpy())
    y = tlc.nn.functional.dropout(x * x, P)
    (gx,) = tlc.autograd.grad(y.sum(), x, create_graph=True)
    (ggx,) = tlc.autograd.grad(gx.sum(), x)
    np.testing.assert_allclose(ggx.cpu().numpy(), 2 * y.detach().cpu().numpy(), rtol=1e-6)


def test_share():
    y = tlc.nn.functional.dropout(tlc.ones(100_000, device="cuda"), P).cpu().numpy()
    assert abs((y == 0).mean() - P) < 4.5 * math.sqrt(P * (1 - P) / y.size)
    assert abs(y.mean() - 1) < 0.01


@pytest.mark.parametrize("name", ["dropout2d", "alpha_dropout", "feature_alpha_dropout"])
def test_compositions(name):
    x = tlc.randn(20, 30, 4, 4, device="cuda")
    y = getattr(tlc.nn.functional, name)(x, P, True)
    assert y.shape == x.shape and not tlc.equal(x, y)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_zero_dim_tensor_keeps_its_shape(dtype):
    x = tlc.ones((), dtype=getattr(tlc, dtype), device="cuda:0", requires_grad=True)
    y = tlc.nn.functional.dropout(x, 0.5)
    assert y.shape == ()
    y.backward()
    assert x.grad.shape == () and x.grad.item() == y.item()
