"""The cross-entropy of rows; targets are in range or to be ignored."""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.kernels.elementary import exp
from tensorflow_lite_clone.backends.numpy.compiled.kernels.jit import formula, kernel
from tensorflow_lite_clone.backends.numpy.compiled.kernels.softmax import log_sum_exp

_ZERO, _ONE = np.float32(0), np.float32(1)


@formula
def _loss(x, top, rest):
    """Not lse - x: a sum of a large `top` and `rest` would round the latter away."""
    return rest - (x - top)


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
        for j in range(columns):
            gx[i, j] = exp(x[i, j] - lse[i]) * scale
        if label != ignored:
            gx[i, label] = (exp(x[i, label] - lse[i]) - _ONE) * scale
