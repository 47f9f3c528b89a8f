"""What distributions that are given a covariance, its inverse or its Cholesky factor share."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.utils import lazy_property
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.linalg.cholesky import cholesky_inverse
from tensorflow_lite_clone.tensor import Tensor

MATRICES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def given_matrix(*matrices: Tensor | None, error: type[Exception]) -> tuple[str, Tensor]:
    """The one of the `MATRICES` that is not None, with its name.

    `error` if there is not exactly one.
    """
    given = [(name, matrix) for name, matrix in zip(MATRICES, matrices) if matrix is not None]
    if len(given) != 1:
        raise error(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        )
    return given[0]


class OfCovariance:
    """A distribution that was given one of the `MATRICES`; the others follow when asked for."""

    _batch_shape: Any
    _unbroadcasted_scale_tril: Tensor

    @lazy_property
    def scale_tril(self: Any) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand((*self._batch_shape, -1, -1))

    @lazy_property
    def covariance_matrix(self: Any) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_scale_tril
        return (factor @ factor.mT).expand((*self._batch_shape, -1, -1))

    @lazy_property
    def precision_matrix(self: Any) -> Tensor:
        """The inverse of the covariance."""
        inverse = cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand((*self._batch_shape, -1, -1))


def scale_tril_of(name: str, matrix: Tensor) -> Tensor:
    """The Cholesky factor of the covariance that the matrix called `name` describes."""
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return linalg.cholesky(matrix)
    # With both orders reversed, precision = R R^T turns into U U^T, U upper triangular, and the
    # factor is U^-T.
    upper = linalg.cholesky(matrix.flip((-2, -1))).flip((-2, -1))
    identity = eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
    return linalg.solve_triangular(upper.mT, identity, upper=False)
