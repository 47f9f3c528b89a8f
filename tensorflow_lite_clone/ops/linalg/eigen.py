"""Eigenvalues and eigenvectors of square matrices."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import mode as modes
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.linalg._matrices import adjoint, expect_square, removed
from tensorflow_lite_clone.ops.linalg._spectral import (
    as_wide,
    decomposed,
    diagonal,
    gaps,
    off_diagonal,
    on_diagonal,
    quotient,
    skew,
)
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_LinalgEigh = result_type("linalg_eigh", "eigenvalues", "eigenvectors")
_LinalgEig = result_type("linalg_eig", "eigenvalues", "eigenvectors")
NO_CONVERGENCE = (
    "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned or "
    "has too many repeated eigenvalues."
)
_NOT_FINITE = "torch.linalg.eig: input tensor should not contain infs or NaNs."
_PHASE = (
    "linalg_{}_backward: The eigenvectors in the complex case are specified up to multiplication "
    "by e^{{i phi}}. The specified loss function depends on this quantity, so it is ill-defined."
)


def _check_phases(F: Any, inner: Any, name: str) -> None:
    """RuntimeError when a loss, with V^H gV = `inner`, changes with the phases of V's columns."""
    turn = F.imag(diagonal(F, inner))
    F.check_phases(turn, F.zeros_like(turn), message=_PHASE.format(name))


class Eigh(Op):
    """A = V diag(L) V^H with real L, for Hermitian matrices; reads the lower triangle.

    The gradient: M. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008.
    """

    layout = column_major
    label = "LinalgEigh"

    def forward(F, x):
        values, vectors = F.linalg.eigh(x)
        return values, vectors

    def backward_x(F, g, out0, out1):
        g_values, g_vectors = g
        inner = F.matmul(adjoint(F, out1), g_vectors)
        if inner.dtype.kind == "c":
            _check_phases(F, inner, "eigh")
        rotation = off_diagonal(F, skew(F, inner), out0)
        middle = quotient(F, rotation, 2 * gaps(out0)) + on_diagonal(F, g_values)
        return F.matmul(F.matmul(out1, middle), adjoint(F, out1))


class Eigvalsh(Op):
    """The eigenvalues of Hermitian matrices, without the vectors that their gradient needs."""

    primitive = "linalg.eigvalsh"

    def forward(F, x):
        return F.linalg.eigvalsh(x)


class Eig(Op):
    """A V = V diag(L), where the columns of V have length 1.

    The gradient: C. Boeddeker, P. Hanebrink, L. Drude, J. Heymann and R. Haeb-Umbach, "On the
    computation of complex-valued gradients with application to statistically optimum
    beamforming", 2017.
    """

    layout = column_major
    label = "LinalgEig"

    def forward(F, x):
        values, vectors = F.eigen(x)
        return values, vectors

    def backward_x(F, g, out0, out1):
        g_values, g_vectors = g
        up = adjoint(F, out1)
        inner = F.matmul(up, g_vectors)
        _check_phases(F, inner, "eig")
        lengths = F.real(diagonal(F, inner))
        inner = inner - F.matmul(up, out1) * lengths[..., None, :]
        between = F.conj(gaps(out0))
        middle = quotient(F, off_diagonal(F, inner, lengths), between) + on_diagonal(F, g_values)
        return F.matmul(F.matmul(F.inv(up)[0], middle), up)


class Eigvals(Op):
    """The eigenvalues, without the vectors that their gradient needs."""

    primitive = "eigenvalues"

    def forward(F, x):
        return F.eigenvalues(x)


def _lower(A: Tensor, UPLO: Any) -> Tensor:
    """A Hermitian matrix whose lower triangle is the one of `A` that `UPLO` names."""
    expect_square("linalg.eigh", A)
    if not isinstance(UPLO, str):
        raise TypeError(
            f"linalg_eigh(): argument 'UPLO' (position 2) must be str, not {type(UPLO).__name__}"
        )
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    A = as_wide("linalg.eigh", A)
    return A if UPLO in "lL" else A.mH


@public("linalg")
def eigh(input: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """``eigenvalues, eigenvectors`` of Hermitian or symmetric (..., n, n) matrices.

    The eigenvalues, (..., n), are real and ascend; the eigenvectors are the columns of a unitary
    matrix. Only the lower triangle is read, or the upper one if `UPLO` is ``U``. Of float32,
    float64 and their complex kin. LinAlgError for infinities and NaN. A loss that changes with
    the phases of complex vectors raises RuntimeError in the backward pass. Gradients through
    vectors are infinite or NaN where eigenvalues are equal.
    """
    found = decomposed(NO_CONVERGENCE, Eigh, _lower(input, UPLO))
    return delivered("linalg_eigh", _LinalgEigh(found), out)


@public("linalg")
def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian or symmetric (..., n, n) matrices, ascending: see `eigh`.

    Their gradient is finite where some are equal.
    """
    matrices = _lower(input, UPLO)
    if modes.grad and matrices.requires_grad:
        result = decomposed(NO_CONVERGENCE, Eigh, matrices)[0]
    else:
        result = decomposed(NO_CONVERGENCE, Eigvalsh, matrices)
    return delivered("linalg_eigvalsh", result, out)


@public("linalg")
def eig(input: Tensor, *, out: Any = None) -> Any:
    """``eigenvalues, eigenvectors`` of (..., n, n) matrices: complex, also for real matrices.

    The eigenvalues, (..., n), are in no order; the eigenvectors, columns, have length 1. Of
    float32, float64 and their complex kin. RuntimeError for infinities and NaN. The gradient
    exists where all eigenvalues differ; a loss that changes with the phases of vectors raises
    RuntimeError in the backward pass.
    """
    expect_square("linalg.eig", input)
    input = as_wide("linalg.eig", input)
    found = decomposed(_NOT_FINITE, Eig, input)
    return delivered("linalg_eig", _LinalgEig(found), out)


@public("linalg")
def eigvals(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of (..., n, n) matrices, complex and in no order: see `eig`."""
    expect_square("linalg.eigvals", input)
    input = as_wide("linalg.eigvals", input)
    if modes.grad and input.requires_grad:
        result = decomposed(_NOT_FINITE, Eig, input)[0]
    else:
        result = decomposed(_NOT_FINITE, Eigvals, input)
    return delivered("linalg_eigvals", result, out)


removed(
    "eig",
    "torch.linalg.eig and torch.linalg.eigvals return complex tensors instead.",
    "torch",
    "method",
)
removed(
    "symeig",
    "Use torch.linalg.eigh or torch.linalg.eigvalsh; by default they read the lower triangle, "
    "where symeig read the upper one (UPLO='U').",
    "torch",
    "method",
)
removed(
    "matrix_rank",
    "Please use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was "
    "renamed in `torch.linalg.matrix_rank()` to 'hermitian'.",
    "torch",
)
