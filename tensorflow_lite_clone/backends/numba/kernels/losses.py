"""The cross-entropy of rows; targets are in range or to be ignored."""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.elementary import exp
from tensorflow_lite_clone.backends.numba.kernels.jit import formula, kernel, loop
from tensorflow_lite_clone.backends.numba.kernels.softmax import log_sum_exp

_ZERO, _ONE = np.float32(0), np.float32(1)
_EXACT = np.float32(16)  # the logarithm of a sum up to which it is not far off


@formula
def _loss(x, top, rest):
    """Not lse - x: a sum of a large `top` and `rest` would round the latter away."""
    return rest - (x - top)


@loop
def _sum(x, i, lse):
    total = _ZERO
    for j in range(x.shape[1]):
        total += exp(x[i, j] - lse)
    return total


@kernel
def cross_entropy(start, stop, x, target, ignored, loss, lse):
    for i in range(start, stop):
        top, rest = log_sum_exp(x, i)
        lse[i] = top + rest
        label = target[i]
        loss[i] = _ZERO if label == ignored else _loss(x[i, max(label, 0)], top, rest)


@kernel
def cross_entropy_backward(start, stop, g, x, lse, target, ignored, gx):
    columns = x.shape[1]
    for i in range(start, stop):
        label = target[i]
        scale = _ZERO if label == ignored else g[i]
        # A large sum's logarithm is rounded; the exponentials' own sum tells by how much.
        total = _sum(x, i, lse[i]) if abs(lse[i]) > _EXACT else _ONE
        for j in range(columns):
            gx[i, j] = exp(x[i, j] - lse[i]) * (scale / total)
        if label != ignored:
            gx[i, label] = (exp(x[i, label] - lse[i]) / total - _ONE) * scale
