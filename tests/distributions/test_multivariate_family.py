"""Distributions of vectors and matrices, beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import same
from tests.device import DEVICE
from tests.distributions.compare import (
    check_attributes,
    check_log_prob,
    check_parameter_gradients,
    check_samples,
    made,
    words,
)
from tests.tensor.expressions import lines

COVARIANCE = "D([[2.0, 0.5, 0.1], [0.5, 1.0, -0.2], [0.1, -0.2, 3.0]])"
BATCH = "D([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 4.0]]])"
TRIL = "D([[1.0, 0.0], [0.7, 2.0]])"
FACTOR = "D([[1.0, 0.5], [0.7, 2.0], [0.0, 1.0]])"
ORDER = "D([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])"

FAMILIES = [
    (f"MultivariateNormal(D([1.0, 2.0, 3.0]), {COVARIANCE})", "D([[0.5, 1.5, 2.0], [0, 1, 9]])"),
    (f"MultivariateNormal(torch.zeros(3, 2).double(), scale_tril={TRIL})", "D([0.5, 1.5])"),
    (f"MultivariateNormal(D([0.0, 1.0]), precision_matrix={BATCH})", "D([[[0.5, 1.5]]])"),
    ("MultivariateNormal(torch.zeros(2), torch.eye(2))", "T([0.5, 1.5])"),
    (
        f"LowRankMultivariateNormal(D([1.0, 2.0, 3.0]), {FACTOR}, D([1.0, 0.5, 2.0]))",
        "D([[0.5, 1.5, 2.0], [0, 1, 9]])",
    ),
    (
        f"LowRankMultivariateNormal(torch.zeros(2, 3).double(), {FACTOR}, D([[1.0, 0.5, 2.0]]))",
        "D([0.5, 1.5, 2.0])",
    ),
    (f"Wishart(D(4.0), {COVARIANCE})", COVARIANCE),
    (f"Wishart(D([[4.0], [3.5], [2.5]]), precision_matrix={BATCH})", BATCH),
    (f"Wishart(5, scale_tril={TRIL})", BATCH),
    ("LKJCholesky(3)", ORDER + ".float()"),
    ("LKJCholesky(3, D([0.5, 2.0]))", ORDER),
    ("LKJCholesky(2, D([[0.5], [2.0]]))", "D([[1.0, 0.0], [-0.6, 0.8]])"),
]


@parameterized.expand([(expression,) for expression, _ in FAMILIES])
def test_attributes(expression):
    check_attributes(expression, rtol=1e-6)


@parameterized.expand(FAMILIES)
def test_log_prob(expression, values):
    check_log_prob(expression, values, rtol=2e-6, atol=1e-6)


@parameterized.expand([(name,) for name, _ in FAMILIES if not name.startswith("Wishart")])
def test_samples(expression):
    check_samples(expression, rtol=5e-6, atol=1e-6)


@parameterized.expand([(name,) for name, _ in FAMILIES if name.startswith("Wishart")])
def test_wishart_samples(expression):
    """PyTorch's check for singular samples is inverted: it warns of sound ones, draws them again
    and loses their gradient. So what is compared is the first draw."""
    if DEVICE == "cuda":
        pytest.skip("CUDA has a stream of its own")

    def script(lib):
        d = made(lib, expression)
        lib.manual_seed(6)
        draw = d.rsample if lib is tlc else d._bartlett_sampling
        return draw(lib.Size(())), draw(lib.Size((2, 3)))

    same(script, rtol=1e-8)


def test_wishart_sample_gradients():
    if DEVICE == "cuda":
        pytest.skip("CUDA has a stream of its own")

    def script(lib):
        df, matrix = made(lib, f"D([4.5, 8.0]).requires_grad_(), {COVARIANCE}.requires_grad_()")
        d = lib.distributions.Wishart(df, matrix)
        lib.manual_seed(3)
        draw = d.rsample if lib is tlc else d._bartlett_sampling
        sample = draw(lib.Size((4,)))
        return lib.autograd.grad(sample.logdet().sum() + sample.sum(), (df, matrix))

    same(script, rtol=1e-3)  # PyTorch's gradient of gamma samples is good to three digits


@parameterized.expand(
    [
        ("MultivariateNormal", f"D([1.0, 2.0, 3.0]), {COVARIANCE}"),
        ("lambda m, s: MultivariateNormal(m, scale_tril=s)", f"D([1.0, 2.0]), {TRIL}"),
        ("lambda m, s: MultivariateNormal(m, precision_matrix=s)", f"D([1.0, 2.0]), {BATCH}"),
        ("LowRankMultivariateNormal", f"D([1.0, 2, 3]), {FACTOR}, D([1.0, 0.5, 2.0])"),
        ("lambda c: LKJCholesky(3, c)", "(D([4.5, 0.5]),)"),
    ]
)
def test_parameter_gradients(expression, parameters):
    if DEVICE == "cuda":
        pytest.skip("CUDA has a stream of its own")
    check_parameter_gradients(expression, parameters, rtol=1e-6, atol=1e-7)


@lines(
    f"""
    MultivariateNormal(D([1.0, 2.0, 3.0]), {COVARIANCE}).precision_matrix
    MultivariateNormal(D([1.0, 2.0, 3.0]), {COVARIANCE}).scale_tril
    MultivariateNormal(D([1.0, 2.0]), precision_matrix={BATCH}).covariance_matrix
    MultivariateNormal(D([1.0, 2.0]), precision_matrix={BATCH}).expand((3, 2)).scale_tril
    MultivariateNormal(D([1.0, 2.0]), scale_tril={TRIL}).expand((3,)).covariance_matrix
    LowRankMultivariateNormal(D([1.0, 2, 3]), {FACTOR}, D([1.0, 0.5, 2.0])).scale_tril
    LowRankMultivariateNormal(D([1.0, 2, 3]), {FACTOR}, D([1.0, 0.5, 2.0])).covariance_matrix
    LowRankMultivariateNormal(D([1.0, 2, 3]), {FACTOR}, D([1.0, 0.5, 2.0])).precision_matrix
    Wishart(D(4.0), {COVARIANCE}).precision_matrix, Wishart(D(4.0), {COVARIANCE}).scale_tril
    Wishart(D([4.0, 5]), precision_matrix={BATCH}).covariance_matrix
    Wishart(D([4.0, 5]), precision_matrix={BATCH})._natural_params
    """
)
def test_matrices(expression):
    same(lambda lib: made(lib, expression), rtol=1e-8)


@lines(
    """
    MultivariateNormal(T(1.0), torch.eye(2))
    MultivariateNormal(T([1.0]), torch.ones(2))
    MultivariateNormal(T([1.0]), scale_tril=torch.ones(2))
    MultivariateNormal(T([1.0]), precision_matrix=torch.ones(2))
    MultivariateNormal(torch.ones(2))
    MultivariateNormal(torch.ones(2), torch.eye(2), torch.eye(2))
    MultivariateNormal(torch.ones(2), -torch.eye(2))
    MultivariateNormal(torch.ones(2), scale_tril=torch.ones(2, 2))
    MultivariateNormal(torch.ones(2), torch.eye(2)).log_prob(torch.ones(3))
    MultivariateNormal(torch.ones(2), torch.eye(2)).log_prob(T([1.0, nan]))
    MultivariateNormal(torch.ones(3, 2), torch.eye(2).repeat(4, 1, 1))
    LowRankMultivariateNormal(T(0.0), torch.ones(3, 2), torch.ones(3))
    LowRankMultivariateNormal(torch.ones(3), torch.ones(3), torch.ones(3))
    LowRankMultivariateNormal(torch.ones(3), torch.ones(2, 2), torch.ones(3))
    LowRankMultivariateNormal(torch.ones(3), torch.ones(3, 2), torch.ones(2))
    LowRankMultivariateNormal(torch.ones(4, 3), torch.ones(2, 3, 2), torch.ones(3))
    LowRankMultivariateNormal(torch.ones(3), torch.ones(3, 2) * 0, -torch.ones(3))
    Wishart(T(3.0))
    Wishart(T(3.0), torch.eye(2), torch.eye(2))
    Wishart(T(3.0), torch.ones(2))
    Wishart(T(1.0), torch.eye(2))
    Wishart(0.5, torch.eye(2))
    Wishart(3.0, -torch.eye(2))
    Wishart(3.0, torch.eye(2)).log_prob(-torch.eye(2))
    LKJCholesky(1)
    LKJCholesky(3, -1.0)
    LKJCholesky(3).rsample()
    LKJCholesky(3).entropy()
    LKJCholesky(3).mean
    LKJCholesky(2).log_prob(torch.ones(2, 2))
    """
)
def test_errors(expression):
    same(lambda lib: made(lib, expression), words=("",), warned=False)


NORMALS = [
    f"MultivariateNormal(D([1.0, 2.0, 3.0]), {COVARIANCE})",
    f"MultivariateNormal(torch.zeros(2, 3).double(), precision_matrix={COVARIANCE})",
    f"LowRankMultivariateNormal(D([0.0, 2.0, 1.0]), {FACTOR}, D([1.0, 0.5, 2.0]))",
    f"LowRankMultivariateNormal(D([0.0, 2, 1]), {FACTOR}[:, :1], D([[1.0, 0.5, 3], [1, 2, 1]]))",
]


@parameterized.expand(
    [(p, q) for p in NORMALS for q in NORMALS if p != NORMALS[3] or q not in NORMALS[:2]]
    + [(NORMALS[0], "MultivariateNormal(D([1.0, 2.0]), D([[2.0, 0.0], [0.0, 1.0]]))")]
    + [(f"Wishart(D(4.0), {COVARIANCE})", f"Wishart(D([5.0, 7]), {COVARIANCE} * 2)")]
    + [("LKJCholesky(3)", "LKJCholesky(3)")]
)
def test_kl(p, q):
    def script(lib):
        both = [eval(side, words(lib)) for side in (p, q)]
        return lib.distributions.kl_divergence(*both)

    same(script, words=("",), rtol=1e-9, atol=1e-9)


def test_kl_of_a_low_rank_batch():
    """PyTorch refuses a batch here; the divergence is that of the same normal in full."""
    p, *others = [made(tlc, expression) for expression in reversed(NORMALS)]
    full = tlc.distributions.MultivariateNormal(p.loc, p.covariance_matrix)
    for q in others[1:]:
        ours, expected = [tlc.distributions.kl_divergence(side, q) for side in (p, full)]
        np.testing.assert_allclose(ours.tolist(), expected.tolist(), rtol=1e-12)


@parameterized.expand([("D(4.0)", COVARIANCE), ("D([4.5, 8.0])", COVARIANCE)])
def test_wishart_parameter_gradients(df, matrix):
    def script(lib):
        given = [made(lib, text).requires_grad_() for text in (df, matrix)]
        d = lib.distributions.Wishart(*given)
        total = d.log_prob(made(lib, COVARIANCE) * 2).sum() + d.entropy().sum()
        return lib.autograd.grad(total + d.variance.sum(), given)

    same(script, rtol=1e-9)


def test_low_degrees_of_freedom_warn():
    same(lambda lib: made(lib, "Wishart(T(1.5), torch.eye(2))").mean)


def test_singular_wishart_samples_are_drawn_again():
    tlc.manual_seed(0)
    with pytest.warns(UserWarning, match="Low df"):
        d = made(tlc, "Wishart(T(1.001), T([[1.0, 0.999], [0.999, 1.0]]) * 1e-3)")
    with pytest.warns(UserWarning, match="Singular sample detected"):
        sample = d.sample((200,))
    again = d._bartlett_sampling(tlc.Size((200,)))
    assert int((~d.support.check(sample)).sum()) < int((~d.support.check(again)).sum())
