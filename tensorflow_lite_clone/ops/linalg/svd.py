"""Singular values and vectors, and what is made of them: ranks and pseudoinverses."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.mode import mode as modes
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.limits import finfo
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.create.constructors import full, zeros
from tensorflow_lite_clone.ops.linalg._matrices import adjoint, expect_matrices, expect_square
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
from tensorflow_lite_clone.ops.linalg.eigen import NO_CONVERGENCE as _NO_EIGENVALUES
from tensorflow_lite_clone.ops.linalg.eigen import eigvalsh
from tensorflow_lite_clone.ops.pointwise.compare import maximum
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.tensor import Tensor

_LinalgSvd = result_type("linalg_svd", "U", "S", "Vh")
_Svd = result_type("svd", "U", "S", "V")
_NO_CONVERGENCE = (
    "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite "
    "values."
)
_PHASE = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by "
    "e^{i phi}. The specified loss function depends on this phase term, making it ill-defined."
)


class Svd(Op):
    """A = U diag(S) V^H.

    The gradient: M. Giles, "Collected matrix derivative results for forward and reverse mode
    algorithmic differentiation", 2008; for complex numbers Z.-Q. Wan and S.-X. Zhang, "Automatic
    differentiation for complex valued SVD", 2019. Of full matrices the vectors without a singular
    value are arbitrary and take no part.
    """

    layout = column_major
    label = "LinalgSvd"

    def forward(F, x, *, full_matrices):
        u, s, vh = F.linalg.svd(x, full_matrices=full_matrices)
        return u, s, vh

    def backward_x(F, g, out0, out1, out2, *, full_matrices):
        gu, gs, gvh = g
        u, s, vh = out0, out1, out2
        rows, columns, count = u.shape[-2], vh.shape[-1], s.shape[-1]
        if full_matrices:
            u, gu = u[..., :count], gu[..., :count]
            vh, gvh = vh[..., :count, :], gvh[..., :count, :]
        of_u = F.matmul(adjoint(F, u), gu)
        of_v = F.matmul(vh, adjoint(F, gvh))
        if of_u.dtype.kind == "c":
            turn = F.imag(diagonal(F, of_u))
            F.check_phases(turn, F.imag(diagonal(F, of_v)), message=_PHASE)
            gs = gs + 1j * quotient(F, turn, s)
        between = gaps(s) * (s[..., None, :] + s[..., :, None])
        middle = quotient(F, off_diagonal(F, skew(F, of_u), s), between) * s[..., None, :]
        middle = middle + s[..., None] * quotient(F, off_diagonal(F, skew(F, of_v), s), between)
        gx = F.matmul(F.matmul(u, middle + on_diagonal(F, gs)), vh)
        if rows > count:
            rest = quotient(F, gu - F.matmul(u, of_u), s[..., None, :])
            gx = gx + F.matmul(rest, vh)
        if columns > count:
            rest = quotient(F, gvh - F.matmul(adjoint(F, of_v), vh), s[..., None])
            gx = gx + F.matmul(u, rest)
        return gx


class Svdvals(Op):
    """The singular values, without the vectors that their gradient needs."""

    primitive = "singular_values"

    def forward(F, x):
        return F.singular_values(x)


def _expected(A: Tensor, driver: str | None) -> Tensor:
    """`A` as it is decomposed; torch's errors for what cannot be."""
    expect_matrices("linalg.svd", A)
    A = as_wide("linalg.svd", A)
    if driver is not None and A.device.type != "cuda":
        raise RuntimeError(
            "linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER "
            "backend."
        )
    return A


@public("linalg")
def svd(
    A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None
) -> Any:
    """``U, S, Vh`` of (..., m, n) matrices with ``A = U diag(S) Vh``; S falls and is real.

    The shapes of U and Vh are (..., m, m) and (..., n, n), or, without `full_matrices`,
    (..., m, k) and (..., k, n) with k = min(m, n). Of float32, float64 and their complex kin.
    LinAlgError for infinities and NaN. A loss that changes with the phases of complex vectors
    raises RuntimeError in the backward pass. Gradients through vectors are infinite or NaN where
    singular values are equal. `driver` means nothing here; RuntimeError on a CPU.
    """
    A = _expected(A, driver)
    found = decomposed(_NO_CONVERGENCE, Svd, A, full_matrices=full_matrices)
    return delivered("linalg_svd", _LinalgSvd(found), out)


