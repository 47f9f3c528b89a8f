"""Special functions: the error function's and the gamma function's families."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops._formulas import scaled, widened
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.pointwise._elementwise import Pointwise, pointwise
from tensorflow_lite_clone.ops.pointwise._pointwise import binary, unary
from tensorflow_lite_clone.tensor import Tensor

LN2 = math.log(2.0)


def _function(name: str, x: Any, document: str, forward: Any = None, **options: Any) -> Any:
    """A row of a function of real numbers; integers give the default dtype."""
    return unary(
        name, forward or name, x=x, floating=True, refuses="c", document=document, **options
    )


def _special(name: str, x: Any, document: str, forward: Any = None, **options: Any) -> Any:
    """A row of a function that is in `torch.special` alone."""
    return _function(name, x, document, forward, places=(), special=(name,), **options)


# --- the error function -------------------------------------------------------------------------

erf = _function(
    "erf",
    lambda F, g, x: g * scaled(F, F.exp(-x * x), 2 / math.sqrt(math.pi)),
    "The error function.",
    special=("erf",),
)
erfc = _function(
    "erfc",
    lambda F, g, x: g * scaled(F, F.exp(-x * x), -2 / math.sqrt(math.pi)),
    "``1 - erf(input)``, exact where that is small.",
    special=("erfc",),
)
erfinv = _function(
    "erfinv",
    lambda F, g, out: g * (0.5 * math.sqrt(math.pi)) * F.exp(out * out),
    "The inverse of the error function; NaN outside [-1, 1].",
    inplace=("method",),
    special=("erfinv",),
)
erfcx = _special(
    "erfcx",
    lambda F, g, x, out: g * (2 * x * out - 2 / math.sqrt(math.pi)),
    "``exp(input**2) * erfc(input)`` without overflow.",
)
ndtr = _special(
    "ndtr",
    lambda F, g, x: g * (1 / math.sqrt(2 * math.pi)) * F.exp(-0.5 * x * x),
    "The standard normal distribution function.",
    widened(lambda F, x: 0.5 * F.erfc(x * -math.sqrt(0.5))),
)
log_ndtr = _special(
    "log_ndtr",
    lambda F, g, x: g * math.sqrt(2 / math.pi) / F.erfcx(x * -math.sqrt(0.5)),
    "The logarithm of the standard normal distribution function.",
)
ndtri = _special(
    "ndtri",
    lambda F, g, out: g * math.sqrt(2 * math.pi) * F.exp(0.5 * out * out),
    "The inverse of `ndtr`; NaN outside [0, 1].",
)

# --- the gamma function -------------------------------------------------------------------------

lgamma = _function(
    "lgamma",
    lambda F, g, x: g * F.digamma(x),
    "The logarithm of the absolute value of the gamma function.",
    inplace=("method",),
    special=("gammaln",),
)
digamma = _function(
    "digamma",
    lambda F, g, x: g * F.polygamma(x, n=1),
    "The derivative of `lgamma`.",
    inplace=("method",),
    special=("digamma", "psi"),
)


class Polygamma(Pointwise):
    """The n-th derivative of digamma."""

    primitive = "polygamma"
    floating = True
    refuses = "c"

    def forward(F, x, *, n):
        return F.polygamma(x, n=n)

    def backward_x(F, g, x, *, n):
        return g * F.polygamma(x, n=n + 1)


def _polygamma(n: int, input: Tensor, inplace: bool) -> Tensor:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return pointwise(Polygamma, input, inplace=inplace, n=int(n))


@public("torch", "special")
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th derivative of `digamma`."""
    result = _polygamma(n, input, False)
    return (
        result if out is None else write_out("polygamma", out, result, (input,), elementwise=True)
    )


@public("method", names=("polygamma",))
def tensor_polygamma(self: Tensor, n: int) -> Tensor:
    """The `n`-th derivative of `digamma`."""
    return _polygamma(n, self, False)


