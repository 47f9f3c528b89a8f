"""Exponential families."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd import grad
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import _sum_rightmost
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)).

    theta are the natural parameters, t the sufficient statistic, F the log normalizer and k the
    carrier measure. Subclasses say `_natural_params`, `_log_normalizer` and the mean of k.

    Source: F. Nielsen, R. Nock, "Entropies and cross-entropies of exponential families", 2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """theta."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """F(theta)."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """The mean of k(x)."""
        raise NotImplementedError

    def _normalizer_with_gradients(self) -> tuple[list[Tensor], Tensor, Any]:
        """theta, cut off from its graph, F(theta) and grad F(theta)."""
        params = [param.detach().requires_grad_() for param in self._natural_params]
        normalizer = self._log_normalizer(*params)
        return params, normalizer, grad(normalizer.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> - E[k(x)]."""
        params, normalizer, gradients = self._normalizer_with_gradients()
        result = normalizer - self._mean_carrier_measure
        for param, gradient in zip(params, gradients):
            term = param * gradient
            result = result - _sum_rightmost(term, term.ndim - len(self._batch_shape))
        return result
