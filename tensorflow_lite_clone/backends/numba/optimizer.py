"""Steps of SGD and Adam, in place and in one pass over each parameter."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import (
    Compilation,
    Kernels,
    row_major,
    run,
)
from tensorflow_lite_clone.core.hyper import Hyper
from tensorflow_lite_clone.dispatch.table import override

_kernels = Kernels("optimizer")
_compilation = Compilation()
_LEAST = 1 << 12  # of all parameters together


def _is_supported(lr: Any, found_inf: Any, *lists: list[np.ndarray]) -> bool:
    return (
        isinstance(lr, float | int)
        and found_inf is None
        and all([row_major(*arrays) for arrays in lists])
        and _compilation.count(sum([p.size for p in lists[0]]))
    )


def _run_each(calls: list[tuple]) -> None:
    """Start ``(kernel, parameter, *arguments)``, which threads share as if it were one long one."""
    places = [0, *accumulate([p.size for _, p, *_ in calls])]

    def work(start: int, stop: int) -> None:
        for (kernel, *arguments), first, last in zip(calls, places, places[1:]):
            if first < stop and start < last:
                kernel(max(start - first, 0), min(stop, last) - first, *arguments)

    run(work, places[-1], 1)


@override("sgd_step", backend="numba", least=_LEAST)
def sgd_step(
    F: Any, params: list, grads: list, buffers: list, *, found_inf: Any = None, **hyper: Any
) -> Any:
    h = Hyper(hyper)
    if not _is_supported(h.lr, found_inf, params, grads, buffers):
        return NotImplemented
    sign = -1.0 if h.maximize else 1.0
    calls: list[tuple] = []
    for i, (p, g) in enumerate(zip(params, grads)):
        p, g = p.reshape(-1), g.reshape(-1)
        if not h.momentum:
            calls.append((_kernels.sgd, p, g, sign, h.weight_decay, h.lr))
            continue
        # A first step's buffer is the gradient, whatever is there.
        keep, enter = (0.0, 1.0) if h.first[i] else (h.momentum, 1 - h.dampening)
        buffer = buffers[i].reshape(-1)
        if h.first[i]:
            buffer.fill(0)
        calls.append((_kernels.momentum_sgd, p, g, buffer, sign, h.weight_decay, h.lr, keep,
                      enter, h.momentum, h.nesterov))  # fmt: skip
    _run_each(calls)
    return None


@override("adam_step", backend="numba", least=_LEAST)
def adam_step(
    F: Any, params: list, grads: list, *states: list, found_inf: Any = None, **hyper: Any
) -> Any:
    h = Hyper(hyper)
    means, squares, _ = states
    plain = not h.amsgrad and all([isinstance(step, float) for step in h.steps])
    if not plain or not all([isinstance(beta, float | int) for beta in h.betas]):
        return NotImplemented
    if not _is_supported(h.lr, found_inf, params, grads, means, squares):
        return NotImplemented
    beta1, beta2 = h.betas
    sign = -1.0 if h.maximize else 1.0
    shrink = 1 - h.lr * h.weight_decay if h.decoupled_weight_decay else 1.0
    decay = 0.0 if h.decoupled_weight_decay else h.weight_decay
    calls: list[tuple] = []
    for p, g, mean, square, step in zip(params, grads, means, squares, h.steps):
        rate = h.lr / (1 - beta1**step)
        root = math.sqrt(1 - beta2**step)
        calls.append((_kernels.adam, p.reshape(-1), g.reshape(-1), mean.reshape(-1),
                      square.reshape(-1), sign, decay, shrink, beta1, beta2, rate, root,
                      h.eps))  # fmt: skip
    _run_each(calls)
    return None