@public("method")
def polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place form of `polygamma`."""
    return _polygamma(n, self, True)


# --- modified Bessel functions of the first kind ------------------------------------------------


def _over_x(F, y, x):
    """``y / x`` for y that is x / 2 near 0; its derivative there is 0, not that of 0 / 0."""
    return F.where(x == 0, 0.5, y / F.where(x == 0, 1, x))


i0 = _function(
    "i0",
    lambda F, g, x: g * F.i1(x),
    "The modified Bessel function of the first kind, order 0.",
    special=("i0",),
)
i0e = _special(
    "i0e",
    lambda F, g, x, out: g * (F.i1e(x) - F.sgn(x) * out),
    "``exp(-|input|) * i0(input)``.",
    label="SpecialI0E",
)
i1 = _special(
    "i1",
    lambda F, g, x, out: g * (F.i0(x) - _over_x(F, out, x)),
    "The modified Bessel function of the first kind, order 1.",
    label="SpecialI1",
)
i1e = _special(
    "i1e",
    lambda F, g, x, out: g * (F.i0e(x) - _over_x(F, out, x) - F.sgn(x) * out),
    "``exp(-|input|) * i1(input)``.",
    label="SpecialI1E",
)

# --- logarithms with care -----------------------------------------------------------------------


@widened
def _xlogy(F, x, y, z):
    return F.where(F.isnan(y), F.nan, F.where(x == 0, 0, x * z))


@widened
def _xlog1py(F, x, y):
    return F.where(F.isnan(y), F.nan, F.where(x == 0, 0, x * F.log1p(y)))


xlogy = binary(
    "xlogy",
    lambda F, x, y: _xlogy(F, x, y, F.log(y)),  # PyTorch rounds the logarithm of half floats
    x=lambda F, g, x, y: F.where((x == 0) & (y <= 0), 0, F.xlogy(g, y)),
    y=lambda F, g, x, y: g * x / y,
    floating=True,
    refuses="c",
    inplace=("torch", "method"),
    special=("xlogy",),
    self_named=True,
    document="``input * log(other)``, 0 where `input` is 0.",
)
xlog1py = binary(
    "xlog1py",
    _xlog1py,
    x=lambda F, g, x, y: F.where((x == 0) & (y <= -1), 0, F.xlog1py(g, y)),
    y=lambda F, g, x, y: g * x / (y + 1),
    label="SpecialXlog1Py",
    floating=True,
    refuses="c",
    places=(),
    special=("xlog1py",),
    self_named=True,
    document="``input * log1p(other)``, 0 where `input` is 0.",
)


def _entr(F, x):
    log = F.log(F.where(x > 0, x, 1))
    y = F.where(x > 0, -x * log, F.where(x == 0, x, -F.inf))
    return F.where(x != x, x, y)


entr = _special(
    "entr",
    lambda F, g, x: g * F.where(x != x, x, -F.log(x) - 1),
    "``-input * log(input)``: 0 at 0, -inf for negative numbers.",
    widened(_entr),
    label="SpecialEntr",
)


log1mexp = _special(
    "log1mexp",
    lambda F, g, x: g / F.expm1(x),
    """``log(1 - exp(-input))`` for positive numbers: -inf at 0, NaN for negative ones.

    The logarithm of ``-expm1(-x)`` below log 2, `log1p` of ``-exp(-x)`` from there on: neither
    loses digits where it is used (M. Maechler, "Accurately computing log(1 - exp(-|a|))", 2012).
    Real numbers of any shape; integers give the default dtype. Raises NotImplementedError for
    complex numbers.

    >>> torch.special.log1mexp(torch.tensor([1e-10, 1.0, 50.0]))
    tensor([-2.3026e+01, -4.5868e-01, -1.9287e-22])
    """,
    widened(lambda F, x: F.where(x < LN2, F.log(-F.expm1(-x)), F.log1p(-F.exp(-x)))),
)


class Logit(Pointwise):
    """log(x / (1 - x)), of x kept from 0 and 1 by eps if it is a number."""

    floating = True
    refuses = "c"

    @widened
    def forward(F, x, *, eps):
        if eps is not None:
            x = F.clip(x, eps, 1 - eps)
        return F.log(x / (1 - x))

    def backward_x(F, g, x, *, eps):
        slope = g / (x * (1 - x) + 0)  # inf at -0 too
        if eps is None:
            return F.where((x < 0) | (x > 1), math.nan, slope)
        return F.where((x >= eps) & (x <= 1 - eps), slope, 0)


@public("torch", "method", "special")
def logit(
    input: Tensor,
    eps: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """``log(input / (1 - input))``; `input` is first clamped to ``[eps, 1 - eps]`` if given."""
    return pointwise(Logit, input, out=out, eps=eps)


@public("torch", "method")
def logit_(input: Tensor, eps: float | None = None) -> Tensor:
    """In-place form of `logit`."""
    return pointwise(Logit, input, inplace=True, eps=eps)
