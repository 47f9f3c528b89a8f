"""Modified Bessel functions of the first kind over NumPy arrays, orders 0 and 1.

Near-minimax rational fits as in `kit_special`; beyond 8 in the variable 16/x - 1, which keeps the
coefficients small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.kit_special import in_double, ratio

# i0(x) in x*x, x <= 8 (1.3e-17)
_I0_LOW = (
    (1.0, 0.2383372109377836, 0.01277676465451615, 0.0002684094713763423, 2.7112919609118054e-06,
     1.4220709597429196e-08, 3.7947089633020736e-11, 4.175596843129843e-14),
    (1.0, -0.011662789062216536, 6.746192007051576e-05, -2.5270732207387405e-07,
     6.666819593777086e-10, -1.2462208111239794e-12, 1.5350057461412956e-15,
     -9.625850282934006e-19),
)  # fmt: skip
# sqrt(x) exp(-x) i0(x) in 16/x - 1, x >= 8 (8.4e-18)
_I0_HIGH = (
    (0.40217650944500805, -0.9981152425015452, 1.9564847774623761, -2.403145522449951,
     2.175939120417768, -1.3569726585995903, 0.5792492610553068, -0.15357862369950398,
     0.021984313266721962, -0.001187397543966876, 1.0249478295979614e-05),
    (1.0, -2.4901399533931525, 4.885210249746365, -6.01535498611912, 5.459082770104864,
     -3.4177775383283016, 1.4671461002841373, -0.3931026810697733, 0.05752927254637488,
     -0.0033311080991123994, 4.1025716876969355e-05),
)  # fmt: skip
# i1(x) / x in x*x, x <= 8 (1.4e-18)
_I1_LOW = (
    (0.5, 0.057131607666833506, 0.0019615649114334424, 2.9751881570740958e-05,
     2.3191526881645266e-07, 9.795777740774057e-10, 2.1684142144736207e-12,
     2.0222985608411387e-15),
    (1.0, -0.010736784666332998, 5.689457282519585e-05, -1.9424943563826288e-07,
     4.647087056548051e-10, -7.839793543020838e-13, 8.68035496245016e-16,
     -4.880537764839804e-19),
)  # fmt: skip
# sqrt(x) exp(-x) i1(x) in 16/x - 1, x >= 8 (1.0e-17)
_I1_HIGH = (
    (0.38939845902587233, -0.9830798528473909, 1.9070093815837827, -2.3421163390851256,
     2.100657183349089, -1.3017693867658637, 0.5489095494432973, -0.1440554255733805,
     0.020347483320286, -0.00116931244638807, 1.8576238139454933e-05),
    (1.0, -2.4995740303879455, 4.8353011773553085, -5.895008316727987, 5.249655239312565,
     -3.2147312286693057, 1.331894434888143, -0.33822731166722153, 0.044431460135456374,
     -0.002040961023164487, 1.2871666411017536e-05),
)  # fmt: skip


def _bessel(a: Any, low: tuple, high: tuple, odd: bool, scaled: bool) -> Any:
    """The function at a >= 0, times exp(-a) if `scaled`."""
    y = np.empty_like(a)
    large = a > 8.0
    x = a[large]
    tail = ratio(16.0 / x - 1.0, high) / np.sqrt(x)
    # exp(x) alone may overflow where its product with the tail does not
    y[large] = tail if scaled else tail * np.exp(0.5 * x) * np.exp(0.5 * x)
    x = a[~large]
    core = ratio(x * x, low)
    if odd:
        core *= x
    y[~large] = core * np.exp(-x) if scaled else core
    return y


def _i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return _bessel(np.abs(x), _I0_LOW, _I0_HIGH, False, False)


def _i0e(x: Any) -> Any:
    """exp(-abs(x)) i0(x)."""
    return _bessel(np.abs(x), _I0_LOW, _I0_HIGH, False, True)


def _i1(x: Any) -> Any:
    """The modified Bessel function of order 1."""
    return np.copysign(_bessel(np.abs(x), _I1_LOW, _I1_HIGH, True, False), x)


def _i1e(x: Any) -> Any:
    """exp(-abs(x)) i1(x)."""
    return np.copysign(_bessel(np.abs(x), _I1_LOW, _I1_HIGH, True, True), x)


i0 = in_double(_i0)
i0e = in_double(_i0e)
i1 = in_double(_i1)
i1e = in_double(_i1e)
