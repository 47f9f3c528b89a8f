"""The regularised incomplete gamma functions P(a, x) and Q(a, x) over NumPy arrays.

Where which expansion serves follows A. R. DiDonato and A. H. Morris (ACM TOMS 12, 1986) and
W. Gautschi (ACM TOMS 5, 1979):

* a >= 200 near x = a: Temme's uniform expansion (SIAM J. Math. Anal. 10, 1979; DLMF 8.12.3),
* a <= 1, x <= 1.1: Q by the series of P with the leading 1 taken out (DLMF 8.7.1),
* x > 1.1 and x > a: Q by the continued fraction (DLMF 8.9.2), in W. J. Lentz' way (1976),
* otherwise: P by the series of positive terms (DLMF 8.7.1).

The other function is 1 less the one computed. Measured against 40-digit values on 4,000 points
with 1e-3 < a < 1e6 and results above 1e-300: errors of at most 3e-15 (1 + w) of the
function, where w is the size of the logarithm of x^a e^-x / Gamma(a + 1).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.primitives.special import (
    STIRLING,
    erfc_of_double,
    horner,
    pair_in_double,
)
from tensorflow_lite_clone.backends.numpy.with_scipy import BETWEEN, ufunc

# (1 / gamma(1 + a) - 1) / (a (1 - a)) in 2 a - 1, 0 <= a <= 1: the interpolating polynomial in
# Chebyshev's points, made in 45-digit arithmetic (1.7e-17)
_RECIPROCAL = (
    0.5135166683820503, -0.0823490528905662, -0.013137767143494803, 0.005201960131400977,
    -0.00039605208155774963, -6.743603966425534e-05, 1.7254032549218367e-05,
    -1.1631820951624062e-06, -1.0112744816058879e-07, 2.711185444044806e-08,
    -2.084102643386053e-09, -3.0412365926117336e-11, 2.2003829803662916e-11,
    -2.050293299063845e-12,
)  # fmt: skip
_TEMME_FROM = 200.0


def _reciprocal_less_one(a: Any) -> Any:
    """1 / gamma(1 + a) - 1 for 0 <= a <= 1."""
    return a * (1.0 - a) * horner(2.0 * a - 1.0, _RECIPROCAL)


def _phi(a: Any, x: Any) -> Any:
    """x/a - 1 - log(x/a), exact where x is near a."""
    d = (x - a) / a
    r = d / (2.0 + d)
    z = r * r
    # log1p(d) = 2 atanh(r) (DLMF 4.6.4)
    near = r * d - 2.0 * r * z * horner(z, [1.0 / k for k in range(3, 27, 2)])
    return np.where(np.abs(d) < 0.31, near, d - np.log(x / a))


def _factor(a: Any, x: Any) -> Any:
    """x^a e^-x / gamma(a + 1)."""
    y = np.empty_like(x)
    small = a < 10.0
    b, z = a[small], np.minimum(x[small], 1e4)
    part = b - np.floor(b)
    gamma = 1.0 / (1.0 + _reciprocal_less_one(part))
    for k in range(1, 10):
        gamma = np.where(part + k <= b, gamma * (part + k), gamma)
    half = np.exp(-0.5 * z)
    y[small] = z**b * half / gamma * half
    b, z = a[~small], x[~small]
    w = 1.0 / (b * b)
    stirling = horner(w, STIRLING)
    y[~small] = np.exp(-b * _phi(b, z)) * np.exp(-stirling / b) / np.sqrt(b)
    y[~small] *= 1.0 / math.sqrt(2.0 * math.pi)
    return y


def _series(a: Any, x: Any) -> Any:
    """P by its series."""
    term = np.ones_like(x)
    total = term
    n = 1.0
    while (term > 1e-17 * total).any():
        term = term * (x / (a + n))
        total = total + term
        n += 1.0
    return _factor(a, x) * total


def _small_series(a: Any, x: Any) -> Any:
    """Q for a <= 1: 1 - x^a / gamma(1 + a), less the rest of P's alternating series."""
    minus = _reciprocal_less_one(a)
    power = np.expm1(a * np.log(x))
    total = np.zeros_like(x)
    term = np.ones_like(x)
    for n in range(1, 24):
        term = term * (-x / n)
        total = total + term / (a + n)
    return -(power + minus + power * minus) - a * (1.0 + power) * (1.0 + minus) * total


