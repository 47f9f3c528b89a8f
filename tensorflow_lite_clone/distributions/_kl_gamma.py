"""Kullback-Leibler divergences of gamma, beta, Dirichlet, Poisson and binomial distributions.

See `_kl_cross` for how pairs share formulas.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions._kl_cross import (
    kl_to_exponential,
    kl_to_gumbel,
    kl_to_normal,
    register_infinite,
)
from tensorflow_lite_clone.distributions.bernoulli import Bernoulli
from tensorflow_lite_clone.distributions.beta import Beta
from tensorflow_lite_clone.distributions.binomial import Binomial
from tensorflow_lite_clone.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorflow_lite_clone.distributions.dirichlet import Dirichlet
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.gumbel import Gumbel
from tensorflow_lite_clone.distributions.kl import register_kl
from tensorflow_lite_clone.distributions.laplace import Laplace
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.pareto import Pareto
from tensorflow_lite_clone.distributions.poisson import Poisson
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.distributions.utils import euler_constant
from tensorflow_lite_clone.ops.choice import where
from tensorflow_lite_clone.tensor import Tensor

register_infinite(Beta, "concentration1", (Pareto,))
register_infinite(Exponential, "rate", (Beta,))
register_infinite(Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform))
register_infinite(Gumbel, "loc", (Beta, Gamma))
register_infinite(Laplace, "loc", (Beta, Gamma))
register_infinite(Normal, "loc", (Beta, Gamma))
register_infinite(Pareto, "scale", (Beta,))
register_infinite(Poisson, "rate", (Bernoulli, Binomial))

register_kl(Beta, Exponential)(kl_to_exponential)
register_kl(Gamma, Exponential)(kl_to_exponential)
register_kl(Beta, Normal)(kl_to_normal)
register_kl(Gamma, Normal)(kl_to_normal)


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Beta, q: Beta) -> Tensor:
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Dirichlet, q: Dirichlet) -> Tensor:
    """With E log x = digamma(concentration) - digamma(its sum)."""
    total = p.concentration.sum(-1)
    logs = total.lgamma() - q.concentration.sum(-1).lgamma()
    logs = logs + (q.concentration.lgamma() - p.concentration.lgamma()).sum(-1)
    mean_log = p.concentration.digamma() - total.digamma().unsqueeze(-1)
    return logs + ((p.concentration - q.concentration) * mean_log).sum(-1)


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Gamma, q: Gamma) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log()
        + q.concentration.lgamma()
        - p.concentration.lgamma()
        + (p.concentration - q.concentration) * p.concentration.digamma()
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )


def _kl_to_gamma(p: Any, q: Gamma, mean_log: Tensor) -> Tensor:
    """-E[log q] = lgamma(a) - a log rate - (a - 1) E log x + rate E x, a the concentration."""
    a = q.concentration
    logs = a.lgamma() - a * q.rate.log() - (a - 1) * mean_log
    return logs + q.rate * p.mean - p.entropy()


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Beta, q: Gamma) -> Tensor:
    a, b = p.concentration1, p.concentration0
    return _kl_to_gamma(p, q, a.digamma() - (a + b).digamma())


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Exponential, q: Gamma) -> Tensor:
    return _kl_to_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Pareto, q: Gamma) -> Tensor:
    return _kl_to_gamma(p, q, p.alpha.reciprocal() + p.scale.log())


def _mean_log(low: Tensor, high: Tensor) -> Tensor:
    """E log x for x uniform in [low, high], by the antiderivative."""
    return (high.xlogy(high) - low.xlogy(low)) / (high - low) - 1


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Uniform, q: Gamma) -> Tensor:
    return where(p.low < 0, math.inf, _kl_to_gamma(p, q, _mean_log(p.low, p.high)))


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Uniform, q: Beta) -> Tensor:
    a, b = q.concentration1, q.concentration0
    logs = (a - 1) * _mean_log(p.low, p.high) + (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    return where((p.low < 0) | (p.high > 1), math.inf, log_beta - logs - p.entropy())


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    exponent = q.loc / q.scale - p.concentration * product.reciprocal().log1p()
    return kl_to_gumbel(p, q, exponent.exp())


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Beta, q: ContinuousBernoulli) -> Tensor:
    logs = p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()
    return -p.entropy() - logs


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return where((q.low > 0) | (q.high < 1), math.inf, result)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    """Infinite where p counts further than q; NotImplementedError where q counts further."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    single = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * single)
