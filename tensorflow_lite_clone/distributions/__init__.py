"""Probability distributions, as ``torch.distributions``."""

from __future__ import annotations

from tensorflow_lite_clone.distributions import _kl_cross, _kl_same, transforms  # noqa: F401
from tensorflow_lite_clone.distributions.bernoulli import Bernoulli
from tensorflow_lite_clone.distributions.categorical import Categorical
from tensorflow_lite_clone.distributions.cauchy import Cauchy
from tensorflow_lite_clone.distributions.constraint_registry import biject_to, transform_to
from tensorflow_lite_clone.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.generalized_pareto import GeneralizedPareto
from tensorflow_lite_clone.distributions.geometric import Geometric
from tensorflow_lite_clone.distributions.gumbel import Gumbel
from tensorflow_lite_clone.distributions.half_cauchy import HalfCauchy
from tensorflow_lite_clone.distributions.half_normal import HalfNormal
from tensorflow_lite_clone.distributions.independent import Independent
from tensorflow_lite_clone.distributions.kl import kl_divergence, register_kl
from tensorflow_lite_clone.distributions.kumaraswamy import Kumaraswamy
from tensorflow_lite_clone.distributions.laplace import Laplace
from tensorflow_lite_clone.distributions.log_normal import LogNormal
from tensorflow_lite_clone.distributions.logistic_normal import LogisticNormal
from tensorflow_lite_clone.distributions.mixture_same_family import MixtureSameFamily
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from tensorflow_lite_clone.distributions.pareto import Pareto
from tensorflow_lite_clone.distributions.relaxed_bernoulli import RelaxedBernoulli
from tensorflow_lite_clone.distributions.relaxed_categorical import RelaxedOneHotCategorical
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import *  # noqa: F403
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.distributions.von_mises import VonMises
from tensorflow_lite_clone.distributions.weibull import Weibull

__all__ = [
    "Bernoulli",
    "Categorical",
    "Cauchy",
    "ContinuousBernoulli",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "Kumaraswamy",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "MixtureSameFamily",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
__all__ += transforms.__all__  # noqa: PLE0604
