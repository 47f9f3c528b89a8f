"""Steps of optimizers, in place; numbers come as Python's floats and are rounded once."""

from __future__ import annotations

import math

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import kernel

_f = np.float32


@kernel
def sgd(start, stop, p, g, sign, decay, lr):
    p, g = p[start:stop], g[start:stop]
    sign, decay, lr = _f(sign), _f(decay), _f(lr)
    for i in range(p.size):
        p[i] -= lr * (sign * g[i] + decay * p[i])


@kernel
def momentum_sgd(start, stop, p, g, b, sign, decay, lr, keep, enter, momentum, nesterov):
    p, g, b = p[start:stop], g[start:stop], b[start:stop]
    sign, decay, lr = _f(sign), _f(decay), _f(lr)
    keep, enter = _f(keep), _f(enter)
    # what of the gradient and of the buffer the step is
    share, rest = (_f(1), _f(momentum)) if nesterov else (_f(0), _f(1))
    for i in range(p.size):
        slope = sign * g[i] + decay * p[i]
        state = b[i] * keep + slope * enter
        b[i] = state
        p[i] -= lr * (share * slope + rest * state)


@kernel
def adam(start, stop, p, g, m, v, sign, decay, shrink, beta1, beta2, rate, root, eps):
    p, g, m, v = p[start:stop], g[start:stop], m[start:stop], v[start:stop]
    sign, decay, shrink = _f(sign), _f(decay), _f(shrink)
    enter1, keep2, enter2 = _f(1 - beta1), _f(beta2), _f(1 - beta2)
    rate, root, eps = _f(rate), _f(root), _f(eps)
    for i in range(p.size):
        slope = sign * g[i] + decay * p[i]
        mean = m[i] + (slope - m[i]) * enter1
        square = v[i] * keep2 + (enter2 * slope) * slope
        m[i] = mean
        v[i] = square
        p[i] = p[i] * shrink - rate * mean / (math.sqrt(square) / root + eps)
