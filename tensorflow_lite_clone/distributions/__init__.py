"""Probability distributions, as ``torch.distributions``."""

from __future__ import annotations

from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.kl import kl_divergence, register_kl
from tensorflow_lite_clone.distributions.normal import Normal

__all__ = [
    "Distribution",
    "ExponentialFamily",
    "Normal",
    "kl_divergence",
    "register_kl",
]
