"""Special functions over NumPy arrays, good to rounding in the array's dtype.

The rational functions are near-minimax fits made for this file: reweighted linear least squares
in 40-digit arithmetic, whose largest relative error stands beside each. The recurrences,
reflections and asymptotic series are those of the NIST Handbook of Mathematical Functions,
chapters 5 and 7 (https://dlmf.nist.gov).

SciPy serves some of the words where it is installed, see `with_scipy`.

float64 is computed in float64; float32 in float64 too, except `erf`, which activations use;
two-byte floats through float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.with_scipy import ufunc

_f64 = np.dtype(np.float64)
_f32 = np.dtype(np.float32)
_BLOCK = 1 << 16  # bytes worked on at a time: the intermediate arrays stay in the cache

# atanh(erf(x)) / x in x*x, |x| <= 3.95, for float32 (9e-8 of erf); it grows beyond
_ERF32 = (
    1.1283792809290476, 0.10276890504598073, -0.0001913534857295192, -0.0006202531059795628,
    8.781902691313946e-05, -5.697971112202703e-06, 1.4350915147177192e-07,
)  # fmt: skip
# erf(x) / x in x*x, |x| <= 1 (7e-19)
_ERF_CORE = (
    (1.1283791670955126, 0.14350668275704795, 0.04548361590291307, 0.0018774119484637236,
     0.00019688476677993656, 7.77189008040799e-08),
    (1.0, 0.4605128195750364, 0.09381307827178408, 0.010693080961634587, 0.0006924983864745182,
     2.0810265195157784e-05),
)  # fmt: skip
# exp(x*x) erfc(x) in x, 1 <= x <= 4 (9.3e-18)
_ERFCX_MIDDLE = (
    (1.000000029511539, 1.6211137074701356, 1.2942711821833957, 0.6233438153056827,
     0.1893409961356392, 0.03455634965997435, 0.0030405613530909126),
    (1.0, 2.749493187776363, 3.3967404201023443, 2.458919743368953, 1.135495952842706,
     0.3382910952385125, 0.06124961551814458, 0.0053892528723191195),
)  # fmt: skip
# x exp(x*x) erfc(x) in 1 / (x*x), x >= 4 (7.6e-18)
_ERFCX_TAIL = (
    (0.5641895835477563, 12.183839476552675, 83.84035620118385, 212.75422544921028,
     168.99530031192018, 18.907786518699922),
    (1.0, 22.095293199030294, 158.90080880966863, 441.8509806804218, 436.1524320402358,
     102.67081670400266),
)  # fmt: skip
# lgamma(x) / ((x - 1)(x - 2)) in x, 0.5 <= x <= 3 (1.8e-16)
_LGAMMA_CORE = (
    (2.7240108568785044, 106.1252126616555, 873.2161427594402, 2382.2502112241145,
     2495.680350525512, 1018.234130401188, 147.8947477997789, 5.7227230076553575,
     0.013221225585548751),
    (1.0, 64.30115259162238, 779.4679275893034, 3043.1585776411334, 4606.878015120426,
     2886.5493482801476, 732.8860990978757, 66.6293458328465, 1.509843399352233),
)  # fmt: skip
# Stirling's series of log(gamma) in 1 / x^2 (DLMF 5.11.1)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def horner(x: Any, coefficients: Sequence[float]) -> Any:
    """The polynomial with these coefficients, the constant first."""
    y = x * coefficients[-1]
    for c in coefficients[-2:0:-1]:
        y += c
        y *= x
    y += coefficients[0]
    return y


def ratio(x: Any, fit: tuple) -> Any:
    y = horner(x, fit[0])
    y /= horner(x, fit[1])
    return y


def _by_blocks(function: Callable[..., Any], x: Any) -> Any:
    """``function(x)`` for a flat array, a block at a time."""
    size = x.size
    if x.nbytes <= _BLOCK:
        return function(x)
    out = np.empty_like(x)
    step = _BLOCK // x.itemsize
    for start in range(0, size, step):
        out[start : start + step] = function(x[start : start + step])
    return out


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """A word over arrays of any floating dtype from a function over flat float64 arrays."""
    name = function.__name__.strip("_").removesuffix("_of_double")

    def word(x: Any) -> Any:
        flat = x.reshape(-1).astype(_f64, copy=False)
        served = ufunc(name, x.dtype != _f64)
        result = _by_blocks(function, flat) if served is None else served(flat)
        return result.astype(x.dtype, copy=False).reshape(x.shape)

    word.__name__ = name
    word.__doc__ = function.__doc__
    return word


def pair_in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """A word over two arrays of one floating dtype, as `in_double` makes them."""

    def word(x: Any, y: Any) -> Any:
        x, y = np.broadcast_arrays(x, y)
        a, b = [z.reshape(-1).astype(_f64, copy=False) for z in (x, y)]
        out = np.empty_like(a)
        step = _BLOCK // _f64.itemsize
        for start in range(0, a.size, step):
            block = slice(start, start + step)
            out[block] = function(a[block], b[block])
        return out.astype(x.dtype, copy=False).reshape(x.shape)

    word.__name__ = function.__name__.strip("_")
    word.__doc__ = function.__doc__
    return word


# --- the error function -------------------------------------------------------------------------


def _erf32(x: Any) -> Any:
    y = horner(x * x, _ERF32)
    y *= x
    return np.tanh(y, y)


def _exp_of_minus_square(x: Any) -> Any:
    """exp(-x*x) without the rounding error of the square, which exp would magnify."""
    high = np.trunc(x * 16.0) / 16.0
    return np.exp(-high * high) * np.exp((high - x) * (high + x))


def _erfcx_above_one(x: Any) -> Any:
    y = np.empty_like(x)
    tail = x > 4.0
    y[tail] = ratio(1.0 / (x[tail] * x[tail]), _ERFCX_TAIL) / x[tail]
    middle = ~tail
    y[middle] = ratio(x[middle], _ERFCX_MIDDLE)
    return y


def _erf64(x: Any) -> Any:
    y = np.empty_like(x)
    large = np.abs(x) > 1.0
    core = x[~large]
    y[~large] = core * ratio(core * core, _ERF_CORE)
    outer = x[large]
    a = np.minimum(np.abs(outer), 40.0)
    y[large] = np.copysign(1.0 - _exp_of_minus_square(a) * _erfcx_above_one(a), outer)
    return y


def erfc_of_double(x: Any) -> Any:
    """The complement 1 - erf(x)."""
    y = np.empty_like(x)
    large = np.abs(x) > 1.0
    core = x[~large]
    y[~large] = 1.0 - core * ratio(core * core, _ERF_CORE)
    outer = x[large]
    a = np.minimum(np.abs(outer), 40.0)
    tail = _exp_of_minus_square(a) * _erfcx_above_one(a)
    y[large] = np.where(outer < 0.0, 2.0 - tail, tail)
    return y


def _erfcx(x: Any) -> Any:
    """The scaled complement exp(x*x) erfc(x)."""
    y = np.empty_like(x)
    large = x > 1.0
    y[large] = _erfcx_above_one(x[large])
    rest = x[~large]
    y[~large] = np.exp(rest * rest) * erfc_of_double(rest)
    return y


def _solve(p: Any, q: Any) -> Any:
    """The x >= 0 with erf(x) = p and erfc(x) = q, where p + q = 1; NaN where one is negative.

    A starting value good to 0.2 % (S. Winitzki, 2008), then Halley steps on the equation whose
    right side is the small one; an error e becomes about x*x*e**3.
    """
    log = np.log(q) + np.log1p(p)
    half = 2.0 / (math.pi * 0.147) + 0.5 * log
    x = np.sqrt(np.sqrt(half * half - log / 0.147) - half)
    x = np.where(p < 1e-3, p * (0.5 * math.sqrt(math.pi)), x)
    near = p < 0.5
    for _ in range(3):
        residual = np.where(near, _erf64(x) - p, q - erfc_of_double(x))
        step = residual * np.exp(x * x) * (0.5 * math.sqrt(math.pi))
        x = x - step / (1.0 + x * step)
    x = np.where(q == 0.0, np.inf, x)
    return np.where((q >= 0.0) & (p >= 0.0), x, np.nan)


@in_double
def erfinv(x: Any) -> Any:
    """The inverse of erf; infinite at -1 and 1, NaN beyond."""
    a = np.abs(x)
    return np.copysign(_solve(a, 1.0 - a), x)


@in_double
def ndtri(x: Any) -> Any:
    """The standard normal quantile: the inverse of erfc(-x / sqrt(2)) / 2."""
    lower = x < 0.5
    q = 2.0 * np.where(lower, x, 1.0 - x)
    y = math.sqrt(2.0) * _solve(1.0 - q, q)
    return np.where(lower, -y, y)


@in_double
def log_ndtr(x: Any) -> Any:
    """The logarithm of the standard normal distribution function."""
    z = x * math.sqrt(0.5)
    low = np.minimum(z, -1.0)
    below = np.log(0.5 * _erfcx(-low)) - low * low
    return np.where(z < -1.0, below, np.log1p(-0.5 * erfc_of_double(np.maximum(z, -1.0))))


def erf(x: Any) -> Any:
    """The error function."""
    if x.dtype == _f64:
        function = ufunc("erf")
        flat = x.reshape(-1)
        return (_by_blocks(_erf64, flat) if function is None else function(flat)).reshape(x.shape)
    flat = x.reshape(-1).astype(_f32, copy=False)
    return _by_blocks(_erf32, flat).astype(x.dtype, copy=False).reshape(x.shape)


# --- the gamma function -------------------------------------------------------------------------


def _stirling(x: Any) -> Any:
    """log(gamma(x)) for x >= 12."""
    z = 1.0 / (x * x)
    series = horner(z, STIRLING)
    return (x - 0.5) * np.log(x) - x + 0.5 * math.log(2.0 * math.pi) + series / x


def _lgamma_positive(x: Any) -> Any:
    y = np.empty_like(x)
    large = x >= 12.0
    y[large] = _stirling(x[large])
    rest = x[~large]
    # gamma(x) = (x-1)...(x-k) gamma(x-k) leads down to (2, 3], gamma(x) = gamma(x+1) / x up
    factor = np.ones_like(rest)
    for _ in range(9):
        high = rest > 3.0
        if not high.any():
            break
        rest = np.where(high, rest - 1.0, rest)
        factor = np.where(high, factor * rest, factor)
    low = rest < 0.5
    shift = np.log(np.where(low, rest, factor))
    shift = np.where(low, -shift, shift)
    rest = np.where(low, rest + 1.0, rest)
    y[~large] = shift + (rest - 1.0) * (rest - 2.0) * ratio(rest, _LGAMMA_CORE)
    return y


@in_double
def lgamma(x: Any) -> Any:
    """The logarithm of abs(gamma(x)); infinite at 0, -1, -2, ..."""
    a = np.abs(x)
    y = _lgamma_positive(np.where(a == 0.0, 1.0, a))
    negative = x < 0.0
    if negative.any():  # gamma(x) gamma(-x) = -pi / (x sin(pi x))
        sine = np.sin(math.pi * (a - np.rint(a)))
        y = np.where(negative, math.log(math.pi) - np.log(a) - np.log(np.abs(sine)) - y, y)
    return np.where((a == 0.0) | (a == np.inf), np.inf, y)


@in_double
def digamma(x: Any) -> Any:
    """The derivative of lgamma; NaN at -1, -2, ..., -inf and inf at 0 and -0."""
    reflected = x < 0.0
    a = np.where(reflected, 1.0 - x, x)
    y = np.zeros_like(x)
    for _ in range(10):
        low = a < 10.0
        if not low.any():
            break
        y = np.where(low, y - 1.0 / a, y)
        a = np.where(low, a + 1.0, a)
    z = 1.0 / (a * a)
    series = horner(z, (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12))
    y = y + np.log(a) - 0.5 / a - np.where(a < 1e17, z * series, 0.0)
    if reflected.any():
        part = x - np.rint(x)
        pole = np.where(part == 0.0, np.nan, math.pi / np.tan(math.pi * part))
        y = np.where(reflected, y - pole, y)
    return np.where(x == 0.0, np.copysign(np.inf, -x), y)


erfc = in_double(erfc_of_double)
erfcx = in_double(_erfcx)
