"""Infinities, NaN, signed zeros, extremes and ties beside PyTorch, where the table's rows of drawn
values do not lead; also of so many elements that other code computes them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="the CPU's own forms")

inf, nan = math.inf, math.nan
# In PyTorch gradients at NaN are others for what is left over when vectors are full: never here.
ODD = [nan, inf, -inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 3.0, -3.0, 6.0, 1e4, -1e4, 1e-40, 2.5]
DTYPES = ["float32", "float64", "bfloat16", "float16"]
SIZES = [(size, dtype) for size in (1 << 9, 1 << 13) for dtype in DTYPES] + [(1 << 18, "float32")]

ACTIVATIONS = {
    "relu": lambda F, x: F.relu(x),
    "relu6": lambda F, x: F.relu6(x),
    "hardtanh": lambda F, x: F.hardtanh(x, -0.5, 3.0),
    "leaky_relu": lambda F, x: F.leaky_relu(x, 0.1),
    "threshold": lambda F, x: F.threshold(x, 0.5, 2.0),
    "elu": lambda F, x: F.elu(x),
    "elu of another rate": lambda F, x: F.elu(x, 0.7),
    "selu": lambda F, x: F.selu(x),
    "celu": lambda F, x: F.celu(x, 0.5),
    "hardsigmoid": lambda F, x: F.hardsigmoid(x),
    "hardswish": lambda F, x: F.hardswish(x),
    "softshrink": lambda F, x: F.softshrink(x),
    "hardshrink": lambda F, x: F.hardshrink(x),
    "silu": lambda F, x: F.silu(x),
    "mish": lambda F, x: F.mish(x),
    "softplus": lambda F, x: F.softplus(x),
    "softplus of another rate": lambda F, x: F.softplus(x, 2.0, 5.0),
    "logsigmoid": lambda F, x: F.logsigmoid(x),
    "sigmoid": lambda F, x: F.sigmoid(x),
    "tanh": lambda F, x: F.tanh(x),
    "softsign": lambda F, x: F.softsign(x),
}


def gradient(module, function, values, dtype):
    """The result and the gradient of its sum, on the host."""
    x = module.from_numpy(np.array(values, "float32")).to(getattr(module, dtype))
    x.requires_grad_(True)
    y = function(module, x)
    y.sum().backward()
    wide = module.float64
    return y.dtype, y.detach().to(wide).numpy(), x.grad.to(wide).numpy()


def compare(function, values, dtype, rtol=2e-6):
    found, like = [gradient(module, function, values, dtype) for module in (tlc, torch)]
    assert str(found[0]) == str(like[0])
    rtol = {"bfloat16": 1e-2, "float16": 2e-3}.get(dtype, rtol)
    for got, wanted in zip(found[1:], like[1:], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(("size", "dtype"), SIZES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name, size, dtype):
    function = ACTIVATIONS[name]
    values = ODD * (size // len(ODD))
    compare(lambda module, x: function(module.nn.functional, x), values, dtype)


@pytest.mark.parametrize(("size", "dtype"), SIZES)
@pytest.mark.parametrize(
    "bounds", [(0, 1), (-0.5, 3.0), (None, 0.5), (0, None), (3, 1), (-inf, inf), (nan, 1)]
)
def test_clamp(bounds, size, dtype):
    values = ODD * (size // len(ODD))
    compare(lambda module, x: x.clamp(*bounds), values, dtype)


@pytest.mark.parametrize("name", ["max", "min", "median", "nanmedian"])
@pytest.mark.parametrize(
    "values", [[nan, 1, nan, 2], [nan] * 3, [2, 1, 2, 1, 1], [inf, inf, 1], [-inf, -inf], [0, -0.0]]
)
def test_ties_share_the_gradient(name, values):
    compare(lambda module, x: getattr(module, name)(x), values, "float32")


@pytest.mark.parametrize("name", ["amax", "amin", "logsumexp", "softmax", "log_softmax"])
@pytest.mark.parametrize("row", [[nan, 1, 2], [2, 1, 2], [inf, 1, 2], [-inf] * 3, [-inf, 0, 1e4]])
def test_rows(name, row):
    def function(module, x):
        return getattr(module, name)(module.stack([x, x * 1]), 1)

    compare(function, row, "float32")


@pytest.mark.parametrize("order", [0, 1, 2])
def test_polygamma_of_nan(order):
    compare(lambda module, x: module.polygamma(order, x), [nan, 1.5], "float32", rtol=1e-5)


def test_logit_at_zeros():
    compare(lambda module, x: module.logit(x), [0.0, -0.0, 1.0, 0.5, 2.0, nan], "float32")


@pytest.mark.parametrize("p", [1, 2])
def test_hinges(p):
    def multi(module, x):
        target = module.tensor([0, 2])
        return module.nn.functional.multi_margin_loss(x.reshape(2, 3), target, p=p)

    def multilabel(module, x):
        target = module.tensor([[0, -1, 1], [2, 0, -1]])
        return module.nn.functional.multilabel_margin_loss(x.reshape(2, 3), target)

    for values in ([1, 0, 0, 0, 2, 1], [nan, 1, 2, inf, -inf, 3], [-1, 1, 0.5, 1, 1, 1]):
        compare(multi, values, "float32")
        compare(multilabel, values, "float32")


@pytest.mark.parametrize("size", [1e25, 1e-30, 1e-20, 1.0])
def test_deviations_whose_squares_leave_float32(size):
    for values in ([size, -size], [size, 2 * size, 4 * size, size]):
        compare(lambda module, x: module.std(x), values, "float32")
        compare(lambda module, x: module.std(x.reshape(1, -1), 1), values, "float32")
        compare(lambda module, x: module.std_mean(x)[0], values, "float32")


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize(
    "rows", [[0, 1, nan], [nan] * 3, [0, 1, 2, inf, nan, nan], [-inf, nan, nan, nan], [0, 1, inf]]
)
def test_search_among_nan(rows, dtype, right):
    def found(module):
        kind = getattr(module, dtype)
        line = module.tensor(rows, dtype=kind)
        values = module.tensor([[nan, inf, 0, -inf], [1, 0.5, 2, 7]], dtype=kind)
        several = module.searchsorted(module.stack([line, line]), values, right=right)
        one = module.searchsorted(line, values, right=right)
        return one.tolist(), several.tolist(), module.bucketize(values, line, right=right).tolist()

    assert found(tlc) == found(torch)


def test_members_among_nan():
    def found(module):
        x = module.tensor([3, nan, 1, nan, 3, -0.0, 0])
        return module.isin(x, module.tensor([nan, 1, 3, nan, nan])).tolist()

    assert found(tlc) == found(torch)


@pytest.mark.parametrize("dtype", DTYPES)
def test_histograms_round_as_the_dtype_does(dtype):
    def found(module):
        x = module.from_numpy(np.random.default_rng(0).standard_normal(2000).astype("f4"))
        x = x.to(getattr(module, dtype))
        return module.histc(x, 20).tolist(), module.histc(x, 7, -1, 1).tolist()

    assert found(tlc) == found(torch)


def test_a_histogram_of_a_range_that_leaves_the_dtype():
    x = tlc.tensor([1.0, 2.0, 3e38, -3e38])
    assert tlc.histc(x, 5).tolist() == [1, 0, 2, 0, 1]  # PyTorch: none of them


@pytest.mark.parametrize("values", [[nan, 1, 2], [1, nan, 2], [inf, 1, nan]])
def test_running_sums_of_complex_nan(values):
    def found(module):
        x = module.complex(module.tensor(values, dtype=module.float64), module.zeros(3).double())
        return module.view_as_real(module.logcumsumexp(x, 0)).numpy()

    np.testing.assert_allclose(found(tlc), found(torch), rtol=1e-12)


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_singular_values_of_what_is_not_finite_are_refused(value):
    """LAPACK's iteration does not end for some of these."""
    x = tlc.eye(3)
    x[0, 0] = value
    b = tlc.ones(3, 1)
    linalg = tlc.linalg
    for function in (linalg.svd, linalg.svdvals, linalg.pinv, linalg.cond, linalg.matrix_rank):
        with pytest.raises(linalg.LinAlgError):
            function(x)
    with pytest.raises(linalg.LinAlgError):
        linalg.lstsq(x, b)
    matrices = tlc.stack([x, 2 * tlc.eye(3)]).requires_grad_(True)
    linalg.det(matrices).sum().backward()
    assert matrices.grad[0].isnan().all()
    assert matrices.grad[1].tolist() == (4 * tlc.eye(3)).tolist()
