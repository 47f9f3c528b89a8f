"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.shape import Size, broadcast_shapes
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._covariance import (
    MATRICES,
    OfCovariance,
    given_matrix,
    scale_tril_of,
)
from tensorflow_lite_clone.distributions.chi2 import Chi2
from tensorflow_lite_clone.distributions.exp_family import ExponentialFamily
from tensorflow_lite_clone.distributions.utils import _standard_normal, is_number
from tensorflow_lite_clone.ops.create.constructors import tensor
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.linalg.cholesky import cholesky_solve
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.shape.rearrange import diag_embed, tril_indices
from tensorflow_lite_clone.ops.special.gamma_functions import mvlgamma
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["Wishart"]


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of `mvlgamma`."""
    return (x.unsqueeze(-1) - arange(p, dtype=x.dtype, device=x.device) / 2).digamma().sum(-1)


class Wishart(OfCovariance, ExponentialFamily):
    """The distribution of X^T X, where X has `df` rows, normal of mean 0 and the covariance.

    One of covariance, precision and Cholesky factor of the covariance is given, each
    ``(..., n, n)``, and `df` above n - 1 (ValueError otherwise; a warning below n).

    Source: T. Anderson, An Introduction to Multivariate Statistical Analysis, ch. 7; samples by
    Bartlett's decomposition.
    """

    arg_constraints: Any = {**MATRICES, "df": constraints.greater_than(0)}
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("df", *MATRICES, "_dist_chi2")
    _unbatched = ("_unbroadcasted_scale_tril", "arg_constraints")

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrices = covariance_matrix, precision_matrix, scale_tril
        name, matrix = given_matrix(*matrices, error=AssertionError)
        if matrix.ndim < 2:
            raise ValueError(
                "scale_tril must be at least two-dimensional, with optional leading batch "
                "dimensions"
            )
        event_shape = matrix.shape[-2:]
        if is_number(df):
            batch_shape = matrix.shape[:-2]
            self.df = tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = Size(broadcast_shapes(matrix.shape[:-2], df.shape))
            self.df = df.expand(batch_shape)
        n = event_shape[-1]
        if (self.df <= n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if (self.df < n).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=level_outside(),
            )
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.arg_constraints = {**self.arg_constraints, "df": constraints.greater_than(n - 1)}
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)
        steps = arange(n, dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps.expand((*batch_shape, -1)))

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """NaN where `df` is no more than n + 1."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return where(factor <= 0, math.nan, factor)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        matrix = self.covariance_matrix
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (matrix.pow(2) + products)

    def _bartlett_sampling(self, sample_shape: Size) -> Tensor:
        """L A A^T L^T: A lower triangular, roots of chi-squared variables on its diagonal and
        normal ones below."""
        n = self._event_shape[-1]
        noise = diag_embed(self._dist_chi2.rsample(sample_shape).sqrt())
        shape = sample_shape + self._batch_shape + (n * (n - 1) // 2,)
        rows, columns = tril_indices(n, n, offset=-1, device=noise.device)
        noise[..., rows, columns] = _standard_normal(shape, noise.dtype, noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Samples; singular ones are drawn again, `max_try_correction` (10) times at most."""
        sample_shape = Size(sample_shape)
        sample = self._bartlett_sampling(sample_shape)
        tries = 10 if max_try_correction is None else max_try_correction
        singular = self._singular(sample, len(sample_shape))
        if not singular.any():
            return sample
        warnings.warn("Singular sample detected.", stacklevel=level_outside())
        for _ in range(tries):
            again = self._bartlett_sampling(sample[singular].shape[:1])
            still = self._singular(again, 1)
            sample[singular] = again
            singular = singular.clone()
            singular[singular.clone()] = still
            if not singular.any():
                break
        return sample

    def _singular(self, sample: Tensor, sample_dims: int) -> Tensor:
        """Of each sample, whether any matrix of its batch is singular."""
        bad = ~self.support.check(sample)
        return bad.reshape((*bad.shape[:sample_dims], -1)).any(-1)

    def _log_diagonal(self) -> Tensor:
        """Half the logarithm of the covariance's determinant, and n log(2) / 2."""
        n = self._event_shape[-1]
        logs = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return n * math.log(2) / 2 + logs

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_value(value)
        n = self._event_shape[-1]
        solved = cholesky_solve(value, self._unbroadcasted_scale_tril)
        return (
            (self.df - n - 1) / 2 * linalg.slogdet(value).logabsdet
            - self.df * self._log_diagonal()
            - mvlgamma(self.df / 2, p=n)
            - solved.diagonal(dim1=-2, dim2=-1).sum(-1) / 2
        )

    def entropy(self) -> Tensor:
        n = self._event_shape[-1]
        return (
            (n + 1) * self._log_diagonal()
            + mvlgamma(self.df / 2, p=n)
            - (self.df - n - 1) / 2 * _mvdigamma(self.df / 2, p=n)
            + self.df * n / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + mvlgamma(half, p=n)
