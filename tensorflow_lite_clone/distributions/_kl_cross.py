"""Kullback-Leibler divergences between different families of distributions on the line.

KL(p || q) = -H(p) - E_p[log q(x)]. For many q the second term takes few moments of p, so that one
function serves all p whose moments are known.
"""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.gumbel import Gumbel
from tensorflow_lite_clone.distributions.kl import register_kl
from tensorflow_lite_clone.distributions.laplace import Laplace
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.pareto import Pareto
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.ops.choice import where
from tensorflow_lite_clone.ops.create import full_like
from tensorflow_lite_clone.tensor import Tensor

# Supports that reach outside of q's, whatever the parameters: the divergence is infinite.
_INFINITE: dict[type, tuple[str, tuple[type, ...]]] = {
    ContinuousBernoulli: ("probs", (Pareto,)),
    Exponential: ("rate", (ContinuousBernoulli, Pareto, Uniform)),
    Gumbel: ("loc", (ContinuousBernoulli, Exponential, Pareto, Uniform)),
    Laplace: ("loc", (ContinuousBernoulli, Exponential, Pareto, Uniform)),
    Normal: ("loc", (ContinuousBernoulli, Exponential, Pareto, Uniform)),
    Pareto: ("scale", (ContinuousBernoulli, Uniform)),
}


def register_infinite(type_p: type, parameter: str, types_q: tuple[type, ...]) -> None:
    """Enter pairs whose divergence is infinite; it has the shape of p's `parameter`."""

    def infinite(p: Any, q: Any) -> Tensor:
        return full_like(getattr(p, parameter), math.inf)

    for type_q in types_q:
        register_kl(type_p, type_q)(infinite)


for _type, (_parameter, _types) in _INFINITE.items():
    register_infinite(_type, _parameter, _types)


@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def kl_to_normal(p: Any, q: Normal) -> Tensor:
    """-E[log q] = log(scale sqrt(2 pi)) + (Var x + (E x - loc)^2) / (2 scale^2)."""
    return _to_normal(p, q, p.mean, p.variance)


def _to_normal(p: Any, q: Normal, mean: Tensor, variance: Tensor) -> Tensor:
    squares = variance + (mean - q.loc).pow(2)
    logs = 0.5 * math.log(2 * math.pi) + q.scale.log()
    return squares / (2 * q.scale.pow(2)) + logs - p.entropy()


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Pareto, q: Normal) -> Tensor:
    # Not p's own moments: where they are infinite, masked gradients of them would be NaN.
    common = p.scale / (p.alpha - 1)
    variance = p.alpha * common.pow(2) / (p.alpha - 2)
    return where(p.alpha <= 2, math.inf, _to_normal(p, q, p.alpha * common, variance))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Pareto, q: Exponential) -> Tensor:
    mean = p.alpha * p.scale / (p.alpha - 1)  # as above
    return where(p.alpha <= 1, math.inf, q.rate * mean - q.rate.log() - p.entropy())


@register_kl(ContinuousBernoulli, Exponential)
def kl_to_exponential(p: Any, q: Exponential) -> Tensor:
    """-E[log q] = rate E x - log rate, for x >= 0."""
    return q.rate * p.mean - q.rate.log() - p.entropy()


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Uniform, q: Exponential) -> Tensor:
    return where(p.low < 0, math.inf, kl_to_exponential(p, q))


def kl_to_gumbel(p: Any, q: Gumbel, transform: Tensor) -> Tensor:
    """-E[log q] = log scale + E y + E exp(-y), y = (x - loc) / scale; `transform` is E exp(-y)."""
    return q.scale.log() + (p.mean - q.loc) / q.scale + transform - p.entropy()


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Exponential, q: Gumbel) -> Tensor:
    product = p.rate * q.scale
    return kl_to_gumbel(p, q, (q.loc / q.scale).exp() * product / (product + 1))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Normal, q: Gumbel) -> Tensor:
    exponent = (q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).pow(2)
    return kl_to_gumbel(p, q, exponent.exp())


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Uniform, q: Gumbel) -> Tensor:
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    return kl_to_gumbel(p, q, ((-low).exp() - (-high).exp()) / (high - low))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Normal, q: Laplace) -> Tensor:
    """-E[log q] = log(2 scale) + E abs(x - loc) / scale, with the mean of a folded normal."""
    shift = p.loc - q.loc
    ratio = shift / p.scale
    folded = math.sqrt(2 / math.pi) * p.scale * (-0.5 * ratio.pow(2)).exp()
    folded = folded + shift * (ratio / math.sqrt(2)).erf()
    return folded / q.scale + (2 * q.scale).log() - p.entropy()


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: ContinuousBernoulli, q: Uniform) -> Tensor:
    """Infinite, too, where an end of q is an end of [0, 1], as PyTorch has it."""
    result = (q.high - q.low).log() - p.entropy()
    return where((q.low >= 0) | (q.high <= 1), math.inf, result)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Uniform, q: ContinuousBernoulli) -> Tensor:
    """Infinite, too, where an end of p is an end of [0, 1], as PyTorch has it."""
    logs = p.mean * q.logits + (-q.probs).log1p() + q._cont_bern_log_norm()
    return where((p.high >= 1) | (p.low <= 0), math.inf, -p.entropy() - logs)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Uniform, q: Pareto) -> Tensor:
    """-E[log q] = (alpha + 1) E log x - log(alpha scale^alpha); E log x by the antiderivative."""
    width = p.high - p.low
    mean_log = (p.high.xlogy(p.high) - p.low.xlogy(p.low)) / width - 1
    result = (q.alpha + 1) * mean_log - q.alpha.log() - q.alpha * q.scale.log() - p.entropy()
    return where(p.low < q.scale, math.inf, result)
