"""Elementary functions of float32 as polynomials, which compilers vectorise.

Coefficients are minimax ones (Remez, "Sur un procede convergent d'approximations successives",
1934), fitted for the intervals that arguments are brought to. NaNs stay NaNs.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import formula

_f = np.float32
_i = np.int32
_ONE, _TWO, _HALF = _f(1), _f(2), _f(0.5)
_LOWEST, _HIGHEST = _f(-104), _f(89)  # exp is 0 below, infinity above
_LOG2E = _f(1.44269504)
# ln 2 in two parts, of which the first has few bits: its product with a small integer is exact
_LN2, _LN2_REST = _f(0.693359375), _f(-2.12194440e-4)
_ROUND = _f(12582912)  # 1.5 * 2^23: what is added to it is rounded to an integer, in the low bits
_ROUND_BITS = _ROUND.view(_i)
_MAGNITUDE = _i(0x7FFFFFFF)


@formula
def exp(x):
    """e^x within 1 unit in the last place; 0, infinity and subnormal numbers where they belong."""
    x = _LOWEST if x < _LOWEST else x
    x = _HIGHEST if x > _HIGHEST else x
    rounded = _f(x * _LOG2E + _ROUND)
    n = rounded - _ROUND
    r = x - n * _LN2
    r = r - n * _LN2_REST
    p = _f(1.3814467e-3)
    p = p * r + _f(8.3687808e-3)
    p = p * r + _f(4.1668393e-2)
    p = p * r + _f(1.6666520e-1)
    p = p * r + _f(4.9999994e-1)
    p = p * (r * r) + r + _ONE
    # 2^n in two factors, which are normal numbers for every n
    power = _i(np.float32(rounded).view(np.int32) - _ROUND_BITS)
    half = _i(power >> _i(1))
    rest = _i(power - half)
    return p * _power_of_two(half) * _power_of_two(rest)


@formula
def _power_of_two(n):
    return np.int32(_i(n + _i(127)) << _i(23)).view(np.float32)


@formula
def sigmoid(x):
    """1 / (1 + e^-x)."""
    return _ONE / (_ONE + exp(-x))


@formula
def tanh(x):
    """The hyperbolic tangent within 3 units in the last place."""
    square = x * x
    p = _f(-5.7049349e-3)
    p = p * square + _f(2.0639041e-2)
    p = p * square + _f(-5.3739700e-2)
    p = p * square + _f(1.3331442e-1)
    p = p * square + _f(-3.3333281e-1)
    small = x + x * square * p
    large = _ONE - _TWO / (exp(_TWO * abs(x)) + _ONE)
    large = -large if x < _f(0) else large
    return small if abs(x) < _f(0.625) else large


@formula
def bell(x):
    """e^(-x^2 / 2)."""
    return exp(x * x * -_HALF)


@formula
def normal(x, bell_x):
    """The normal distribution function of x, within 3e-7, from `bell(x)`.

    The tail is e^(-x^2 / 2) times a polynomial in 1 / (1 + 0.3 |x|), a form due to Hastings,
    "Approximations for digital computers" (1955).
    """
    t = _ONE / (_ONE + _f(0.3) * abs(x))
    p = _f(3.5178397e-2)
    p = p * t + _f(-1.5514103e-1)
    p = p * t + _f(2.0281418e-1)
    p = p * t + _f(-5.0442263e-2)
    p = p * t + _f(1.2685771e-1)
    p = p * t + _f(1.0042566e-1)
    p = p * t + _f(1.2067272e-1)
    p = p * t + _f(1.1963453e-1)
    tail = p * t * bell_x
    side = _ONE if x > _f(0) else _f(0)
    return abs(side - tail)


@formula
def ordered(x):
    """An integer that is larger for a larger x: maxima of integers vectorise."""
    bits = np.float32(x).view(np.int32)
    return _i(bits ^ _i(_i(bits >> _i(31)) & _MAGNITUDE))


@formula
def unordered(bits):
    """The number that `ordered` made `bits` of."""
    return np.int32(bits ^ _i(_i(bits >> _i(31)) & _MAGNITUDE)).view(np.float32)
