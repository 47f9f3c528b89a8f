"""Probability distributions, as ``torch.distributions``."""

from __future__ import annotations

from tensorflow_lite_clone.distributions import _kl_cross, _kl_same, transforms  # noqa: F401
from tensorflow_lite_clone.distributions.bernoulli import Bernoulli
from tensorflow_lite_clone.distributions.beta import Beta
from tensorflow_lite_clone.distributions.binomial import Binomial
from tensorflow_lite_clone.distributions.categorical import Categorical
from tensorflow_lite_clone.distributions.cauchy import Cauchy
from tensorflow_lite_clone.distributions.chi2 import Chi2
from tensorflow_lite_clone.distributions.constraint_registry import biject_to, transform_to
from tensorflow_lite_clone.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorflow_lite_clone.distributions.dirichlet import Dirichlet
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.exponential import Exponential
from tensorflow_lite_clone.distributions.fishersnedecor import FisherSnedecor
from tensorflow_lite_clone.distributions.gamma import Gamma
from tensorflow_lite_clone.distributions.generalized_pareto import GeneralizedPareto
from tensorflow_lite_clone.distributions.geometric import Geometric
from tensorflow_lite_clone.distributions.gumbel import Gumbel
from tensorflow_lite_clone.distributions.half_cauchy import HalfCauchy
from tensorflow_lite_clone.distributions.half_normal import HalfNormal
from tensorflow_lite_clone.distributions.independent import Independent
from tensorflow_lite_clone.distributions.inverse_gamma import InverseGamma
from tensorflow_lite_clone.distributions.kl import kl_divergence, register_kl
from tensorflow_lite_clone.distributions.kumaraswamy import Kumaraswamy
from tensorflow_lite_clone.distributions.laplace import Laplace
from tensorflow_lite_clone.distributions.lkj_cholesky import LKJCholesky
from tensorflow_lite_clone.distributions.log_normal import LogNormal
from tensorflow_lite_clone.distributions.logistic_normal import LogisticNormal
from tensorflow_lite_clone.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
)
from tensorflow_lite_clone.distributions.mixture_same_family import MixtureSameFamily
from tensorflow_lite_clone.distributions.multinomial import Multinomial
from tensorflow_lite_clone.distributions.multivariate_normal import MultivariateNormal
from tensorflow_lite_clone.distributions.negative_binomial import NegativeBinomial
from tensorflow_lite_clone.distributions.normal import Normal
from tensorflow_lite_clone.distributions.one_hot_categorical import (
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from tensorflow_lite_clone.distributions.pareto import Pareto
from tensorflow_lite_clone.distributions.poisson import Poisson
from tensorflow_lite_clone.distributions.relaxed_bernoulli import RelaxedBernoulli
from tensorflow_lite_clone.distributions.relaxed_categorical import RelaxedOneHotCategorical
from tensorflow_lite_clone.distributions.studentT import StudentT
from tensorflow_lite_clone.distributions.transformed_distribution import TransformedDistribution
from tensorflow_lite_clone.distributions.transforms import *  # noqa: F403
from tensorflow_lite_clone.distributions.uniform import Uniform
from tensorflow_lite_clone.distributions.von_mises import VonMises
from tensorflow_lite_clone.distributions.weibull import Weibull
from tensorflow_lite_clone.distributions.wishart import Wishart

__all__ = [
    "Bernoulli",
    "Beta",
    "Binomial",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ContinuousBernoulli",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "StudentT",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "kl_divergence",
    "register_kl",
    "transform_to",
]
__all__ += transforms.__all__  # noqa: PLE0604
