"""Derivatives of gamma and beta numbers by their parameters, at a fixed place in the stream.

A number x with the distribution function P(x; a) and the density p(x; a) is a function of a and of
a uniform u = P(x; a), which stays. So dx/da = -(dP/da) / p (Figurnov, Mohamed and Mnih, Implicit
reparameterization gradients, 2018). Near the edges P is a power series, elsewhere the integral
of dp/da, both divided by p term by term, so nothing over- or underflows.

All functions take float64 arrays and words of F that work in forwards and read nothing back.
"""

from __future__ import annotations

import math
from typing import Any

# s and ds for the integral from 0 to infinity of a function that decays like exp(-s):
# s = exp(u - exp(-u)), u = -3.5, -3.4, ... (Takahasi and Mori, Double exponential formulas for
# numerical integration, 1974).
_STEP = 0.1
_NODES = tuple(
    [
        (s, _STEP * s * (1 + math.exp(-u)))
        for u in [-3.5 + _STEP * i for i in range(82)]
        for s in [math.exp(u - math.exp(-u))]
    ]
)


def _integral(F: Any, log_weight: Any, factor: Any, scale: Any) -> Any:
    """The integral of exp(log_weight(s)) factor(s) over s from 0 to infinity, decay length
    `scale`."""
    total = 0.0
    for node, width in _NODES:
        s = scale * node
        total = total + (width * scale) * F.exp(log_weight(s)) * factor(s)
    return total


def _series(rise: Any, slope: Any, terms: int) -> tuple[Any, Any]:
    """S = 1 + t1 + t1 t2 + ... with the ratios t(n) = rise(n), and the sum of its terms times
    slope(1) + ... + slope(n)."""
    term, sums = 1.0, 0.0
    total, weighted = 1.0, 0.0
    for n in range(1, terms):
        term = term * rise(n)
        sums = sums + slope(n)
        total = total + term
        weighted = weighted + term * sums
    return total, weighted


def gamma_gradient(F: Any, a: Any, x: Any) -> Any:
    """dx/da of a gamma number x of shape a and rate 1; relative error below 1e-9.

    Below a < 30, x < a + 1: P / p = (x / a) S, S = sum of x^n / ((a + 1) ... (a + n)) (DLMF
    8.7.1). Elsewhere p(x e^s) / p(x) is integrated over s, on the side of x where it decays.
    """
    log_x = F.log(x)
    near = (a < 30) & (x < a + 1)
    b, y = F.where(near, a, 1.0), F.where(near, x, 1.0)
    total, weighted = _series(lambda n: y / (b + n), lambda n: -1.0 / (b + n), 90)
    by_series = -(y / b) * (total * (F.log(y) - F.digamma(b + 1)) + weighted)
    b, y = F.where(near, 1.0, a), F.where(near, 3.0, x)
    upper = y > b
    sign = F.where(upper, 1.0, -1.0)
    offset = F.where(near, 0.0, log_x) - F.digamma(b)
    gap = F.abs(y - b)

    def log_weight(s: Any) -> Any:
        signed = sign * s
        return -gap * s - y * (F.expm1(signed) - signed)

    by_integral = (y * sign) * _integral(
        F, log_weight, lambda s: offset + sign * s, 1 / (gap + F.sqrt(y))
    )
    return F.where(near, by_series, by_integral)


def beta_gradient(F: Any, x: Any, a: Any, total: Any) -> Any:
    """dx/da / (1 - x) of a beta number x of the parameters a and b = total - a, b fixed; relative
    error below 1e-9.

    Below total x (1 - x) < 2.5: P / p by its power series in x, or in 1 - x where x > 1/2 (DLMF
    8.17.8). Elsewhere the density is integrated over the logit of its argument, on the side of x
    where it decays.
    """
    b = total - a
    z = 1 - x
    spread = total * x * z
    near = spread < 2.5
    low = x <= 0.5
    left, right = near & low, near & ~low
    psi = F.digamma(total) - F.digamma(a)
    log_x = F.log(x)
    # Left: P / p = (x z / a) S.
    y = F.where(left, x, 0.25)
    c, t = F.where(left, a, 1.0), F.where(left, total, 2.0)
    sums, weighted = _series(
        lambda n: y * (t + (n - 1)) / (c + n), lambda n: 1 / (t + (n - 1)) - 1 / (c + n), 90
    )
    by_left = -(y / c) * (sums * (F.log(y) + F.digamma(t) - F.digamma(c + 1)) + weighted)
    # Right: (1 - P) / p = (x z / b) S.
    y = F.where(right, z, 0.25)
    c, t = F.where(right, b, 1.0), F.where(right, total, 2.0)
    sums, weighted = _series(lambda n: y * (t + (n - 1)) / (c + n), lambda n: 1 / (t + (n - 1)), 90)
    by_right = (x / c) * (sums * (log_x + psi) + weighted)
    # Between: the logit moves by s, p changes by the factor exp(a s - total log(1 + x (e^s - 1))).
    y = F.where(near, 0.5, x)
    c, t = F.where(near, 5.0, a), F.where(near, 10.0, total)
    slope = c - t * y
    sign = F.where(slope < 0, 1.0, -1.0)
    offset = F.where(near, 0.0, log_x + psi)

    def log_weight(s: Any) -> Any:
        signed = sign * s
        return c * signed - t * F.log1p(y * F.expm1(signed))

    def factor(s: Any) -> Any:
        signed = sign * s
        return offset + signed - F.log1p(y * F.expm1(signed))

    scale = 1 / (F.abs(slope) + F.sqrt(t * y * (1 - y)))
    between = (y * sign) * _integral(F, log_weight, factor, scale)
    return F.where(left, by_left, F.where(right, by_right, between))
