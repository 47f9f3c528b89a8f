"""Functions of matrices: the exponential, condition numbers, norms under older names."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_floats,
    expect_matrices,
    expect_square,
)
from tensorflow_lite_clone.ops.linalg.determinants import inv_ex
from tensorflow_lite_clone.ops.linalg.norms import matrix_norm, vector_norm
from tensorflow_lite_clone.ops.linalg.svd import svdvals
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

# Pade approximants of degree m and the 1-norms up to which they are as good as the dtype:
# N. J. Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
_PADE_7 = (17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1)
_PADE_13 = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000,
    10559470521600, 670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_BOUND_7 = 3.925724783138660
_BOUND_13 = 5.371920351148152


class MatrixExp(Op):
    """exp(X) by scaling, a Pade approximant, and squaring.

    The gradient is the upper right block of exp([[X^H, g], [0, X^H]]): A. H. Al-Mohy and N. J.
    Higham, "Computing the Frechet derivative of the matrix exponential, with an application to
    condition number estimation", 2009.
    """

    label = "LinalgMatrixExp"

    def forward(F, x):
        if not all(x.shape):
            return F.copy(x)
        dtype = x.dtype
        if dtype.itemsize == 2:
            x = F.astype(x, F.float32)
        real = F.real(x).dtype if dtype.kind == "c" else x.dtype
        double = real.itemsize == 8
        bound, terms = (_BOUND_13, _PADE_13) if double else (_BOUND_7, _PADE_7)
        size = F.max(F.sum(F.abs(x), axis=-2), axis=-1)
        halvings = F.ceil(F.log2(F.where(F.isfinite(size) & (size > bound), size / bound, 1.0)))
        y = _approximant(F, x * F.exp2(-halvings)[..., None, None], terms)
        most = int(F.backend.number(F.max(halvings))) if F.backend.has_values else 0
        for done in range(most):
            y = F.where((halvings > done)[..., None, None], F.matmul(y, y), y)
        return F.astype(y, dtype)

    def backward_x(F, g, x):
        size = x.shape[-1]
        x = adjoint(F, x)
        upper, lower = F.concat([x, g], axis=-1), F.concat([F.zeros_like(x), x], axis=-1)
        return F.matrix_exp(F.concat([upper, lower], axis=-2))[..., :size, size:]


def _approximant(F: Any, x: Any, terms: tuple[int, ...]) -> Any:
    """(V - U)^-1 (V + U), where U has the odd and V the even powers of x."""
    square = F.matmul(x, x)
    power = one = F.broadcast_to(F.eye(x.shape[-1], dtype=x.dtype), x.shape)
    # Divided by the last even coefficient, which keeps float32 in its range.
    scale = 1.0 / terms[0]
    odd, even = one * (terms[1] * scale), one
    for k in range(2, len(terms), 2):
        power = F.matmul(power, square)
        even = even + power * (terms[k] * scale)
        odd = odd + power * (terms[k + 1] * scale)
    odd = F.matmul(x, odd)
    return F.solve(even - odd, even + odd)[0]


@public("torch", "method", "linalg")
def matrix_exp(input: Tensor) -> Tensor:
    """The exponentials, sums of ``X^k / k!``, of (..., n, n) matrices of a floating dtype.

    Two-byte floats are computed in float32.
    """
    expect_square("linalg.matrix_exp", input)
    expect_floats("linalg.matrix_exp", input)
    return apply(MatrixExp, input)


@public("linalg")
def cond(input: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition numbers of matrices, ``norm(A, p) norm(inv(A), p)``.

    `p` is an order of `matrix_norm`. For None, 2 and -2 it is the ratio of singular values, and
    the (..., m, n) matrices may have any shape; otherwise they are square. Infinite for a singular
    matrix; 0 for a matrix without elements.
    """
    expect_matrices("linalg.cond", input)
    if isinstance(p, str):
        expect_square(f"linalg.cond(ord={p})", input)
        known = p in ("fro", "nuc")
    else:
        known = p is None or abs(p) in (1, 2, math.inf)
    if not known:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not input.numel():
        result = input.sum((-2, -1), dtype=input.dtype).abs()
    elif p is None or p == 2 or p == -2:
        values = svdvals(input)
        first, last = values[..., 0], values[..., -1]
        result = last / first if p == -2 else first / last
    else:
        expect_square(f"linalg.cond(ord={p})", input)
        result = _by_inverse(input, p)
    return delivered("linalg_cond", result, out)


def _by_inverse(input: Tensor, p: Any) -> Tensor:
    """|A| |A^-1|, and infinity where there is no inverse."""
    size = matrix_norm(input, p)
    inverse, info = inv_ex(input)
    regular = info == 0
    found = matrix_norm(where(regular[..., None, None], inverse, 0.0), p)
    result = size * where(regular, found, math.inf)
    return result if p == "nuc" else where(result.isnan(), math.inf, result)


@public("torch")
def frobenius_norm(
    input: Tensor, dim: Any, keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The 2-norm over `dim`: an int, or at most two; all for none. Older than `linalg.norm`."""
    axes = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(axes) > 2:
        raise RuntimeError(
            f"Expected at most 2 dimensions, but got {len(axes)} dimensions instead."
        )
    if input.dtype.kind not in "fc":
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{input.dtype.short_name} instead."
        )
    return delivered("frobenius_norm", vector_norm(input, 2, axes, keepdim), out)


@public("torch")
def nuclear_norm(
    input: Tensor, dim: Any = (-2, -1), keepdim: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The sums of singular values of the matrices in two dimensions; see `matrix_norm`.

    As in PyTorch it may also be called as ``nuclear_norm(input, keepdim)``.
    """
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    if dim is None:
        raise TypeError("nuclear_norm(): argument 'dim' must be tuple of ints, not NoneType")
    dim = (dim, dim) if isinstance(dim, int) else dim
    return matrix_norm(input, "nuc", dim, keepdim, out=out)
