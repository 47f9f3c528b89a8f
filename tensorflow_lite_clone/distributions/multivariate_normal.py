"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.core.shape import Size, broadcast_shapes
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.distribution import Distribution
from tensorflow_lite_clone.distributions.utils import _standard_normal, lazy_property
from tensorflow_lite_clone.ops.cholesky import cholesky_inverse
from tensorflow_lite_clone.ops.create import eye
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


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower triangular L with L L^T = precision^-1.

    With both orders reversed, precision = R R^T turns into U U^T, U upper triangular, and then
    L = U^-T.
    """
    reversed_factor = linalg.cholesky(precision.flip((-2, -1)))
    inverse = reversed_factor.flip((-2, -1)).mT
    identity = eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(inverse, identity, upper=False)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors: mean `loc` and one of covariance, precision and Cholesky
    factor of the covariance, each ``(..., n, n)``.

    ValueError unless exactly one of the three is given and dimensions fit.

    Source: S. Kotz, N. Balakrishnan, N. Johnson, Continuous Multivariate Distributions 1, ch. 45.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

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
        name, matrix = _given_matrix(covariance_matrix, precision_matrix, scale_tril)
        if matrix is None:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        if matrix.ndim < 2:
            what = "scale_tril matrix" if name == "scale_tril" else name
            raise ValueError(
                f"{what} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = Size(broadcast_shapes(matrix.shape[:-2], loc.shape[:-1]))
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = _scale_tril_of(name, matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> MultivariateNormal:
        new = self._get_checked_instance(MultivariateNormal, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        matrices = "covariance_matrix", "precision_matrix", "scale_tril"
        self._expanded(MultivariateNormal, batch_shape, new, *matrices, dims=2)
        return self._expanded(MultivariateNormal, batch_shape, new, "loc", dims=1)

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return self._matrix(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._matrix(cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.pow(2).sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def _log_det(self) -> Tensor:
        """The logarithm of the covariance's determinant."""
        return 2 * self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        """x^T covariance^-1 x."""
        return _batch_mahalanobis(self._unbroadcasted_scale_tril, x)

    def _factor(self) -> Tensor:
        """Some A with A A^T = covariance."""
        return self._unbroadcasted_scale_tril

    def _trace_of_solved(self, factor: Tensor) -> Tensor:
        """The trace of covariance^-1 A A^T."""
        solved = linalg.solve_triangular(self._unbroadcasted_scale_tril, factor, upper=False)
        return solved.pow(2).sum((-2, -1))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._log_det() + self._mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        return (0.5 * (constant + self._log_det())).expand(self._batch_shape)


def _given_matrix(
    covariance: Tensor | None, precision: Tensor | None, scale_tril: Tensor | None
) -> tuple[str, Tensor | None]:
    """The one that is given, with its name; (\"\", None) unless there is exactly one."""
    named = {
        "covariance_matrix": covariance,
        "precision_matrix": precision,
        "scale_tril": scale_tril,
    }
    given = [(name, matrix) for name, matrix in named.items() if matrix is not None]
    return given[0] if len(given) == 1 else ("", None)


def _scale_tril_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance that the matrix called `name` describes."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return linalg.cholesky(matrix)
    return _precision_to_scale_tril(matrix)