def _fraction(a: Any, x: Any) -> Any:
    """Q by the continued fraction."""
    b = x + 1.0 - a
    c = np.full_like(x, np.inf)
    d = 1.0 / b
    y = d
    for n in range(1, 1000):
        numerator = n * (a - n)
        b = b + 2.0
        d = 1.0 / (numerator * d + b)
        c = b + numerator / c
        change = c * d
        y = y * change
        if not (np.abs(change - 1.0) > 3e-16).any():
            break
    return _factor(a, x) * a * y


@functools.cache
def _temme_coefficients() -> tuple[tuple[float, ...], ...]:
    """c_k(eta) as a power series for each k, as far as it counts from a = 200 on.

    From mu mu' = eta (1 + mu), DLMF 8.12.2, come the coefficients of mu(eta);
    then c_0 = mu' / eta - 1 / eta - 1 (8.12.9) and c_k = c_(k-1)' / eta - g_k (1 / mu) up to sign
    (8.12.10), where g_k makes the terms in 1 / eta cancel.
    """
    from fractions import Fraction

    terms = 32
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, terms):
        known = sum((k * mu[k] * mu[n + 1 - k] for k in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - known) / (n + 1))
    first = [(n + 2) * mu[n + 2] for n in range(terms - 2)]
    first[0] -= 1
    row, rows = first, []
    for k in range(8):
        sizes = [abs(float(c)) * 0.36**n / _TEMME_FROM**k for n, c in enumerate(row)]
        count = max((n + 1 for n, size in enumerate(sizes) if size > 1e-18), default=0)
        if count > 1:
            rows.append(tuple(float(c) for c in row[:count]))
        row = [(n + 2) * row[n + 2] - row[1] * first[n] for n in range(len(row) - 2)]
    return tuple(rows)


def _uniform(a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q by Temme's expansion."""
    phi = _phi(a, x)
    eta = np.copysign(np.sqrt(2.0 * phi), x - a)
    total = np.zeros_like(x)
    for series in reversed(_temme_coefficients()):
        total = total / a + horner(eta, series)
    rest = np.exp(-a * phi) * total / (math.sqrt(2.0 * math.pi) * np.sqrt(a))
    half = 0.5 * erfc_of_double(np.sqrt(a * phi))
    above = x >= a
    small = np.where(above, half + rest, half - rest)
    return np.where(above, 1.0 - small, small), np.where(above, small, 1.0 - small)


def _regular(a: Any, x: Any) -> tuple[Any, Any]:
    """P and Q for finite positive a and x."""
    p, q = np.empty_like(x), np.empty_like(x)
    uniform = (a >= _TEMME_FROM) & (np.abs(x - a) < 0.3 * a)
    p[uniform], q[uniform] = _uniform(a[uniform], x[uniform])
    # 1 - P is good enough for Q where P is small (DiDonato and Morris, section 2)
    small = (x <= 1.1) & (a <= np.where(x < 0.5, -0.4 / np.log(np.minimum(x, 0.5)), 1.0))
    fraction = ~uniform & (x > 1.1) & (x > a)
    series = ~(uniform | fraction)
    p[series] = _series(a[series], x[series])
    q[series] = 1.0 - p[series]
    q[small] = _small_series(a[small], x[small])
    q[fraction] = _fraction(a[fraction], x[fraction])
    p[fraction] = 1.0 - q[fraction]
    return p, q


def _function(a: Any, x: Any, lower: bool) -> Any:
    """P if `lower`, else Q, with PyTorch's values at zero and infinity."""
    zero, one = (0.0, 1.0) if lower else (1.0, 0.0)
    y = np.full_like(x, np.nan)
    y[x == np.inf] = one
    y[a == np.inf] = np.where(x[a == np.inf] == np.inf, np.nan, zero)
    y[x == 0.0] = zero
    y[a == 0.0] = np.where(x[a == 0.0] > 0.0, one, np.nan)
    y[(a < 0.0) | (x < 0.0)] = np.nan
    regular = (a > 0.0) & (x > 0.0) & (a < np.inf) & (x < np.inf)
    function = ufunc("igamma" if lower else "igammac")
    if function is not None:
        asymptotic = regular & (a > BETWEEN[0]) & (a < BETWEEN[1])
        y[asymptotic] = function(a[asymptotic], x[asymptotic])
        regular &= ~asymptotic
    y[regular] = _regular(a[regular], x[regular])[0 if lower else 1]
    return y


@pair_in_double
def igamma(a: Any, x: Any) -> Any:
    """The lower function P(a, x)."""
    return _function(a, x, True)


@pair_in_double
def igammac(a: Any, x: Any) -> Any:
    """The upper function Q(a, x)."""
    return _function(a, x, False)
