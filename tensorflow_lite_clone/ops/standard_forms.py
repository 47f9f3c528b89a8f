"""The array API standard's forms of functions that PyTorch has otherwise; `array_api` exports them.

PyTorch's floor of a quotient is NaN or -1 at infinities, where the standard's is the floor of what
`div` gives; its sign of NaN is 0; its `expm1` of infinite complex numbers is NaN in most places;
and it does not round complex numbers.
"""

from __future__ import annotations

from tensorflow_lite_clone.ops._formulas import conj, zeros
from tensorflow_lite_clone.ops.pointwise._pointwise import binary, unary
from tensorflow_lite_clone.ops.pointwise.complex_numbers import sgn_gradient


def _expm1(F, x):
    """expm1(a) cos b - 2 sin(b / 2)^2 + i e^a sin b for complex numbers a + bi.

    The limits at infinite a, where b is 0 or has no sine, are those that the standard lists.
    """
    if x.dtype.kind != "c":
        return F.expm1(x)
    a, b = F.real(x), F.imag(x)
    half = F.sin(b / 2)
    real = F.expm1(a) * F.cos(b) - 2 * half * half
    imag = F.where(b == 0, b, F.exp(a) * F.sin(b))
    lost = ~F.isfinite(b)
    vanishes = lost & (a == -F.inf)
    real = F.where(vanishes, -1.0, F.where(lost & (a == F.inf), F.inf, real))
    return F.make_complex(real, F.where(vanishes, 0.0, imag))


def _round(F, x):
    if x.dtype.kind != "c":
        return F.round(x)
    return F.make_complex(F.round(F.real(x)), F.round(F.imag(x)))


def _floor_divide(F, x, y):
    quotient = F.floor_divide(x, y)
    if x.dtype.kind in "iu":
        return quotient
    return F.where(F.isfinite(x) & F.isfinite(y), quotient, F.floor(x / y))


expm1 = unary(
    "standard_expm1",
    _expm1,
    x=lambda F, g, out: g * (conj(F, out) + 1),
    label="Expm1",
    floating=True,
    places=(),
    document="``exp(input) - 1``, exact near 0.",
)
round = unary(
    "standard_round",
    _round,
    x=zeros,
    label="Round",
    refuses="b",
    places=(),
    document="The nearest integer, of complex numbers for each part; halves go to the even one.",
)
sign = unary(
    "standard_sign",
    "sign",
    x=sgn_gradient,
    label="Sgn",
    refuses="b",
    places=(),
    document="-1, 0 or 1, for complex numbers ``input / abs(input)``; NaN for NaN.",
)
floor_divide = binary(
    "standard_floor_divide",
    _floor_divide,
    x=zeros,
    y=zeros,
    label="FloorDivide",
    refuses="bc",
    places=(),
    document="The floor of ``input / other``, also at infinities.",
)
