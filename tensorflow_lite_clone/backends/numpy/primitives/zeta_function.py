"""Hurwitz' zeta function and the polygamma functions over NumPy arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.primitives.special import (
    digamma,
    in_double,
    pair_in_double,
)

# B_2k / (2k)!, k = 1, 2, ...: the coefficients of the Euler-Maclaurin formula
_LOG_OF_LARGEST = 709.78  # of the numbers that float64 has
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)  # fmt: skip


def _positive(s: Any, q: Any) -> Any:
    """The sum of (q + k)^-s for s > 1 and q > 0; 0 at q = inf.

    The first terms one by one, until q + k >= s + 10 or the rest no longer counts, then the
    Euler-Maclaurin formula (DLMF 25.11.7).
    """
    a = q
    power = a**-s
    total = np.zeros_like(power)
    while True:
        counts = ~(power <= 1e-17 * total)  # NaN does
        low = (a < s + 10.0) & counts
        if not low.any():
            break
        total = np.where(low, total + power, total)
        a = np.where(low, a + 1.0, a)
        power = np.where(low, a**-s, power)
    rest = a / (s - 1.0) + 0.5
    rising, scale = s / a, 1.0 / (a * a)
    for k, coefficient in enumerate(_BERNOULLI):
        rest = rest + coefficient * rising
        rising = rising * scale * ((s + (2 * k + 1)) * (s + (2 * k + 2)))
    return np.where(counts, total + power * rest, total)


def _hurwitz(s: Any, q: Any) -> Any:
    """The sum of (q + k)^-s for s > 1; inf at q = 0, -1, ...; NaN below 0 unless s is whole.

    Negative q: the terms of either sign are two sums of positive ones, less those that begin
    beyond, so that nothing is summed one by one.
    """
    negative = q < 0.0
    total = _positive(s, np.where(negative, 1.0, q))
    if negative.any():
        below = np.where(negative, q, -0.5)
        part = below - np.floor(below)
        sign = np.where(np.remainder(s, 2.0) == 1.0, -1.0, 1.0)
        other = _positive(s, 1.0 - part) - _positive(s, 1.0 - below)
        total = np.where(negative, _positive(s, part) + sign * other, total)
        total = np.where(negative & (s != np.floor(s)), np.nan, total)
    return np.where((q <= 0.0) & (q == np.floor(q)), np.inf, total)


@pair_in_double
def zeta(s: Any, q: Any) -> Any:
    """Hurwitz' zeta function: inf at s = 1, NaN for s < 1 and, as in PyTorch, at infinity.

    Measured against 40-digit values on 1,000 points of 1 < s < 200 and of either sign of q:
    errors of at most 1e-15 of the function.
    """
    y = _hurwitz(np.where(s > 1.0, np.minimum(s, 1e300), 2.0), q)
    pole = (q <= 0.0) & (q == np.floor(q))
    y = np.where((q == np.inf) | (q != q) | (s != s) & ~pole, np.nan, y)
    y = np.where((s == np.inf) & (q > 1.0), np.nan, y)
    return np.where(s == 1.0, np.inf, np.where(s < 1.0, np.nan, y))


def _trigamma(x: Any) -> Any:
    reflected = x < 0.5
    y = _positive(2.0, np.where(reflected, 1.0 - x, x))
    if reflected.any():
        sine = np.sin(math.pi * (x - np.rint(x)))
        y = np.where(reflected, (math.pi / sine) ** 2 - y, y)
    return y


def polygamma(x: Any, *, n: int) -> Any:
    """The n-th derivative of digamma."""
    if n == 0:
        return digamma(x)
    if n == 1:
        return in_double(_trigamma)(x)
    logarithm = math.lgamma(n + 1.0)
    factorial = math.exp(logarithm) if logarithm < _LOG_OF_LARGEST else math.inf
    factor = (-1.0) ** (n + 1) * factorial
    return in_double(lambda q: factor * _hurwitz(n + 1.0, q))(x)
