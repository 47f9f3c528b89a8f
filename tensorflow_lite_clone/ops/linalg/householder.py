"""Products of Householder's reflections, the form in which LAPACK keeps an orthogonal matrix.

``H1 H2 ... Hk = I - V T V^H`` for ``Hi = I - tau_i v_i v_i^H`` with the vectors v_i as columns of
V. T is the inverse of ``diag(1 / tau) + U`` with the upper triangle U of V^H V: T. Joffrain, T. M.
Low, E. S. Quintana-Orti, R. van de Geijn and F. G. Van Zee, "Accumulating Householder
transformations, revisited", 2006. Here without dividing by tau, which may be 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import column_major
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops.linalg._matrices import adjoint
from tensorflow_lite_clone.ops.linalg._spectral import as_wide, diagonal
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor


class _Reflections(NamedTuple):
    v: Any
    t: Any
    upper: Any  # U
    inverse: Any  # of I + diag(tau) U


def _reflections(F: Any, x: Any, tau: Any) -> _Reflections:
    count = tau.shape[-1]
    v = F.tril(x[..., :count], k=-1) + F.eye(x.shape[-2], count, dtype=x.dtype)
    upper = F.triu(F.matmul(adjoint(F, v), v), k=1)
    inverse = F.inv(F.eye(count, dtype=x.dtype) + tau[..., None] * upper)[0]
    return _Reflections(v, inverse * tau[..., None, :], upper, inverse)


def _through_reflections(F: Any, gv: Any, gt: Any, x: Any, tau: Any, made: _Reflections) -> tuple:
    """The gradients of `x` and `tau` from those of V and T."""
    inner = F.matmul(adjoint(F, made.inverse), gt)
    outer = -F.matmul(inner, adjoint(F, made.t))
    g_tau = F.sum(outer * conj(F, made.upper), axis=-1) + diagonal(F, inner)
    g_upper = F.triu(conj(F, tau)[..., None] * outer, k=1)
    gv = gv + F.matmul(made.v, g_upper + adjoint(F, g_upper))
    unused = F.zeros_like(x[..., tau.shape[-1] :])
    return F.concat([F.tril(gv, k=-1), unused], axis=-1), g_tau


class HouseholderProduct(Op):
    """The first columns of I - V T V^H."""

    cost = costs.Cost(costs.reflected_flops)
    layout = column_major
    label = "LinalgHouseholderProduct"

    def forward(F, x, tau):
        v, t, _, _ = _reflections(F, x, tau)
        rows, columns = x.shape[-2:]
        head = adjoint(F, v[..., :columns, :])
        return F.eye(rows, columns, dtype=x.dtype) - F.matmul(v, F.matmul(t, head))

    def backward(F, g, x, tau):
        made = _reflections(F, x, tau)
        v, t = made.v, made.t
        columns = x.shape[-1]
        g_head = F.matmul(g, v[..., :columns, :])
        of_head = -F.matmul(adjoint(F, g), F.matmul(v, t))
        of_head = F.concat([of_head, F.zeros_like(v[..., columns:, :])], axis=-2)
        gv = of_head - F.matmul(g_head, adjoint(F, t))
        gt = -F.matmul(adjoint(F, v), g_head)
        return _through_reflections(F, gv, gt, x, tau, made)


class Ormqr(Op):
    """``(I - V T V^H) y``, or ``y (I - V T V^H)``, or one of them with T^H."""

    cost = costs.Cost(costs.applied_reflections_flops)
    layout = column_major

    def forward(F, x, tau, y, *, left, transpose):
        v, t, _, _ = _reflections(F, x, tau)
        t = adjoint(F, t) if transpose else t
        if left:
            return y - F.matmul(v, F.matmul(t, F.matmul(adjoint(F, v), y)))
        return y - F.matmul(F.matmul(F.matmul(y, v), t), adjoint(F, v))

    def backward(F, g, x, tau, y, *, left, transpose):
        made = _reflections(F, x, tau)
        v = made.v
        t = adjoint(F, made.t) if transpose else made.t
        if left:
            inner, g_inner = F.matmul(adjoint(F, v), y), F.matmul(adjoint(F, v), g)
            gt = -F.matmul(g_inner, adjoint(F, inner))
            g_inner = -F.matmul(adjoint(F, t), g_inner)
            gv = F.matmul(y, adjoint(F, g_inner))
            gv = gv - F.matmul(g, adjoint(F, F.matmul(t, inner)))
            gy = g + F.matmul(v, g_inner)
        else:
            inner, g_inner = F.matmul(y, v), F.matmul(g, v)
            gt = -F.matmul(adjoint(F, inner), g_inner)
            g_inner = -F.matmul(g_inner, adjoint(F, t))
            gv = F.matmul(adjoint(F, y), g_inner)
            gv = gv - F.matmul(adjoint(F, g), F.matmul(inner, t))
            gy = g + F.matmul(g_inner, adjoint(F, v))
        gt = adjoint(F, gt) if transpose else gt
        return *_through_reflections(F, gv, gt, x, tau, made), gy


@public("linalg")
@public("torch", "method", names=("orgqr",))
def householder_product(input: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first n columns of ``H1 H2 ... Hk`` for (..., m, n) `input` and (..., k) `tau`.

    ``Hi = I - tau_i v_i v_i^H``, where v_i is column i of `input` from below the diagonal on,
    with a one above and zeros there: Q, if both come from `geqrf`. RuntimeError unless
    m >= n >= k.
    """
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    rows, columns = input.shape[-2:]
    if rows < columns:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if not tau.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if columns < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _expect_batch(name, input, tau)
    if tau.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.short_name} does not match input dtype "
            f"{input.dtype.short_name}"
        )
    input, tau = (as_wide(name, x) for x in (input, tau))
    return delivered("householder_product", apply(HouseholderProduct, input, tau), out)


