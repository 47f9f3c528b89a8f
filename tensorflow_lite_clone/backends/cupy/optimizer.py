"""Optimizer steps, gradient clipping, zeroing and copies: one launch for all tensors of a dtype."""

from __future__ import annotations

import math
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.backends.cupy.tensor_lists import (
    NORM_CHUNK,
    THREADS,
    batches,
    is_supported,
    launch,
    numbers,
    rows,
)
from tensorflow_lite_clone.core.hyper import Hyper
from tensorflow_lite_clone.dispatch.table import override
from tensorflow_lite_clone.kernels.steps import complement, function_of, fused_step, logarithm

_FILE = "optimizer.cu"
_sgd = Kernel(_FILE, "sgd_step", params=("T",))
_adam = Kernel(_FILE, "adam_step", params=("T", "AMSGRAD"))
_rmsprop = Kernel(_FILE, "rmsprop_step", params=("T",))
_adagrad = Kernel(_FILE, "adagrad_step", params=("T",))
_count = Kernel(_FILE, "count_steps", params=("COUNT",))
_partial = Kernel(_FILE, "grad_norm_partial", params=("T", "A", "ORDER"))
_total = Kernel(_FILE, "grad_norm_total", params=("T", "A", "ORDER"))
_clip = Kernel(_FILE, "clip_to_norm", params=("T", "A"))
_clamp = Kernel(_FILE, "clamp_each", params=("T", "A"))
_zero = Kernel(_FILE, "zero_each", params=("T",))
_copy = Kernel(_FILE, "copy_each", params=("T",))

_COUNT = 478  # step counts of a launch: their addresses fit into its arguments
_ORDERS = {1.0: 1, 2.0: 2, math.inf: 0}


@override("sgd_step", backend="cupy")
def sgd_step(
    F: Any, params: list, grads: list, buffers: list, *, found_inf: Any = None, **hyper: Any
) -> Any:
    h = Hyper(hyper)
    lists = [params, grads, buffers] if h.momentum else [params, grads]
    found = rows(lists, read=(1,))
    if found is None or not is_supported(h.lr, found_inf):
        return NotImplemented
    share = function_of(h.dampening, complement) if h.momentum else 1.0
    for dtype, places in found.items():
        if not h.momentum:
            places = [(place, (*arrays, None)) for place, arrays in places]
        values = numbers(dtype, h.lr, h.momentum or 0.0, share, h.weight_decay)
        for new in (True, False):
            part = [row for row in places if bool(h.momentum and h.first[row[0]]) is new]
            launch(
                _sgd[dtype],
                dtype,
                part,
                3,
                values,
                found_inf,
                bool(h.momentum),
                new,
                bool(h.nesterov),
                bool(h.maximize),
            )
    return None


def _adam_numbers(h: Any) -> tuple:
    beta1, beta2 = h.betas
    share1, logarithm1 = function_of(beta1, complement), function_of(beta1, logarithm)
    share2, logarithm2 = function_of(beta2, complement), function_of(beta2, logarithm)
    return h.lr, share1, logarithm1, beta2, share2, logarithm2, h.eps, h.weight_decay


fused_step(
    "adam_step",
    _adam,
    _adam_numbers,
    cells=("steps",),
    flags=("decoupled_weight_decay", "maximize"),
    template=lambda h: (bool(h.amsgrad),),
)
fused_step(
    "adagrad_step",
    _adagrad,
    lambda h: (h.lr, h.lr_decay, h.weight_decay, h.eps),
    cells=("steps",),
)


@override("rmsprop_step", backend="cupy")
def rmsprop_step(
    F: Any, params: list, grads: list, *states: list, found_inf: Any = None, **hyper: Any
) -> Any:
    h = Hyper(hyper)
    found = rows([params, grads, *[state for state in states if state]], read=(1,))
    if found is None or not is_supported(h.lr, found_inf):
        return NotImplemented
    share = function_of(h.alpha, complement)
    for dtype, places in found.items():
        complete = []
        for place, (p, g, v, *rest) in places:
            buffer = rest[0] if h.momentum else None
            average = rest[-1] if h.centered else None
            complete.append((place, (p, g, v, average, buffer)))
        launch(
            _rmsprop[dtype],
            dtype,
            complete,
            5,
            numbers(dtype, h.lr, h.alpha, share, h.eps, h.weight_decay, h.momentum or 0.0),
            found_inf,
            bool(h.momentum),
            bool(h.centered),
            bool(h.maximize),
        )
    return None


@override("count_steps", backend="cupy")
def count_steps(F: Any, steps: list, *, found_inf: Any = None) -> Any:
    if not is_supported(0.0, found_inf, steps):
        return NotImplemented
    for start in range(0, len(steps), _COUNT):
        part = steps[start : start + _COUNT]
        words = np.zeros(_COUNT + 1, np.int64)
        words[: len(part)] = [step.data.ptr for step in part]
        words[_COUNT:].view(np.int32)[0] = len(part)
        packed = words.view(f"V{words.nbytes}")
        _count[_COUNT](blocks_for(len(part), THREADS), THREADS, packed, found_inf)
    return None


@override("grad_norm", backend="cupy")
def grad_norm(F: Any, tensors: list, *, order: float) -> Any:
    if order not in _ORDERS:
        return NotImplemented
    found = rows([tensors], read=(0,))
    if found is None or len(found) != 1:
        return NotImplemented
    ((dtype, places),) = found.items()
    accumulator, number = ACCUMULATORS[dtype], _ORDERS[order]
    launches = list(batches(places, 1, NORM_CHUNK // dtype.itemsize))
    partials = cupy.empty(sum([blocks for _, blocks in launches]), accumulator)
    offset = 0
    for packed, blocks in launches:
        _partial[dtype, accumulator, number](blocks, THREADS, packed, offset, partials)
        offset += blocks
    total = cupy.empty((), dtype)
    _total[dtype, accumulator, number](1, 1024, partials, offset, total)
    return total


@override("clip_to_norm", backend="cupy")
def clip_to_norm(F: Any, tensors: list, totals: list, *, max_norm: float) -> Any:
    (total,) = totals
    found = rows([tensors])
    if found is None or total.__class__ is not cupy.ndarray or total.size != 1:
        return NotImplemented
    if any([dtype != total.dtype for dtype in found]):
        return NotImplemented
    for dtype, places in found.items():
        launch(_clip[dtype, ACCUMULATORS[dtype]], dtype, places, 1, total, max_norm)
    return None


@override("clamp_each", backend="cupy")
def clamp_each(F: Any, tensors: list, *, low: float, high: float) -> Any:
    found = rows([tensors])
    if found is None:
        return NotImplemented
    for dtype, places in found.items():
        launch(_clamp[dtype, ACCUMULATORS[dtype]], dtype, places, 1, low, high)
    return None


@override("zero_each", backend="cupy")
def zero_each(F: Any, tensors: list) -> Any:
    found = rows([tensors])
    if found is None:
        return NotImplemented
    for dtype, places in found.items():
        launch(_zero[dtype], dtype, places, 1)
    return None


@override("copy_each", backend="cupy")
def copy_each(F: Any, targets: list, sources: list) -> Any:
    found = rows([targets, sources], read=(1,))
    if found is None:
        return NotImplemented
    for dtype, places in found.items():
        launch(_copy[dtype], dtype, places, 2)
    return None
