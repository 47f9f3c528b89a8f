"""The gamma function of several dimensions, the incomplete ones, and Hurwitz' zeta function."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch.result_layout import row_major
from tensorflow_lite_clone.ops._formulas import widened
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise, pointwise, wrong_operands
from tensorflow_lite_clone.ops.pointwise._operands import no_halves
from tensorflow_lite_clone.tensor import Tensor


class Mvlgamma(Pointwise):
    """log(pi) p (p - 1) / 4 + the sum of lgamma(x - i / 2) over i < p."""

    layout = row_major
    floating = True
    refuses = "c"

    @widened
    def forward(F, x, *, p):
        total = F.lgamma(x)
        for i in range(1, p):
            total = total + F.lgamma(x - i / 2)
        return total + p * (p - 1) / 4 * math.log(math.pi)

    def backward_x(F, g, x, *, p):
        total = F.digamma(x)
        for i in range(1, p):
            total = total + F.digamma(x - i / 2)
        return g * total


def _mvlgamma(input: Tensor, p: int, **options: Any) -> Tensor:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if input.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    return pointwise(Mvlgamma, input, p=p, **options)


@public("torch", "method")
@public("special", names=("multigammaln",))
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension `p` (DLMF 35.3.4).

    Integers give the default dtype. Raises RuntimeError for `p` below 1.
    """
    return _mvlgamma(input, p, out=out)


@public("method")
def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """In-place form of `mvlgamma`."""
    return _mvlgamma(self, p, inplace=True)


def _density(F, g, a, x):
    """g x^(a - 1) e^-x / gamma(a), the derivative of P(a, x) in x."""
    return g * F.exp((a - 1) * F.log(x) - x - F.lgamma(a))


class Igamma(Pointwise):
    """P(a, x)."""

    primitive = "igamma"
    refuses = "biuc"

    def forward(F, a, x):
        return F.igamma(a, x)

    def backward_a(F, g):
        raise NotImplementedError("the derivative for 'igamma: input' is not implemented.")

    def backward_x(F, g, a, x):
        return _density(F, g, a, x)


class Igammac(Pointwise):
    """Q(a, x)."""

    primitive = "igammac"
    refuses = "biuc"

    def forward(F, a, x):
        return F.igammac(a, x)

    def backward_a(F, g):
        raise NotImplementedError("the derivative for 'igammac: input' is not implemented.")

    def backward_x(F, g, a, x):
        return -_density(F, g, a, x)


def _of_tensors(op: type[Pointwise], input: Any, other: Any, **options: Any) -> Tensor:
    if not (isinstance(input, Tensor) and isinstance(other, Tensor)):
        raise wrong_operands(op.name, input, other)
    return pointwise(op, input, other, **options)


@public("torch", "method")
@public("special", names=("gammainc",))
def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(`input`, `other`) (DLMF 8.2.4).

    Both are floating-point tensors, which broadcast. NaN where one is negative, and at (0, 0). The
    gradient is that of `other`; that of `input` raises NotImplementedError, as in PyTorch.
    """
    return _of_tensors(Igamma, input, other, out=out)


@public("torch", "method")
@public("special", names=("gammaincc",))
def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q(`input`, `other`) (DLMF 8.2.4).

    It is ``1 - igamma(input, other)``, exact where that is small; the rest is as there.
    """
    return _of_tensors(Igammac, input, other, out=out)


@public("method")
def igamma_(self: Tensor, other: Tensor) -> Tensor:
    """In-place form of `igamma`."""
    return _of_tensors(Igamma, self, other, inplace=True)


@public("method")
def igammac_(self: Tensor, other: Tensor) -> Tensor:
    """In-place form of `igammac`."""
    return _of_tensors(Igammac, self, other, inplace=True)


class Zeta(Pointwise):
    """The sum of (q + k)^-s over k = 0, 1, ..."""

    primitive = "zeta"
    label = "SpecialZeta"
    floating = True
    refuses = "c"
    check = staticmethod(no_halves("zeta"))

    def forward(F, s, q):
        return F.zeta(s, q)

    def backward_s(F, g):
        raise NotImplementedError("the derivative for 'zeta' is not implemented.")

    def backward_q(F, g, s, q):
        return -g * s * F.zeta(s + 1, q)


@public("special")
def zeta(input: Tensor | float, other: Tensor | float, *, out: Tensor | None = None) -> Tensor:
    """Hurwitz' zeta function of exponent `input` and offset `other` (DLMF 25.11.1).

    One of them may be a number; they broadcast and are promoted like operands of a sum, integers to
    the default dtype. It is inf at exponent 1 and at offsets 0, -1, ..., NaN for exponents below 1
    and for broken ones with negative offsets. The gradient is that of `other`; that of `input`
    raises NotImplementedError, as in PyTorch. So do two-byte floats and complex numbers.
    """
    return pointwise(Zeta, input, other, out=out)
