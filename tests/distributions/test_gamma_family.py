"""Gamma, beta and Dirichlet distributions, their kin, and counts, beside PyTorch's."""

from __future__ import annotations

import pytest
from parameterized import parameterized

from tensorflow_lite_clone import special
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

# expression, values that broadcast against the batch
FAMILIES = [
    ("Gamma(2.0, 3.0)", "T([0.1, 1.0, 30.0])"),
    ("Gamma(D([0.5, 1, 20]), D([[1.0], [5.0]]))", "D([0.0, 0.4, 3.0])"),
    ("Gamma(T([0.5, 1.0]), 2)", "T([[0.3, 0.5]])"),
    ("Chi2(3.0)", "T([0.0, 1.0, 9.0])"),
    ("Chi2(D([1.0, 2.0, 8.5]))", "D([[0.5], [7.0]])"),
    ("Beta(2.0, 3.5)", "T([0.1, 0.5, 0.9])"),
    ("Beta(D([[0.5], [1.5]]), D([1.0, 2.0, 0.7]))", "D([0.01, 0.5, 0.99])"),
    ("Beta(T([2.0, 3.0]), 4)", "T(0.25)"),
    ("Dirichlet(D([0.5, 1.0, 2.0]))", "D([[0.2, 0.3, 0.5], [0.5, 0.1, 0.4]])"),
    ("Dirichlet(D([[0.5, 0.7, 0.6], [4.0, 2, 3]]))", "D([0.2, 0.3, 0.5])"),
    ("Dirichlet(T([3.0, 2.0]))", "T([1.0, 0.0])"),
    ("StudentT(3.0)", "T([-4.0, 0.0, 2.0])"),
    ("StudentT(D([0.5, 1, 2, 5]), D([[0.0], [1.0]]), 2.0)", "D([1.0, 2.0, 3.0, -100.0])"),
    ("FisherSnedecor(2.0, 7.0)", "T([0.1, 5.0])"),
    ("FisherSnedecor(D([1.0, 4, 9]), D([2.0, 3, 5]))", "D([[0.3], [2.0]])"),
    ("InverseGamma(1.5, 2.0)", "T([0.1, 5.0])"),
    ("InverseGamma(D([0.5, 1.5, 3]), D([1.0, 2, 3]))", "D([0.5, 1.0, 20.0])"),
    ("Poisson(3)", "T([0.0, 2.0, 50.0])"),
    ("Poisson(D([0.0, 0.5, 30.0]))", "D([0.0, 1.0, 24.0])"),
    ("Binomial(5, T([0.0, 0.3, 1.0]))", "T([[0.0], [5.0]])"),
    ("Binomial(T([5, 30]), logits=D([[0.2, -3.0], [5.0, 60.0]]))", "D([2.0, 0.0])"),
    ("Binomial(40, 0.25)", "T([0.0, 10.0])"),
    ("Binomial(probs=T([0.5, 0.1]))", "T([1.0, 0.0])"),
    ("NegativeBinomial(5, T([0.1, 0.9]))", "T([[0.0], [7.0]])"),
    ("NegativeBinomial(D([0.5, 3.0, 0.0]), logits=D([0.2, -3.0, 0.1]))", "D([2.0, 9.0, 0.0])"),
    ("NegativeBinomial(2.5, 0.25)", "T(3.0)"),
    ("Multinomial(5, T([0.2, 0.3, 0.5]))", "T([[0.0, 1.0, 4.0], [5.0, 0.0, 0.0]])"),
    ("Multinomial(3, logits=D([[0.2, 0.3], [-1.0, 4.0]]))", "D([1.0, 2.0])"),
    ("Multinomial(4, T([0.0, 0.4, 0.6]))", "T([0.0, 3.0, 1.0])"),
]


@parameterized.expand([(expression,) for expression, _ in FAMILIES])
def test_attributes(expression):
    check_attributes(expression, rtol=2e-5, atol=2e-6)


@parameterized.expand(FAMILIES)
def test_log_prob(expression, values):
    check_log_prob(expression, values, rtol=1e-5, atol=2e-6)


@parameterized.expand([(expression,) for expression, _ in FAMILIES])
def test_samples(expression):
    check_samples(expression, rtol=5e-6, atol=1e-7)


