"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.core.shape import Size, broadcast_shapes
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions.multivariate_normal import (
    Gaussian,
    _batch_mahalanobis,
    _batch_mv,
)
from tensorflow_lite_clone.distributions.utils import _standard_normal, lazy_property
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.rearrange import diag_embed
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["LowRankMultivariateNormal"]


def _identity(size: int, like: Tensor) -> Tensor:
    return eye(size, dtype=like.dtype, device=like.device)


class LowRankMultivariateNormal(Gaussian):
    """The normal distribution of mean `loc` (..., n) and covariance W W^T + diag(D), where W is
    `cov_factor` (..., n, rank) and D `cov_diag` (..., n).

    Determinant and inverse are computed by way of the capacitance I + W^T D^-1 W of size `rank`
    (the matrix determinant lemma and the Woodbury identity). ValueError if dimensions do not fit.

    Source: G. Golub, C. Van Loan, Matrix Computations, section 2.1.4.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    _batched = ("loc", "cov_factor", "cov_diag")
    _unbatched = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.ndim < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(
                f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m"
            )
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            shapes = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
            batch_shape = Size(broadcast_shapes(*shapes))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, "
                f"cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand((*batch_shape, -1))
        self.cov_factor = cov_factor.expand((*batch_shape, -1, -1))
        self.cov_diag = cov_diag.expand((*batch_shape, -1))
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        small = self._scaled_factor() @ cov_factor
        self._capacitance_tril = linalg.cholesky(small + _identity(small.shape[-1], small))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def _scaled_factor(self) -> Tensor:
        """W^T D^-1."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand((*self._batch_shape, -1, -1))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance, by way of D^-1/2 W W^T D^-1/2 + I."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = scaled @ scaled.mT + _identity(self._event_shape[0], root)
        return self._matrix(root * linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        factor = self._unbroadcasted_cov_factor
        return self._matrix(factor @ factor.mT + diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance: D^-1 - A^T A, A = C^-1 W^T D^-1, C C^T the capacitance."""
        scaled = self._scaled_factor()
        a = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = diag_embed(self._unbroadcasted_cov_diag.reciprocal())
        return self._matrix(inverse - a.mT @ a)

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        squares = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        dtype, device = self.loc.dtype, self.loc.device
        common = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], dtype, device)
        own = _standard_normal(shape, dtype, device)
        shift = _batch_mv(self._unbroadcasted_cov_factor, common)
        return self.loc + shift + self._unbroadcasted_cov_diag.sqrt() * own

    def _log_det(self) -> Tensor:
        capacitance = 2 * self._capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return capacitance + self._unbroadcasted_cov_diag.log().sum(-1)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        inner = _batch_mahalanobis(self._capacitance_tril, _batch_mv(self._scaled_factor(), x))
        return (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1) - inner

    def _factor(self) -> Tensor:
        return cat([self.cov_factor, diag_embed(self.cov_diag.sqrt())], -1)

    def _trace_of_solved(self, factor: Tensor) -> Tensor:
        scaled = self._scaled_factor() @ factor
        solved = linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        squares = factor.pow(2) / self._unbroadcasted_cov_diag.unsqueeze(-1)
        return squares.sum((-2, -1)) - solved.pow(2).sum((-2, -1))
