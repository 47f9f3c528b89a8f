"""Kullback-Leibler divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.distributions.bernoulli import Bernoulli
from tensorflow_lite_clone.distributions.beta import Beta
from tensorflow_lite_clone.distributions.binomial import Binomial
from tensorflow_lite_clone.distributions.categorical import Categorical
from tensorflow_lite_clone.distributions.cauchy import Cauchy
from tensorflow_lite_clone.distributions.dirichlet import Dirichlet
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.geometric import Geometric
from tensorflow_lite_clone.distributions.gumbel import Gumbel
from tensorflow_lite_clone.distributions.half_normal import HalfNormal
from tensorflow_lite_clone.distributions.independent import Independent
from tensorflow_lite_clone.distributions.kl import kl_divergence, register_kl
from tensorflow_lite_clone.distributions.laplace import Laplace
from tensorflow_lite_clone.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
)
from tensorflow_lite_clone.distributions.multivariate_normal import MultivariateNormal
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.one_hot_categorical import OneHotCategorical
from tensorflow_lite_clone.distributions.pareto import Pareto
from tensorflow_lite_clone.distributions.poisson import Poisson
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.distributions.utils import _sum_rightmost, euler_constant
from tensorflow_lite_clone.ops.nn.activation_smooth import softplus
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.tensor import Tensor


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Bernoulli, q: Bernoulli) -> Tensor:
    """The sum over both events; one that p excludes counts zero, one that only q does, inf."""
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    ones = where(p.probs == 0, 0, where(q.probs == 0, math.inf, ones))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    zeros = where(p.probs == 1, 0, where(q.probs == 1, math.inf, zeros))
    return ones + zeros


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Categorical, q: Categorical) -> Tensor:
    terms = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0, where(q.probs == 0, math.inf, terms)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: ExponentialFamily, q: ExponentialFamily) -> Tensor:
    """The Bregman divergence F(q) - F(p) - <q - p, grad F(p)> of the log normalizers.

    Source: F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", 2010.
    """
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    params, normalizer, gradients = p._normalizer_with_gradients()
    result = q._log_normalizer(*q._natural_params) - normalizer
    for param, other, gradient in zip(params, q._natural_params, gradients):
        result = result - _sum_rightmost((other - param) * gradient, len(q.event_shape))
    return result


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Gumbel, q: Gumbel) -> Tensor:
    ratio = p.scale / q.scale
    shift = (p.loc - q.loc) / q.scale
    crossed = ((1 + ratio).lgamma() - shift).exp()
    return -ratio.log() + shift + ratio * euler_constant + crossed - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Laplace, q: Laplace) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Normal, q: Normal) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    shift = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + shift - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: HalfNormal, q: HalfNormal) -> Tensor:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Pareto, q: Pareto) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, result)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Uniform, q: Uniform) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, result)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Cauchy, q: Cauchy) -> Tensor:
    """Source: F. Chyzak, F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence
    between Cauchy distributions", 2019."""
    sums = (p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)
    return sums.log() - (4 * p.scale * q.scale).log()


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


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Binomial, q: Binomial) -> Tensor:
    """Infinite where p counts further than q; NotImplementedError where q counts further."""
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    single = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * single)


@register_kl(MultivariateNormal, MultivariateNormal)
@register_kl(MultivariateNormal, LowRankMultivariateNormal)
@register_kl(LowRankMultivariateNormal, MultivariateNormal)
@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariate(p: Any, q: Any) -> Tensor:
    """(log det Q - log det P + tr(Q^-1 P) + x^T Q^-1 x - n) / 2, x the difference of the means.

    ValueError if the sizes n differ.
    """
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event "
            "shapes cannot be computed"
        )
    logs = q._log_det() - p._log_det()
    squares = q._trace_of_solved(p._factor()) + q._mahalanobis(q.loc - p.loc)
    return 0.5 * (logs + squares - p.event_shape[0])


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Tensor:
    """The bases', if the transforms are the same; else NotImplementedError."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Independent, q: Independent) -> Tensor:
    """The sum of the bases'; NotImplementedError if their events differ in dimensions."""
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
