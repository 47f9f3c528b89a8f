"""Bessel functions of the first and second kind over NumPy arrays, orders 0 and 1.

Up to 5 polynomials in x*x/12.5 - 1, which interpolate in Chebyshev's points, multiplied by the
distances from the first zeros, so that these keep their relative accuracy; the functions of the
second kind beside the logarithm of DLMF 10.8.1, taken of x over their first zero. Beyond 5 the
amplitudes P and Q of DLMF 10.17.3 and 10.17.4, as near-minimax rational functions of 25/(x*x)
(reweighted linear least squares). All coefficients were made for this file in 45-digit
arithmetic; the largest error stands beside each, of Q's relative to Q.

Measured against 40-digit values on 2,000 points of [1e-300, 1e8]: errors of at most 9e-16 of the
function or, beyond 5 (from the first zero on where it is of the second kind), of the wave's
amplitude sqrt(2 / (pi x)) if that is more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.primitives.special import horner, in_double, ratio

# The first zeros, each as the sum of two numbers.
_J0_ZEROS = (
    (2.404825557695773, -1.176691651530894e-16),
    (5.520078110286311, 8.088597146146722e-17),
)
_J1_ZEROS = (
    (3.8317059702075125, -1.5269184090088067e-16),
    (7.015586669815619, -9.414165653410389e-17),
)
_Y0_ZEROS = ((0.8935769662791675, 2.6596231539720385e-17),)
_Y1_ZEROS = ((2.197141326031017, -4.8259835876454966e-17),)
# j0(x) over the zeros' factors (1.6e-18)
_J0 = (
    0.0031873556303932387, -0.0019210870437164043, 0.00048768271776558413, -7.121705240575853e-05,
    6.854954847199373e-06, -4.7062916645708525e-07, 2.4286220380254094e-08,
    -9.781438946172569e-10, 3.1637239892118345e-11, -8.404185273180054e-13,
    1.8688672682728884e-14, -3.524289753004227e-16,
)  # fmt: skip
# j1(x) / x likewise (3.4e-19)
_J1 = (
    0.0004323698734106474, -0.00020932672214860176, 4.42186880710148e-05, -5.515494459601969e-06,
    4.625979215164964e-07, -2.8111472529722753e-08, 1.3002918729585539e-09,
    -4.7428777955818374e-11, 1.4012939606701113e-12, -3.425083087919302e-14,
    7.050885594278574e-16, -1.2377241785806614e-17,
)  # fmt: skip
# y0(x) - 2/pi log(x / z) j0(x) over the zero's factor (2.8e-18)
_Y0 = (
    0.04369395865345562, -0.08232444048547904, 0.043384163108311995, -0.010937413263231737,
    0.0016308876846776084, -0.00016139930236278314, 1.1402137314263914e-05, -6.04746715225305e-07,
    2.498938618131235e-08, -8.277113319052747e-10, 2.247639521227407e-11, -5.096234822983075e-13,
    9.803885809141905e-15, -1.6178010741224003e-16,
)  # fmt: skip
# x (y1(x) - 2/pi log(x / z) j1(x)) likewise (9.8e-18)
_Y1 = (
    0.17298478880663093, -0.06280560687487241, -0.05922375910120821, 0.035354692634763006,
    -0.008150603950801038, 0.0010836111174103381, -9.582296150083302e-05, 6.0954413660838466e-06,
    -2.9353142887250545e-07, 1.1098229255788802e-08, -3.386718502012028e-10,
    8.534654397459758e-12, -1.8025397949076676e-13,
)  # fmt: skip
# the amplitudes of order 0 in 25/(x*x), x >= 5 (5.7e-18, 4.0e-18); Q is multiplied by x
_P0 = (
    (1.0, 5.2635889606133714, 8.618133609419717, 5.328784523754275, 1.2043638722090457,
     0.07997793228950643, 0.0007652169641015865),
    (1.0, 5.266401460613368, 8.632765920168652, 5.3521557972128475, 1.218045130021987,
     0.08268895274176227, 0.0008879974479575892),
)  # fmt: skip
_Q0 = (
    (-0.125, -1.0534097406627996, -2.988973707169339, -3.5817792610459303, -1.8640314815312198,
     -0.38804311588490786, -0.025259980285037332, -0.00022219949389864615),
    (1.0, 8.450715425302393, 24.106946317713902, 29.195559157945066, 15.533420461698546,
     3.4010954920706515, 0.253645824445832, 0.003919287039662461),
)  # fmt: skip
# of order 1 (6.7e-18, 1.5e-18)
_P1 = (
    (1.0, 5.175571186640951, 8.299961166301395, 5.001160053721791, 1.0953550691115943,
     0.07064186757658249, 0.0007325588116899024),
    (1.0, 5.170883686640955, 8.275953361910508, 4.963516209949342, 1.07379166929468,
     0.06647392953588095, 0.0005487179407580172),
)  # fmt: skip
_Q1 = (
    (0.375, 3.123289853576927, 8.743431214594423, 10.318747802948817, 5.282337456380488,
     1.0837057684580893, 0.07068802357790396, 0.0007198964549337203),
    (1.0, 8.339710442871805, 23.405847829049033, 27.763125560554492, 14.364823641195395,
     3.0206936100829695, 0.21077936250814394, 0.002821547112657093),
)  # fmt: skip


def _factors(x: Any, zeros: tuple) -> Any:
    """The product of x*x - z*z over the zeros z."""
    product = 1.0
    for high, low in zeros:
        product = product * ((x - high) - low) * (x + high)
    return product


def _log_over(x: Any, zero: tuple) -> Any:
    """2/pi log(x / zero), exact beside the zero."""
    high, low = zero
    d = ((x - high) - low) / high
    return (2.0 / math.pi) * np.where(np.abs(d) < 0.5, np.log1p(d), np.log(x / high))


def _wave(x: Any, p: tuple, q: tuple) -> tuple[Any, Any]:
    """The amplitudes of the wave at x >= 5 times sqrt(1 / (pi x))."""
    u = 25.0 / (x * x)
    scale = math.sqrt(1.0 / math.pi) / np.sqrt(x)
    return ratio(u, p) * scale, ratio(u, q) / x * scale


@in_double
def j0(x: Any) -> Any:
    """The Bessel function of the first kind, order 0."""
    a = np.abs(x)
    y = np.empty_like(a)
    large = a > 5.0
    y[~large] = _j0_low(a[~large])
    a = a[large]
    p, q = _wave(a, _P0, _Q0)
    sine, cosine = np.sin(a), np.cos(a)  # of a - pi/4: (cosine + sine, sine - cosine) / sqrt(2)
    y[large] = p * (cosine + sine) - q * (sine - cosine)
    return y


def _j0_low(x: Any) -> Any:
    return _factors(x, _J0_ZEROS) * horner(x * x / 12.5 - 1.0, _J0)


@in_double
def j1(x: Any) -> Any:
    """The Bessel function of the first kind, order 1."""
    a = np.abs(x)
    y = np.empty_like(a)
    large = a > 5.0
    y[~large] = _j1_low(a[~large])
    a = a[large]
    p, q = _wave(a, _P1, _Q1)
    sine, cosine = np.sin(a), np.cos(a)  # of a - 3 pi/4: (sine - cosine, -sine - cosine) / sqrt(2)
    y[large] = p * (sine - cosine) + q * (sine + cosine)
    return np.where(np.signbit(x), -y, y)


def _j1_low(x: Any) -> Any:
    return x * _factors(x, _J1_ZEROS) * horner(x * x / 12.5 - 1.0, _J1)


@in_double
def y0(x: Any) -> Any:
    """The Bessel function of the second kind, order 0; -inf at 0, NaN below."""
    y = np.empty_like(x)
    large = x > 5.0
    a = x[~large]
    log = _log_over(a, *_Y0_ZEROS)
    y[~large] = log * _j0_low(a) + _factors(a, _Y0_ZEROS) * horner(a * a / 12.5 - 1.0, _Y0)
    a = x[large]
    p, q = _wave(a, _P0, _Q0)
    sine, cosine = np.sin(a), np.cos(a)
    y[large] = p * (sine - cosine) + q * (cosine + sine)
    return y


@in_double
def y1(x: Any) -> Any:
    """The Bessel function of the second kind, order 1; -inf at 0, NaN below."""
    y = np.empty_like(x)
    large = x > 5.0
    a = x[~large]
    log = _log_over(a, *_Y1_ZEROS)
    rest = _factors(a, _Y1_ZEROS) * horner(a * a / 12.5 - 1.0, _Y1) / a
    y[~large] = np.where(a == 0.0, -np.inf, log * _j1_low(a) + rest)
    a = x[large]
    p, q = _wave(a, _P1, _Q1)
    sine, cosine = np.sin(a), np.cos(a)
    y[large] = q * (sine - cosine) - p * (sine + cosine)
    return y
