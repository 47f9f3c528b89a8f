"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.core.shape import Size, broadcast_shapes
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._covariance import (
    MATRICES,
    OfCovariance,
    given_matrix,
    scale_tril_of,
)
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import _standard_normal
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["MultivariateNormal"]


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """matrix @ vector, over broadcast leading dimensions."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """The squared length of factor^-1 x, for lower triangular factors (..., n, n).

    Dimensions of x (..., n) to the left of the factors' become columns of one system.
    """
    batch = factor.ndim - 2
    outer = x.shape[: max(x.ndim - 1 - batch, 0)]
    columns = x.reshape((-1, *x.shape[len(outer) :])).movedim(0, -1)
    solved = linalg.solve_triangular(factor, columns, upper=False)
    lengths = solved.pow(2).sum(-2).movedim(-1, 0)
    return lengths.reshape((*outer, *lengths.shape[1:]))


class Gaussian(Distribution):
    """A normal distribution of vectors, whatever its covariance is made of."""

    support = constraints.real_vector
    has_rsample = True
    loc: Tensor

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _log_det(self) -> Tensor:
        """The logarithm of the covariance's determinant."""
        raise NotImplementedError

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """x^T covariance^-1 x."""
        raise NotImplementedError

    def _factor(self) -> Tensor:
        """Some A with A A^T = covariance."""
        raise NotImplementedError

    def _trace_of_solved(self, factor: Tensor) -> Tensor:
        """The trace of covariance^-1 A A^T."""
        raise NotImplementedError

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)


class MultivariateNormal(OfCovariance, Gaussian):
    """The normal distribution of vectors: mean `loc` and one of covariance, precision and Cholesky
    factor of the covariance, each ``(..., n, n)``.

    ValueError unless exactly one of the three is given and dimensions fit.

    Source: S. Kotz, N. Balakrishnan, N. Johnson, Continuous Multivariate Distributions 1, ch. 45.
    """

    arg_constraints = {"loc": constraints.real_vector, **MATRICES}
    _batched = ("loc", *MATRICES)
    _unbatched = ("_unbroadcasted_scale_tril",)

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = covariance_matrix, precision_matrix, scale_tril
        name, matrix = given_matrix(*matrices, error=ValueError)
        if matrix.ndim < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = Size(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _log_det(self) -> Tensor:
        return 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        return _batch_mahalanobis(self._unbroadcasted_scale_tril, x)

    def _factor(self) -> Tensor:
        return self._unbroadcasted_scale_tril

    def _trace_of_solved(self, factor: Tensor) -> Tensor:
        solved = linalg.solve_triangular(self._unbroadcasted_scale_tril, factor, upper=False)
        return solved.pow(2).sum((-2, -1))
