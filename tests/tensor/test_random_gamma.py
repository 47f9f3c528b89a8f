"""Binomial, gamma and Dirichlet numbers: PyTorch's streams, their distributions, gradients."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import same
from tests.device import DEVICE
from tests.tensor.expressions import check, lines, names

mpmath.mp.dps = 40


def _needs_the_cpu(reason):
    if DEVICE == "cuda":
        pytest.skip(reason)


@lines(
    """
    torch._standard_gamma(f), torch._standard_gamma(f.t()), torch._standard_gamma(s)
    torch._standard_gamma(torch.arange(1.0, 500.0) ** 2 / 2048)
    torch._standard_gamma(torch.arange(501).double() ** 2 / 2048)
    torch._standard_gamma(torch.tensor([1e-8, 0.0, math.inf, 1e30])), torch._standard_gamma(f[:0])
    torch._standard_gamma(torch.ones(3)), torch.empty(1).log_normal_(), torch._standard_gamma(f)
    torch._sample_dirichlet(f + 0.1), torch._sample_dirichlet(s), torch._sample_dirichlet(f[:, :0])
    torch._sample_dirichlet(torch.full((50, 3), 0.01, dtype=torch.float64))
    torch.binomial(f * 7, f / 7), torch.binomial(f.t() * 70, (f / 7).t()), torch.binomial(s, s)
    torch.binomial(f[:1] * 100, f[:, :1] * 0.2)
    torch.binomial(torch.full((300,), 40.0), torch.arange(-20.0, 280.0) / 256)
    torch.binomial(torch.full((300,), 1e6), torch.arange(300.0) / 300)
    torch.binomial(2.0 ** torch.arange(50).double(), torch.rand(9, 50).double())
    torch.binomial(torch.tensor([3.0, -2.0]), torch.tensor([math.nan, 0.5]))
    """
)
def test_stream(expression):
    _needs_the_cpu("CUDA has a stream of its own")

    def script(lib):
        lib.manual_seed(77)
        return eval(expression, names(lib)), lib.rand(2), lib.randn(1)

    same(script, rtol=2e-6, atol=0, warned=False)


@lines(
    """
    torch._standard_gamma(torch.full((3,), 2.0), generator=g)
    torch._sample_dirichlet(torch.full((3,), 2.0), generator=g)
    torch.binomial(torch.full((3,), 9.0), torch.full((3,), 0.3), generator=g)
    """
)
def test_generator(expression):
    _needs_the_cpu("CUDA has a stream of its own")

    def script(lib):
        lib.manual_seed(0)
        default = lib.get_rng_state()
        g = lib.Generator(device=None if DEVICE == "cpu" or lib is not tlc else DEVICE)
        g.manual_seed(9)
        drawn = eval(expression, {"torch": lib, "g": g})
        return drawn, lib.equal(default, lib.get_rng_state())

    same(script)


@lines(
    """
    torch._standard_gamma(i)
    torch._standard_gamma(h)
    torch._standard_gamma(2.0)
    torch._sample_dirichlet(i)
    torch._sample_dirichlet(h)
    torch.binomial(i, f)
    torch.binomial(f, i)
    torch.binomial(h, h)
    torch.binomial(f, f.double())
    torch.binomial(5, f)
    torch.binomial(f, f[:, :2])
    torch.binomial(x, x).sum().backward()
    torch._standard_gamma_grad(h, h)
    torch._standard_gamma_grad(f, f.double())
    torch._standard_gamma_grad(f, f[:, :2])
    torch._standard_gamma_grad(x, x.detach()).sum().backward()
    torch._dirichlet_grad(h, h, h)
    torch._dirichlet_grad(f, f, f.double())
    torch._dirichlet_grad(f, f[:, :2], f)
    """
)
def test_refused(expression):
    if expression.endswith("backward()") and "binomial" in expression:
        _needs_the_cpu("CUDA draws no binomial numbers")
    check(expression)


def test_gamma_has_no_second_derivative():
    def script(lib):
        x = lib.ones(3, requires_grad=True)
        (first,) = lib.autograd.grad(lib._standard_gamma(x).sum(), x, create_graph=True)
        first.sum().backward()

    same(script)


def _exact(distribution, density, parameter):
    """-(d distribution / d parameter) / density, by central differences of 40 digits."""
    step = mpmath.mpf(10) ** -14 * parameter
    slope = (distribution(parameter + step) - distribution(parameter - step)) / (2 * step)
    return float(-slope / density)


def _exact_gamma(a, x):
    a, x = mpmath.mpf(a), mpmath.mpf(x)
    density = mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))
    return _exact(lambda a: mpmath.gammainc(a, 0, x, regularized=True), density, a)


def _exact_beta(x, a, b):
    x, a, b = mpmath.mpf(x), mpmath.mpf(a), mpmath.mpf(b)
    density = x ** (a - 1) * (1 - x) ** (b - 1) / mpmath.beta(a, b)
    return _exact(lambda a: mpmath.betainc(a, b, 0, x, regularized=True), density * (1 - x), a)


def _places(seed, count, low, high):
    """Parameters over many sizes, and shifts by up to two deviations."""
    rng = np.random.default_rng(seed)
    return 10 ** rng.uniform(low, high, count), rng.uniform(-2, 2, count)


def _on_device(array, dtype=None):
    return tlc.tensor(array.tolist(), dtype=dtype or tlc.float64, device=DEVICE)


def test_gamma_gradient_is_exact():
    a, shift = _places(0, 60, -2, 4)
    x = torch._standard_gamma(torch.from_numpy(a)).numpy() * np.exp(shift / np.sqrt(1 + a))
    a, x = a[x > 1e-100], x[x > 1e-100]
    expected = [_exact_gamma(*pair) for pair in zip(a.tolist(), x.tolist())]
    ours = tlc._standard_gamma_grad(_on_device(a), _on_device(x))
    np.testing.assert_allclose(ours.cpu().numpy(), expected, rtol=1e-9)
    theirs = torch._standard_gamma_grad(torch.from_numpy(a), torch.from_numpy(x))
    np.testing.assert_allclose(theirs.numpy(), expected, rtol=2e-3)  # what PyTorch's is good to


def test_dirichlet_gradient_is_exact():
    a, shift = _places(1, 60, -1.5, 2.5)
    b, _ = _places(2, 60, -1.5, 2.5)
    ta, tb = torch.from_numpy(a), torch.from_numpy(b)
    logit = torch.distributions.Beta(ta, tb).sample().logit().numpy()
    x = 1 / (1 + np.exp(-logit - shift / np.sqrt(1 + np.minimum(a, b))))
    inside = (x > 1e-100) & (x < 1 - 1e-12)
    a, b, x = a[inside], b[inside], x[inside]
    expected = [_exact_beta(*three) for three in zip(x.tolist(), a.tolist(), b.tolist())]
    ours = tlc._dirichlet_grad(_on_device(x), _on_device(a), _on_device(a + b))
    np.testing.assert_allclose(ours.cpu().numpy(), expected, rtol=1e-9)


@lines(
    """
    torch._standard_gamma_grad(f + 1, f + 0.5), torch._standard_gamma_grad(f + 1, s)
    torch._standard_gamma_grad(f.double() + 1, s.double()), torch._standard_gamma_grad(f, f * 0)
    torch._dirichlet_grad(f / 6, f + 1, f + 3), torch._dirichlet_grad(f / 6, s, s + 1)
    torch._dirichlet_grad(torch.ones(2), torch.ones(2), s)
    """
)
def test_gradient_functions(expression):
    check(expression, rtol=2e-3)  # what PyTorch's are good to


@parameterized.expand([("float32",), ("float64",)])
def test_gradients_of_samples(dtype):
    def script(lib):
        lib.manual_seed(4)
        a = lib.linspace(0.3, 40, 30, dtype=getattr(lib, dtype)).reshape(10, 3).requires_grad_()
        weight = lib.linspace(-1, 1, 30, dtype=getattr(lib, dtype)).reshape(10, 3)
        drawn = lib._standard_gamma(a)
        (drawn * weight).sum().backward()
        return drawn, a.grad, drawn.grad_fn

    if DEVICE != "cuda":
        same(script, rtol=1e-3)

    a = tlc.tensor([[0.4, 1.0, 3.0], [20.0, 9.0, 0.1]], dtype=tlc.float64, device=DEVICE)
    a.requires_grad_()
    tlc.manual_seed(5)
    point = tlc._sample_dirichlet(a)
    assert point.grad_fn.name() == "SampleDirichletBackward0"
    weight = tlc.linspace(-1, 1, 6, dtype=tlc.float64, device=DEVICE).reshape(2, 3)
    (ours,) = tlc.autograd.grad((point * weight).sum(), a)
    x, b = torch.tensor(point.tolist()).double(), torch.tensor(a.tolist()).double()
    w = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3)
    slope = torch._dirichlet_grad(x, b, b.sum(-1, keepdim=True).expand(2, 3))
    expected = slope * (w - (x * w).sum(-1, keepdim=True))
    np.testing.assert_allclose(ours.tolist(), expected.tolist(), rtol=2e-3)


def _kolmogorov(values, distribution):
    """The largest distance of the empirical distribution function, times the root of its size."""
    values = torch.sort(values.double().reshape(-1)).values
    n = values.numel()
    expected = distribution(values)
    above = torch.arange(1, n + 1) / n - expected
    below = expected - torch.arange(n) / n
    return float(torch.maximum(above, below).max()) * math.sqrt(n)


@parameterized.expand([(0.05,), (0.5,), (1.0,), (3.7,), (200.0,)])
def test_gamma_distribution(shape):
    tlc.manual_seed(1)
    drawn = tlc._standard_gamma(tlc.full((20000,), shape, dtype=tlc.float64, device=DEVICE))
    values = torch.tensor(drawn.tolist(), dtype=torch.float64)
    gammainc = torch.special.gammainc
    # 1.95 is passed once in a thousand samples.
    assert _kolmogorov(values, lambda x: gammainc(torch.tensor(shape).double(), x)) < 1.95


@parameterized.expand([(7, 0.2), (60, 0.9), (60, 0.35), (1000, 0.5)])
def test_binomial_distribution(count, prob):
    _needs_the_cpu("CUDA draws no binomial numbers")
    tlc.manual_seed(2)
    shape = (20000,)
    drawn = tlc.binomial(
        tlc.full(shape, float(count), device=DEVICE), tlc.full(shape, prob, device=DEVICE)
    )
    seen = np.bincount(np.array(drawn.tolist(), np.int64), minlength=count + 1)
    k = torch.arange(count + 1.0, dtype=torch.float64)
    expected = torch.distributions.Binomial(count, torch.tensor(prob).double()).log_prob(k).exp()
    gap = np.abs(np.cumsum(seen) / len(drawn) - torch.cumsum(expected, 0).numpy()).max()
    assert gap * math.sqrt(len(drawn)) < 1.95
