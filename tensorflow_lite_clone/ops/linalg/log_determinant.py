"""Logarithms of determinants."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops._results import result_type
from tensorflow_lite_clone.ops.linalg._matrices import (
    adjoint,
    expect_floats,
    expect_square,
)
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.reduce._arguments import delivered
from tensorflow_lite_clone.tensor import Tensor

_Slogdet = result_type("slogdet", "sign", "logabsdet")
_LinalgSlogdet = result_type("linalg_slogdet", "sign", "logabsdet")


class Slogdet(Op):
    """The sign of the determinant, or its unit complex number, and log(abs(det)).

    With t = tr(A⁻¹ dA) the logarithm moves by Re(t) (Giles, "Collected matrix derivative results"
    (2008), section 2.2.4), and the unit number by itself times i Im(t).
    """

    label = "LinalgSlogdet"

    def forward(F, x):
        sign, logabsdet = F.linalg.slogdet(x)
        return sign, logabsdet

    def backward(F, g, x, out0):
        g_sign, g_log = g
        if out0.dtype.kind == "c":
            turn = g_sign * conj(F, out0)
            g_log = g_log + 0.5 * (turn - conj(F, turn))
        return (adjoint(F, F.inv(x)[0]) * g_log[..., None, None],)


def _slogdet(name: str, input: Tensor) -> tuple[Tensor, Tensor]:
    expect_square(name, input)
    expect_floats(name, input, narrow=False)
    return apply(Slogdet, input)


@public("linalg", names=("slogdet",))
def linalg_slogdet(A: Tensor, *, out: Any = None) -> Any:
    """(sign, logabsdet) of (..., n, n) matrices: det(A) is sign exp(logabsdet).

    For complex matrices sign has absolute value 1. A singular one has sign 0 and -inf.
    """
    return delivered("linalg_slogdet", _LinalgSlogdet(_slogdet("linalg.slogdet", A)), out)


@public("torch", "method")
def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """As `linalg.slogdet`, under its older name."""
    return delivered("linalg_slogdet", _Slogdet(_slogdet("linalg.slogdet", input)), out)


@public("torch", "method")
def logdet(input: Tensor) -> Tensor:
    """The logarithms of the determinants of (..., n, n) matrices; NaN where one is negative."""
    sign, logabsdet = _slogdet("logdet", input)
    if sign.is_complex():
        return sign.log() + logabsdet
    return where(sign == -1, float("nan"), logabsdet)