@parameterized.expand(
    [
        ("Gamma", "D([0.5, 2.0, 40.0]), D([1.0, 3.0, 0.5])"),
        ("Chi2", "(D([0.5, 2.0, 40.0]),)"),
        ("Beta", "D([0.5, 2.0, 40.0]), D([1.0, 3.0, 20.0])"),
        ("Dirichlet", "(D([[0.5, 2.0, 4.0], [8.0, 1.0, 15.0]]),)"),
        ("StudentT", "D([0.5, 2.0, 40.0]), D([1.0, 3.0, 0.5]), D([1.0, 3.0, 0.5])"),
        ("FisherSnedecor", "D([1.5, 2.0, 40.0]), D([1.0, 3.0, 20.0])"),
        ("InverseGamma", "D([1.5, 2.0, 40.0]), D([1.0, 3.0, 20.0])"),
        ("Poisson", "(D([1.5, 2.0, 40.0]),)"),
        ("lambda p: Binomial(6, p)", "(D([0.5, 0.2, 0.9]),)"),
        ("lambda p: Binomial(6, logits=p)", "(D([0.5, -0.2, 0.0]),)"),
        ("lambda n, p: NegativeBinomial(n, logits=p)", "D([1.0, 2.5, 3.0]), D([0.5, -0.2, 0.9])"),
        ("lambda p: Multinomial(6, p)", "(D([0.5, 0.2, 0.3]),)"),
        ("lambda p: Multinomial(6, logits=p)", "(D([0.5, -0.2, 0.9]),)"),
    ]
)
def test_parameter_gradients(expression, parameters):
    if DEVICE == "cuda":
        pytest.skip("CUDA has a stream of its own")
    # The gradients of PyTorch's gamma and Dirichlet samples are good to three digits.
    check_parameter_gradients(expression, parameters, rtol=2e-3, atol=2e-3)


def test_beta_mode_at_the_edges():
    check_attributes("Beta(D([0.5, 0.5, 2.0, 1.0, 0.4]), D([0.7, 2.0, 0.5, 1.0, 0.4]))")


@lines(
    """
    Gamma(D([0.5, 3.0]), D([2.0, 1.0])).cdf(D([[0.1, 2.0], [4.0, 9.0]]))
    InverseGamma(D([0.5, 3.0]), D([2.0, 1.0])).cdf(D([[0.1, 2.0], [4.0, 9.0]]))
    Chi2(D([0.5, 3.0])).cdf(D([[0.1, 2.0], [4.0, 9.0]]))
    """
)
def test_cdf(expression):
    if not hasattr(special, "gammainc"):
        pytest.skip("needs special.gammainc")
    same(lambda lib: made(lib, expression))


@lines(
    """
    Gamma(2.0, 3.0).log_prob(0.5)
    Chi2(3.0).df, Chi2(T([1.0, 2.0])).concentration, Beta(2, 3).concentration1
    Beta(T([2.0, 1.0]), 3.0).concentration0
    Binomial(3, T([0.2, 0.3])).logits, Binomial(3, logits=T([0.2, 0.3])).probs
    repr(Binomial(3, logits=T([0.2, 0.3])).expand((2, 2))), Binomial(3, T([0.2, 0.3])).param_shape
    NegativeBinomial(3, T([0.2, 0.3])).logits, NegativeBinomial(3, logits=T([0.2])).probs
    NegativeBinomial(3, T([0.2, 0.3])).param_shape, Multinomial(2, T([0.2, 0.8])).param_shape
    Multinomial(2, T([0.2, 0.8])).logits, Multinomial(2, logits=T([0.2, 0.8])).probs
    Binomial(3, T([0.2, 0.3])).enumerate_support(expand=False)
    Binomial(3, 0.5).enumerate_support(), Multinomial(2, T([1.0, 3.0])).total_count
    InverseGamma(2.0, 3.0).rate, InverseGamma(2.0, 3.0).concentration
    Gamma(2.0, T([3.0]))._natural_params, Beta(2.0, 3.0)._natural_params
    Poisson(T([3.0]))._natural_params, Dirichlet(T([3.0, 2.0]))._natural_params
    """
)
def test_further_attributes(expression):
    same(lambda lib: made(lib, expression), atol=1e-6)


@lines(
    """
    Gamma(-1.0, 1.0)
    Gamma(T([1.0, 2.0]), T([1.0, 2.0, 3.0]))
    Gamma(T([1.0, nan]), 1.0)
    Gamma('a', 1.0)
    Gamma(1.0, 1.0).log_prob(T(-1.0))
    Gamma(T([1.0, 2.0]), 1.0).log_prob(T([1.0, 2.0, 3.0]))
    Beta(-1.0, 1.0)
    Beta(1.0, 1.0).log_prob(T(1.5))
    Chi2(0.0)
    Dirichlet(T(1.0))
    Dirichlet(T([1.0, -1.0]))
    Dirichlet(T([1.0, 1.0])).log_prob(T([0.5, 0.6]))
    StudentT(-1.0)
    StudentT(1.0, scale=0.0)
    StudentT(1.0).log_prob(T(nan))
    FisherSnedecor(0.0, 1.0)
    FisherSnedecor(1.0, 1.0).log_prob(T(0.0))
    FisherSnedecor(1.0, 1.0).entropy()
    InverseGamma(0.0, 1.0)
    InverseGamma(1.0, 1.0).log_prob(T(-1.0))
    Poisson(-1.0)
    Poisson(1.0).log_prob(T(1.5))
    Poisson(1.0).log_prob(T(-1.0))
    Poisson(1.0).entropy()
    Poisson(1.0).rsample()
    Binomial(3)
    Binomial(3, T(0.5), T(0.5))
    Binomial(-1, T(0.5))
    Binomial(2.5, T(0.5))
    Binomial(3, T(1.5))
    Binomial(3, T(0.5)).log_prob(T(4.0))
    Binomial(3, T(0.5)).log_prob(T(0.5))
    Binomial(T([3, 4]), T(0.5)).entropy()
    Binomial(T([3, 4]), T(0.5)).enumerate_support()
    NegativeBinomial(-1, T(0.5))
    NegativeBinomial(1, T(1.0))
    NegativeBinomial(1)
    NegativeBinomial(1, T(0.5)).log_prob(T(-1.0))
    NegativeBinomial(1, T(0.5)).entropy()
    Multinomial(T([5]), T([0.2, 0.8]))
    Multinomial(5)
    Multinomial(5, T(0.5))
    Multinomial(5, T([-0.2, 0.8]))
    Multinomial(5, T([0.2, 0.8])).log_prob(T([3.0, 3.0]))
    Multinomial(5, T([0.2, 0.8])).log_prob(T([-1.0, 3.0]))
    Multinomial(5, T([0.2, 0.8])).mode
    Multinomial(5, T([0.2, 0.8])).rsample()
    """
)
def test_errors(expression):
    same(lambda lib: made(lib, expression), words=("",), warned=False)


