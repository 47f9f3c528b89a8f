"""What decompositions share: their inputs' dtypes, and words of their gradients."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.errors import LinAlgError
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.linalg._matrices import adjoint, expect_floats, expect_wide
from tensorflow_lite_clone.tensor import Tensor


def as_wide(name: str, x: Tensor) -> Tensor:
    """`x`; RuntimeError for integers and NotImplementedError for two-byte floats."""
    expect_floats(name, x)
    expect_wide(name, x)
    return x


def decomposed(message: str, op: type[Op], *inputs: Tensor, **parameters: Any) -> Any:
    """Apply an op whose iteration may fail to converge: LinAlgError with `message` then."""
    try:
        return apply(op, *inputs, **parameters)
    except ValueError:  # what NumPy and CuPy raise
        raise LinAlgError(message) from None


def skew(F: Any, x: Any) -> Any:
    """Twice the skew-Hermitian parts of matrices."""
    return x - adjoint(F, x)


def off_diagonal(F: Any, x: Any, real: Any) -> Any:
    """Matrices with zeros for their diagonals; `real` has the real dtype."""
    return x * (1 - F.eye(x.shape[-1], dtype=real.dtype))


def diagonal(F: Any, x: Any) -> Any:
    """The diagonals of square matrices."""
    return F.diagonal(x, offset=0, dim1=x.ndim - 2, dim2=x.ndim - 1, shape=x.shape)


def on_diagonal(F: Any, x: Any) -> Any:
    """The diagonal matrices with the vectors `x` as diagonals."""
    return x[..., None] * F.eye(x.shape[-1], dtype=x.dtype)


def quotient(F: Any, x: Any, y: Any) -> Any:
    """``x / y``, and 0 where both are.

    It makes the gradient of functions of eigenvalues or singular values alone finite where some
    of them are equal: nothing flows through the vectors, so their gaps do not matter.
    """
    return x / F.where((x == 0) & (y == 0), 1, y)


def gaps(values: Any) -> Any:
    """The matrices with ``values[j] - values[i]`` in row i and column j."""
    return values[..., None, :] - values[..., :, None]


class CheckPhases(Op):
    """Raise RuntimeError with `message` unless x is -y up to one percent and 0.01; return x.

    x and y say how a loss changes with the phases of singular vectors or eigenvectors, which are
    arbitrary.
    """

    def forward(F, x, y, *, message):
        F.check_range(F.abs(x + y) - 0.01 * F.abs(y), -math.inf, 0.01, message)
        return F.copy(x)