def _expect_batch(name: str, input: Tensor, tau: Tensor) -> None:
    if tau.ndim != input.ndim - 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal "
            f"to {tau.ndim} and input.ndim is equal to {input.ndim}"
        )
    if tau.shape[:-1] != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got "
            f"{list(tau.shape[:-1])}"
        )


@public("torch", "method")
def ormqr(
    input: Tensor,
    tau: Tensor,
    other: Tensor,
    left: bool = True,
    transpose: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """``Q @ other``, or ``other @ Q`` unless `left`, with Q or its adjoint if `transpose`.

    Q is the whole (..., m, m) product of the reflections in `input` and `tau`, see
    `householder_product`; it is not formed. RuntimeError for shapes that do not fit.
    """
    name = "torch.ormqr"
    for word, value in (("input", input), ("other", other)):
        if value.ndim < 2:
            raise RuntimeError(f"{name}: {word} must have at least 2 dimensions.")
    if not tau.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    axis = -2 if left else -1
    if other.shape[axis] < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: other.shape[{axis}] must be greater than or equal to tau.shape[-1]"
        )
    if other.shape[axis] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{axis}] must be equal to input.shape[-2]")
    if tau.shape[-1] > min(other.shape[axis], input.shape[-1]):
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{axis}], input.shape[-1])"
        )
    _expect_batch(name, input, tau)
    if other.ndim != input.ndim:
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other.ndim} and input.ndim is equal to {input.ndim}"
        )
    if other.shape[:-2] != input.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got "
            f"{list(other.shape[:-2])}"
        )
    for word, value in (("tau", tau), ("other", other)):
        if value.dtype is not input.dtype:
            raise RuntimeError(
                f"{name}: Expected input and {word} to have the same dtype, but input has dtype "
                f"{input.dtype.short_name} and {word} has dtype {value.dtype.short_name}"
            )
    input, tau, other = (as_wide(name, x) for x in (input, tau, other))
    result = apply(Ormqr, input, tau, other, left=left, transpose=transpose)
    return delivered("ormqr", result, out)