PAIRS = """
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | Beta(D([1.5, 2.0]), D([0.3, 4.0]))
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | Exponential(D([0.5, 2.0]))
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | Normal(D([0.5, 2.0]), D([3.0, 1.0]))
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | Uniform(D([-1.0, 0.5]), D([1.0, 2.0]))
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | Pareto(D([0.5, 2.0]), D([3.0, 1.0]))
Beta(D([0.5, 2.0]), D([3.0, 1.0])) | ContinuousBernoulli(D([0.2, 0.7]))
Dirichlet(D([[0.5, 2.0], [3.0, 1.0]])) | Dirichlet(D([1.5, 0.3]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Gamma(D([[1.5], [2.5]]), D([0.3, 4.0]))
Chi2(D([0.5, 2.0])) | Gamma(D([[1.5], [2.5]]), D([0.3, 4.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Exponential(D([0.5, 2.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Gumbel(D([0.5, -2.0]), D([3.0, 1.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Normal(D([0.5, -2.0]), D([3.0, 1.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Pareto(D([0.5, 2.0]), D([3.0, 1.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | Uniform(D([0.5, 2.0]), D([3.0, 9.0]))
Gamma(D([0.5, 2.0]), D([3.0, 1.0])) | ContinuousBernoulli(D([0.2, 0.7]))
Exponential(D([0.5, 2.0])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Exponential(D([0.5, 2.0])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Gumbel(D([0.5, 2.0]), D([3.0, 1.0])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Gumbel(D([0.5, 2.0]), D([3.0, 1.0])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Laplace(D([0.5, 2.0]), D([3.0, 1.0])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Laplace(D([0.5, 2.0]), D([3.0, 1.0])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Normal(D([0.5, 2.0]), D([3.0, 1.0])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Normal(D([0.5, 2.0]), D([3.0, 1.0])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Pareto(D([0.5, 2.0]), D([3.0, 0.5])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Pareto(D([0.5, 2.0]), D([3.0, 0.5])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Uniform(D([0.2, -2.0]), D([0.9, 9.0])) | Gamma(D([0.5, 2.0]), D([3.0, 1.0]))
Uniform(D([0.2, 0.0]), D([0.9, 1.0])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Uniform(D([-0.2, 0.2]), D([0.9, 1.5])) | Beta(D([0.5, 2.0]), D([3.0, 1.0]))
Poisson(D([0.5, 2.0])) | Poisson(D([[0.5], [7.0]]))
Poisson(D([0.5, 2.0])) | Bernoulli(D([0.5, 0.2]))
Poisson(D([0.5, 2.0])) | Binomial(3, D([0.5, 0.2]))
Bernoulli(D([0.5, 0.2])) | Poisson(D([0.5, 2.0]))
Binomial(5, D([0.5, 0.2])) | Binomial(5, D([[0.4], [0.9]]))
Binomial(T([5, 4]), D([0.5, 0.2])) | Binomial(4, D([0.4, 0.9]))
Binomial(3, D([0.5, 0.2])) | Binomial(4, D([0.4, 0.9]))
Independent(Gamma(D([0.5, 2.0]), D(1.0)), 1) | Independent(Gamma(D([0.5, 1.0]), D(1.0)), 1)
InverseGamma(D([0.5, 2.0]), D(1.0)) | InverseGamma(D([0.5, 1.0]), D(1.0))
StudentT(D([0.5, 2.0])) | StudentT(D([0.5, 2.0]))
NegativeBinomial(3, D([0.5, 0.2])) | NegativeBinomial(3, D([0.5, 0.2]))
"""


@lines(PAIRS)
def test_kl(pair):
    def script(lib):
        p, q = (eval(side, words(lib)) for side in pair.split("|"))
        return lib.distributions.kl_divergence(p, q)

    same(script, words=("",), rtol=1e-9, atol=1e-9)
