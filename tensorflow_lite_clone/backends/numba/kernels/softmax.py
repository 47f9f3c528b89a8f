"""Rows of softmax and of its logarithm: a row stays in the cache between its passes."""

from __future__ import annotations

import math

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.elementary import (
    exp,
    ordered,
    unordered,
)
from tensorflow_lite_clone.backends.numba.kernels.jit import formula, kernel, loop

_f = np.float32
_LEAST = np.int32(-(2**31))


@loop
def _largest(x, i):
    """The largest number of row i; NaN, if there is one and it is no negative one."""
    top = _LEAST
    for j in range(x.shape[1]):
        bits = ordered(x[i, j])
        top = bits if bits > top else top
    return unordered(top)


@loop
def log_sum_exp(x, i):
    """The largest element of row i, and log(sum(exp(x - largest)))."""
    top = _largest(x, i)
    total = _f(0)
    for j in range(x.shape[1]):
        total += exp(x[i, j] - top)
    return top, _f(math.log(total))


@formula
def _log_share(x, top, rest):
    """x less the logarithm of the sum, in two steps: their sum would round a small `rest` away."""
    return (x - top) - rest


@kernel
def softmax(start, stop, x, y):
    columns = x.shape[1]
    for i in range(start, stop):
        top = _largest(x, i)
        total = _f(0)
        for j in range(columns):
            e = exp(x[i, j] - top)
            y[i, j] = e
            total += e
        share = _f(1) / total
        for j in range(columns):
            y[i, j] *= share


@kernel
def softmax_backward(start, stop, g, y, gx):
    columns = y.shape[1]
    for i in range(start, stop):
        total = _f(0)
        for j in range(columns):
            total += g[i, j] * y[i, j]
        for j in range(columns):
            gx[i, j] = (g[i, j] - total) * y[i, j]


@kernel
def log_softmax(start, stop, x, y):
    columns = x.shape[1]
    for i in range(start, stop):
        top, rest = log_sum_exp(x, i)
        for j in range(columns):
            y[i, j] = _log_share(x[i, j], top, rest)


@kernel
def log_softmax_backward(start, stop, g, y, gx):
    columns = y.shape[1]
    for i in range(start, stop):
        total = _f(0)
        for j in range(columns):
            total += g[i, j]
        for j in range(columns):
            gx[i, j] = g[i, j] - exp(y[i, j]) * total
