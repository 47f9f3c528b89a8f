"""Activations and their gradients."""

from __future__ import annotations

import math

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.elementary import (
    bell,
    exp,
    normal,
)
from tensorflow_lite_clone.backends.numba.kernels.elementary import sigmoid as _sigmoid
from tensorflow_lite_clone.backends.numba.kernels.jit import formula, kernel

_f = np.float32
_ONE, _ZERO = _f(1), _f(0)
_DENSITY = _f(1 / math.sqrt(2 * math.pi))
_RATE, _CUBIC = _f(math.sqrt(2 / math.pi)), _f(0.044715)


@formula
def _gelu(x):
    return x * normal(x, bell(x))


@formula
def _gelu_slope(x):
    density = bell(x)
    return normal(x, density) + x * (density * _DENSITY)


@formula
def _tanh_argument(x):
    """Twice the argument of the hyperbolic tangent: 1 + tanh(u) is 2 sigmoid(2 u)."""
    return (_RATE + _RATE) * x * (_ONE + _CUBIC * (x * x))


@formula
def _gelu_tanh(x):
    return x / (_ONE + exp(-_tanh_argument(x)))


@formula
def _gelu_tanh_slope(x):
    s = _sigmoid(_tanh_argument(x))
    rate = (_RATE + _RATE) * (_ONE + _f(3) * _CUBIC * (x * x))
    return s + x * s * (_ONE - s) * rate


@formula
def _silu(x):
    return x / (_ONE + exp(-x))


@formula
def _silu_slope(x):
    s = _sigmoid(x)
    return s * (_ONE + x * (_ONE - s))


@kernel
def gelu(start, stop, x, y):
    a, b = x[start:stop], y[start:stop]
    for i in range(a.size):
        b[i] = _gelu(a[i])


@kernel
def gelu_backward(start, stop, g, x, gx):
    a, b, c = g[start:stop], x[start:stop], gx[start:stop]
    for i in range(a.size):
        c[i] = a[i] * _gelu_slope(b[i])


@kernel
def gelu_tanh(start, stop, x, y):
    a, b = x[start:stop], y[start:stop]
    for i in range(a.size):
        b[i] = _gelu_tanh(a[i])


@kernel
def gelu_tanh_backward(start, stop, g, x, gx):
    a, b, c = g[start:stop], x[start:stop], gx[start:stop]
    for i in range(a.size):
        c[i] = a[i] * _gelu_tanh_slope(b[i])


@kernel
def silu(start, stop, x, y):
    a, b = x[start:stop], y[start:stop]
    for i in range(a.size):
        b[i] = _silu(a[i])


@kernel
def silu_backward(start, stop, g, x, gx):
    a, b, c = g[start:stop], x[start:stop], gx[start:stop]
    for i in range(a.size):
        c[i] = a[i] * _silu_slope(b[i])


@kernel
def sigmoid(start, stop, x, y):
    a, b = x[start:stop], y[start:stop]
    for i in range(a.size):
        b[i] = _sigmoid(a[i])


@kernel
def sigmoid_backward(start, stop, g, y, gx):
    a, b, c = g[start:stop], y[start:stop], gx[start:stop]
    for i in range(a.size):
        c[i] = a[i] * ((_ONE - b[i]) * b[i])


@kernel
def tanh_backward(start, stop, g, y, gx):
    a, b, c = g[start:stop], y[start:stop], gx[start:stop]
    for i in range(a.size):
        c[i] = a[i] * (_ONE - b[i] * b[i])


@kernel
def relu(start, stop, x, y):
    a, b = x[start:stop], y[start:stop]
    for i in range(a.size):
        b[i] = _ZERO if a[i] <= _ZERO else a[i]


@kernel
def threshold_backward(start, stop, g, x, threshold, gx):
    low = _f(threshold)
    a, b, c = g[start:stop], x[start:stop], gx[start:stop]
    for i in range(a.size):
        c[i] = _ZERO if b[i] <= low else a[i]
