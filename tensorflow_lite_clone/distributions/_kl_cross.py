"""Kullback-Leibler divergences between different families of distributions.

KL(p || q) = -H(p) - E_p[log q(x)]. For many q the second term takes few moments of p, so that one
function serves all p whose moments are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.distributions.bernoulli import Bernoulli
from tensorflow_lite_clone.distributions.beta import Beta
from tensorflow_lite_clone.distributions.binomial import Binomial
from tensorflow_lite_clone.distributions.continuous_bernoulli import ContinuousBernoulli
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
from tensorflow_lite_clone.ops.create.constructors import full_like
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor

# Supports of p that reach outside of q's, whatever the parameters: the divergence is infinite, of
# the shape of p's parameter.
_WITHIN_LIMITS = Beta, ContinuousBernoulli, Pareto, Uniform
_INFINITE: list[tuple[type, str, tuple[type, ...]]] = [
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", _WITHIN_LIMITS),
    (Gamma, "concentration", _WITHIN_LIMITS),
    (Gumbel, "loc", (*_WITHIN_LIMITS, Exponential, Gamma)),
    (Laplace, "loc", (*_WITHIN_LIMITS, Exponential, Gamma)),
    (Normal, "loc", (*_WITHIN_LIMITS, Exponential, Gamma)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
]


def _infinite(parameter: str) -> Callable[[Any, Any], Tensor]:
    return lambda p, q: full_like(getattr(p, parameter), math.inf)


for _type_p, _parameter, _types_q in _INFINITE:
    for _type_q in _types_q:
        register_kl(_type_p, _type_q)(_infinite(_parameter))


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _kl_to_normal(p: Any, q: Normal) -> Tensor:
    return _of_moments_to_normal(p, q, p.mean, p.variance)


def _of_moments_to_normal(p: Any, q: Normal, mean: Tensor, variance: Tensor) -> Tensor:
    """-E[log q] = log(scale sqrt(2 pi)) + (Var x + (E x - loc)^2) / (2 scale^2)."""
    squares = variance + (mean - q.loc).pow(2)
    logs = 0.5 * math.log(2 * math.pi) + q.scale.log()
    return squares / (2 * q.scale.pow(2)) + logs - p.entropy()


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Pareto, q: Normal) -> Tensor:
    # Not p's own moments: where they are infinite, masked gradients of them would be NaN.
    common = p.scale / (p.alpha - 1)
    variance = p.alpha * common.pow(2) / (p.alpha - 2)
    return where(p.alpha <= 2, math.inf, _of_moments_to_normal(p, q, p.alpha * common, variance))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    mean = p.alpha * p.scale / (p.alpha - 1)  # as above
    return where(p.alpha <= 1, math.inf, q.rate * mean - q.rate.log() - p.entropy())


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _kl_to_exponential(p: Any, q: Exponential) -> Tensor:
    """-E[log q] = rate E x - log rate, for x >= 0."""
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, math.inf, _kl_to_exponential(p, q))


def _kl_to_gumbel(p: Any, q: Gumbel, transform: Tensor) -> Tensor:
    """-E[log q] = log scale + E y + E exp(-y), y = (x - loc) / scale; `transform` is E exp(-y)."""
    return q.scale.log() + (p.mean - q.loc) / q.scale + transform - p.entropy()


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    return _kl_to_gumbel(p, q, (q.loc / q.scale).exp() * product / (product + 1))


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Gamma, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    exponent = q.loc / q.scale - p.concentration * product.reciprocal().log1p()
    return _kl_to_gumbel(p, q, exponent.exp())


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    exponent = (q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).pow(2)
    return _kl_to_gumbel(p, q, exponent.exp())


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    return _kl_to_gumbel(p, q, ((-low).exp() - (-high).exp()) / (high - low))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """-E[log q] = log(2 scale) + E abs(x - loc) / scale, with the mean of a folded normal."""
    shift = p.loc - q.loc
    ratio = shift / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.pow(2)).exp()
    folded = folded + shift * (ratio / math.sqrt(2)).erf()
    return folded / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Beta, q: Uniform) -> Tensor:
    result = (q.high - q.low).log() - p.entropy()
    return where((q.low > 0) | (q.high < 1), math.inf, result)


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    """Infinite, too, where an end of q is an end of [0, 1], as PyTorch has it."""
    result = (q.high - q.low).log() - p.entropy()
    return where((q.low >= 0) | (q.high <= 1), math.inf, result)


@register_kl(Beta, ContinuousBernoulli)
@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_to_continuous_bernoulli(p: Any, q: ContinuousBernoulli) -> Tensor:
    """E[log q] = logits E x + log(1 - probs) + log C(probs)."""
    return -p.entropy() - (p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm())


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    """Infinite, too, where an end of p is an end of [0, 1], as PyTorch has it."""
    return where((p.high >= 1) | (p.low <= 0), math.inf, _kl_to_continuous_bernoulli(p, q))


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


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """-E[log q] = (alpha + 1) E log x - log(alpha scale^alpha)."""
    logs = (q.alpha + 1) * _mean_log(p.low, p.high) - q.alpha.log() - q.alpha * q.scale.log()
    return where(p.low < q.scale, math.inf, logs - p.entropy())


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Bernoulli, q: Poisson) -> Tensor:
    return q.rate - p.probs * q.rate.log() - p.entropy()
