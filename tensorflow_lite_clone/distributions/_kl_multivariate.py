"""Kullback-Leibler divergences of multivariate normal distributions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.distributions.kl import register_kl
from tensorflow_lite_clone.distributions.lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
)
from tensorflow_lite_clone.distributions.multivariate_normal import MultivariateNormal
from tensorflow_lite_clone.tensor import Tensor


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
