"""Kullback-Leibler divergences between two distributions of one family."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd import grad
from tensorflow_lite_clone.distributions.bernoulli import Bernoulli
from tensorflow_lite_clone.distributions.categorical import Categorical
from tensorflow_lite_clone.distributions.cauchy import Cauchy
from tensorflow_lite_clone.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.geometric import Geometric
from tensorflow_lite_clone.distributions.gumbel import Gumbel
from tensorflow_lite_clone.distributions.half_normal import HalfNormal
from tensorflow_lite_clone.distributions.independent import Independent
from tensorflow_lite_clone.distributions.kl import kl_divergence, register_kl
from tensorflow_lite_clone.distributions.laplace import Laplace
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.one_hot_categorical import OneHotCategorical
from tensorflow_lite_clone.distributions.pareto import Pareto
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.distributions.utils import _sum_rightmost, euler_constant
from tensorflow_lite_clone.ops.activation_smooth import softplus
from tensorflow_lite_clone.ops.choice import where
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


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(
    p: ContinuousBernoulli, q: ContinuousBernoulli
) -> Tensor:
    norms = p._cont_bern_log_norm() - q._cont_bern_log_norm()
    return p.mean * (p.logits - q.logits) + norms + (-p.probs).log1p() - (-q.probs).log1p()


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
    params = [param.detach().requires_grad_() for param in p._natural_params]
    normalizer = p._log_normalizer(*params)
    gradients = grad(normalizer.sum(), params, create_graph=True)
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
