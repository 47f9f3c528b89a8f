"""Transforms of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone import linalg
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.distributions import constraints
from tensorflow_lite_clone.distributions._transform import (
    Transform,
    WithoutParameters,
    check_dims,
)
from tensorflow_lite_clone.distributions._transforms_elementwise import clipped_sigmoid
from tensorflow_lite_clone.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from tensorflow_lite_clone.ops.create.constructors import eye
from tensorflow_lite_clone.ops.create.progressions import arange
from tensorflow_lite_clone.ops.nn.activation_smooth import logsigmoid, softplus
from tensorflow_lite_clone.ops.nn.pad import pad
from tensorflow_lite_clone.tensor import Tensor


class CorrCholeskyTransform(Transform):
    """Vectors of D(D-1)/2 numbers to Cholesky factors of D x D correlation matrices.

    The entries below the diagonal are partial correlations z = tanh(x); in each row, entry j is
    z_j times the root of what 1 - z_i^2, i < j, leave of the row's length.

    Source: Stan Reference Manual, "Cholesky factors of correlation matrices".
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        x = x.tanh()
        eps = finfo(x.dtype).eps
        z = vec_to_tril_matrix(x.clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - z**2).sqrt().cumprod(-1)
        # One on the diagonal, so that it takes all that the entries before it leave.
        z = z + eye(z.shape[-1], dtype=z.dtype, device=z.device)
        return z * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        z = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (z.log1p() - (-z).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        tanh = 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) - tanh

    def forward_shape(self, shape: Any) -> Any:
        check_dims(shape, 1)
        length = shape[-1]
        size = round((0.25 + 2 * length) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != length:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (size, size)

    def inverse_shape(self, shape: Any) -> Any:
        check_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        size = shape[-1]
        return shape[:-2] + (size * (size - 1) // 2,)


class SoftmaxTransform(WithoutParameters):
    """Vectors to the simplex by softmax; the pseudoinverse is the logarithm."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return x.softmax(-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        check_dims(shape, 1)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        return self.forward_shape(shape)


class StickBreakingTransform(WithoutParameters):
    """Vectors of K - 1 numbers to the simplex of K: each takes a share of what is left.

    The shares are sigmoid(x_k - log(K - k)), so that zeros map to the simplex's center.

    Source: Stan Reference Manual, "Unit simplex".
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        share = clipped_sigmoid(x - _parts_left(x).log())
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        # Clamped, as rounding may leave less than nothing.
        left = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - left.log() + _parts_left(parts).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - _parts_left(x).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        check_dims(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        check_dims(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


def _parts_left(x: Tensor) -> Tensor:
    """How many parts come after each of the K - 1 first ones: K - 1, ..., 1."""
    return arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device)


class LowerCholeskyTransform(WithoutParameters):
    """Square matrices to lower triangular ones with the exponential of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(WithoutParameters):
    """Square matrices to positive definite ones: L L^T of `LowerCholeskyTransform`'s L."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