@public("linalg")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values of (..., m, n) matrices, (..., min(m, n)) real numbers that fall.

    Their gradient is finite where some are equal. Otherwise as `svd`.
    """
    if modes.grad and A.requires_grad:
        return delivered("linalg_svdvals", svd(A, False, driver=driver)[1], out)
    found = decomposed(_NO_CONVERGENCE, Svdvals, _expected(A, driver))
    return delivered("linalg_svdvals", found, out)


@public("torch", "method", names=("svd",))
def torch_svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """An older `linalg.svd`, which gives ``U, S, V``: A = U diag(S) V^H; reduced if `some`.

    Without `compute_uv` U and V are zeros, (..., m, m) and (..., n, n).
    """
    expect_matrices("linalg.svd", input)
    if compute_uv:
        u, s, vh = svd(input, not some)
        return delivered("svd", _Svd((u, s, vh.mH)), out)
    rows, columns = input.shape[-2:]
    batch = input.shape[:-2]
    s = svdvals(input)
    u, v = input.new_zeros(*batch, rows, rows), input.new_zeros(*batch, columns, columns)
    return delivered("svd", _Svd((u, s, v)), out)


class Pinv(Op):
    """Pseudoinverses; singular values up to the larger of `atol` and `rtol` times s1 count as 0.

    The gradient: G. H. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
    nonlinear least squares problems whose variables separate", 1973. It keeps the rank.
    """

    label = "LinalgPinv"

    def forward(F, x, atol, rtol, *, hermitian):
        if hermitian:
            values, u = F.linalg.eigh(x)
            vh, s = adjoint(F, u), F.abs(values)
        else:
            u, values, vh = F.linalg.svd(x, full_matrices=False)
            s = values
        bound = F.maximum(atol, rtol * F.max(s, axis=-1))[..., None]
        inverse = F.where(s > bound, 1 / values, 0)
        return F.matmul(adjoint(F, vh) * inverse[..., None, :], adjoint(F, u))

    def backward_x(F, g, x, out):
        left = F.matmul(out, adjoint(F, g))  # K gK^H
        right = F.matmul(adjoint(F, g), out)  # gK^H K
        up = adjoint(F, out)
        gx = -F.matmul(F.matmul(up, g), up)
        first = F.matmul(right, up)
        gx = gx + first - F.matmul(F.matmul(x, out), first)
        last = F.matmul(up, left)
        return gx + last - F.matmul(last, F.matmul(out, x))


def _bounds(name: str, x: Tensor, atol: Any, rtol: Any) -> tuple[Tensor, Tensor]:
    """`atol` and `rtol` as real tensors, with PyTorch's defaults where they are None."""
    dtype = x.dtype.to_real()
    for word, value in (("atol", atol), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.dtype.kind == "c":
            raise RuntimeError(
                f"torch.linalg.{name}: {word} tensor of complex type is not supported. Got "
                f"{value.dtype.short_name}"
            )
    if atol is None:
        atol = 0.0
    if rtol is None:
        epsilon = finfo(dtype).eps * max(x.shape[-2:])
        if isinstance(atol, Tensor):
            rtol = (atol <= 0).to(dtype) * epsilon
        else:
            rtol = 0.0 if atol > 0 else epsilon

    def real(value: Any) -> Tensor:
        if isinstance(value, Tensor):
            return value.detach().to(x.device, dtype)
        return full((), value, dtype=dtype, device=x.device)

    return real(atol), real(rtol)


def _expect_one_form(name: str, word: str, bound: Any, atol: Any, rtol: Any) -> None:
    """Raise TypeError for a `bound` of the older form beside `atol` or `rtol`, or of no number."""
    if atol is not None or rtol is not None:
        raise TypeError(f"{name}() received an invalid combination of arguments")
    if isinstance(bound, bool) or not isinstance(bound, (int, float, Tensor)):
        raise TypeError(
            f"{name}(): argument '{word}' must be float or Tensor, not {type(bound).__name__}"
        )


@public("linalg")
def pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose pseudoinverses, (..., n, m), of (..., m, n) matrices.

    Singular values that are not above the larger of `atol` and `rtol` times the largest count as
    zero; both are numbers, or tensors of the batch's shape. `rtol` is max(m, n) times the dtype's
    epsilon by default, or 0 if `atol` is positive. For `hermitian` matrices eigenvalues are used,
    and the lower triangle is read. `rcond` is an older name of `rtol`, without `atol`.
    RuntimeError for other dtypes than float32, float64 and their complex kin, LinAlgError for
    infinities and NaN.
    """
    if rcond is not None:
        _expect_one_form("linalg_pinv", "rcond", rcond, atol, rtol)
        atol, rtol = 0.0, rcond
    if input.ndim < 2 or input.dtype.kind not in "fc" or input.dtype.itemsize < 4:
        raise RuntimeError(
            f"linalg.pinv({input.dtype.short_name}{{{list(input.shape)}}}): expected a tensor with "
            "2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        expect_square("linalg.eigh", input)
    bounds = _bounds("pinv", input, atol, rtol)
    if not input.numel():
        result = stepwise(input).mT * 0
    else:
        message = _NO_EIGENVALUES if hermitian else _NO_CONVERGENCE
        result = decomposed(message, Pinv, input, *bounds, hermitian=hermitian)
    return delivered("linalg_pinv", result, out)


@public("torch", "method")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """An older `linalg.pinv`, whose relative bound is `rcond`."""
    return pinv(input, rcond)


@public("linalg")
def matrix_rank(
    input: Tensor,
    tol: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
    out: Tensor | None = None,
) -> Tensor:
    """The ranks, int64, of (..., m, n) matrices: how many singular values are above a bound.

    The bound is the larger of `atol` and `rtol` times the largest value; both are numbers, or
    tensors of the batch's shape. `rtol` is max(m, n) times the dtype's epsilon by default, or 0 if
    `atol` is positive. For `hermitian` matrices eigenvalues are counted, and the lower triangle is
    read. `tol` is an older name of `atol`, without `rtol`. RuntimeError for other dtypes than
    float32, float64 and their complex kin, LinAlgError for infinities and NaN.
    """
    if tol is not None:
        _expect_one_form("linalg_matrix_rank", "tol", tol, atol, rtol)
        atol, rtol = tol, 0.0
    if input.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if input.dtype.kind not in "fc" or input.dtype.itemsize < 4:
        raise RuntimeError("This function doesn't handle types other than float and double")
    absolute, relative = _bounds("matrix_rank", input, atol, rtol)
    matrices = input.detach()
    if not input.numel():
        result = zeros(input.shape[:-2], dtype=int64, device=input.device)
    else:
        values = eigvalsh(matrices).abs() if hermitian else svdvals(matrices)
        bounds = maximum(absolute, relative * values.amax(-1))
        result = (values > bounds.unsqueeze(-1)).sum(-1)
    return delivered("linalg_matrix_rank", result, out)
