"""What decompositions share: checks of their input, and words of their gradients."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.autocast import active as autocast
from tensorflow_lite_clone.autograd.autocast import cast_inputs
from tensorflow_lite_clone.core.errors import LinAlgError
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops._products import expect_tensors
from tensorflow_lite_clone.tensor import Tensor


def expect_matrices(name: str, x: Any) -> None:
    """Raise TypeError for what is no Tensor, RuntimeError for one without rows and columns."""
    expect_tensors(name.replace(".", "_"), x)
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")


def expect_square_matrices(name: str, x: Any) -> None:
    """`expect_matrices`, and RuntimeError unless there are as many rows as columns."""
    expect_matrices(name, x)
    rows, columns = x.shape[-2:]
    if rows != columns:
        raise RuntimeError(
            f"{name}: A must be batches of square matrices, but they are {rows} by {columns} "
            "matrices"
        )


def expect_floating(name: str, x: Tensor) -> None:
    """Raise RuntimeError for integers."""
    if x.dtype.kind not in "fc":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got "
            f"{x.dtype.short_name}"
        )


def as_wide(name: str, op: type[Op], x: Tensor) -> Tensor:
    """`x`, or what autocast makes of it for `op`, after `expect_wide`."""
    if autocast:  # before the dtype is looked at
        (x,) = cast_inputs(op, (x,))
    expect_wide(name, x)
    return x


def expect_wide(name: str, x: Tensor) -> None:
    """Raise RuntimeError for integers and NotImplementedError for two-byte floats."""
    expect_floating(name, x)
    if x.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{name}\" not implemented for '{x.dtype.short_name}'")


def decomposed(message: str, op: type[Op], *inputs: Tensor, **parameters: Any) -> Any:
    """Apply an op whose iteration may fail to converge: LinAlgError with `message` then."""
    try:
        return apply(op, *inputs, **parameters)
    except ValueError:  # what NumPy and CuPy raise
        raise LinAlgError(message) from None


def adjoint(F: Any, x: Any) -> Any:
    """The conjugate transposes of matrices."""
    return F.matrix_transpose(conj(F, x))


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
