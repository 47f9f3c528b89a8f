"""Steps of optimizers in place: in blocks whose intermediate results stay in the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.threads import parallel_for
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.dispatch.table import override


def _are_few(params: list) -> bool:
    """Whether parameters are neither worth threads nor blocks."""
    small = tuning.optimizer_small
    for p in params:
        if p.size > small or not p.ndim:
            return False
    return len(params) <= tuning.optimizer_per_thread // small


def _updated(formula: Callable[..., object], lists: tuple[list, ...]) -> None:
    """Call ``formula(i, room, *blocks)`` for all blocks of the i-th arrays of the lists.

    `room` is what an intermediate result may be written to, or None.
    """
    if _are_few(lists[0]):
        for i, arrays in enumerate(zip(*lists)):
            formula(i, None, *arrays)
        return
    block, small = tuning.optimizer_block, tuning.optimizer_small
    pieces: list[tuple] = []
    total = 0
    for i, arrays in enumerate(zip(*lists)):
        first = arrays[0]
        size = first.size
        if (size <= small and first.ndim) or not all([x.flags.c_contiguous for x in arrays]):
            pieces.append((total, i, 0, arrays))
        else:
            flat = [x.reshape(-1) for x in arrays]
            if size <= block:
                pieces.append((total, i, size, flat))
            else:
                for start in range(0, size, block):
                    blocks = [x[start : start + block] for x in flat]
                    pieces.append((total + start, i, blocks[0].size, blocks))
        total += size
    dtype = lists[0][0].dtype

    def work(start: int, stop: int) -> None:
        with workspace(block, dtype) as memory:
            for place, i, size, blocks in pieces:
                if start <= place < stop:
                    formula(i, memory[:size] if size else None, *blocks)

    parallel_for(work, max(total, 1), tuning.optimizer_per_thread)


def _fits(lists: tuple[list, ...], found_inf: Any, *numbers: Any) -> bool:
    """Whether all arrays are of one dtype, float32 or float64, and all numbers are Python's."""
    if found_inf is not None:
        return False
    for x in numbers:
        if x.__class__ is not float and not isinstance(x, (float, int)):
            return False
    dtype = lists[0][0].dtype
    if dtype.kind != "f" or dtype.itemsize == 2:
        return False
    for arrays in lists:
        for x in arrays:
            if x.dtype is not dtype and x.dtype != dtype:
                return False
    return True


def _with_penalty(p: Any, g: Any, weight_decay: float, maximize: bool) -> Any:
    if maximize:
        g = np.negative(g)
    if weight_decay:
        decay = p * weight_decay
        decay += g
        return decay
    return g


@override("sgd_step", backend="numpy")
def sgd_step(
    F: Any, params: list, grads: list, buffers: list, *, lr: Any, momentum: float,
    dampening: float, weight_decay: float, nesterov: bool, maximize: bool, first: list[bool],
    found_inf: Any = None,
) -> Any:  # fmt: skip
    has_penalty = weight_decay or maximize
    lists = (params, grads, buffers) if momentum else (params, grads)
    if not _fits(lists, found_inf, lr, momentum, dampening, weight_decay):
        return NotImplemented

    rate = np.array(lr, params[0].dtype)  # beside arrays it costs half of what a number costs

    def formula(i: int, room: Any, p: Any, g: Any, b: Any = None) -> None:
        if has_penalty:
            g = _with_penalty(p, g, weight_decay, maximize)
        if b is not None:
            if first[i]:
                b[...] = g
            else:
                b *= momentum
                b += np.multiply(g, 1 - dampening, room) if dampening else g
            if nesterov:
                step = np.multiply(b, momentum, room)
                step += g
                g = step
            else:
                g = b
        p -= np.multiply(g, rate, room)

    _updated(formula, lists)
    return None


@override("adam_step", backend="numpy")
def adam_step(
    F: Any, params: list, grads: list, *states: list, steps: list, lr: Any, betas: tuple,
    eps: float, weight_decay: float, amsgrad: bool, maximize: bool, decoupled_weight_decay: bool,
    found_inf: Any = None,
) -> Any:  # fmt: skip
    lists = (params, grads, *[state for state in states if state])
    if not _fits(lists, found_inf, lr, eps, weight_decay, *betas, *steps):
        return NotImplemented
    beta1, beta2 = betas
    dtype = params[0].dtype
    rates = {}
    for step in set(steps):
        root = math.sqrt(1 - beta2**step)
        rate, small = lr * root / (1 - beta1**step), eps * root
        rates[step] = np.array(rate, dtype), np.array(small, dtype)
    # Arrays beside arrays cost half of what Python's numbers cost.
    constant = F.backend.constant
    enter1, keep2, enter2 = [constant(x, dtype) for x in (1 - beta1, beta2, 1 - beta2)]
    decay = np.array(1 - lr * weight_decay, dtype)

    def formula(i: int, room: Any, p: Any, g: Any, m: Any, v: Any, largest: Any = None) -> None:
        if not decoupled_weight_decay:
            g = _with_penalty(p, g, weight_decay, maximize)
        else:
            if maximize:
                g = np.negative(g)
            if weight_decay:
                p *= decay
        change = np.subtract(g, m, room)
        change *= enter1
        m += change
        v *= keep2
        change = np.multiply(g, enter2, room)
        change *= g
        v += change
        if amsgrad:
            v = np.maximum(largest, v, out=largest)
        # lr m / s1 / (sqrt(v) / s2 + eps), s2 taken out of the denominator
        rate, small = rates[steps[i]]
        np.sqrt(v, change)
        change += small
        np.divide(m, change, change)
        change *= rate
        p -= change

    _updated(formula, lists)
    return None


@override("rmsprop_step", backend="numpy")
def rmsprop_step(
    F: Any, params: list, grads: list, *states: list, lr: Any, alpha: float, eps: float,
    weight_decay: float, momentum: float, centered: bool, maximize: bool, found_inf: Any = None,
) -> Any:  # fmt: skip
    lists = (params, grads, *[state for state in states if state])
    if not _fits(lists, found_inf, lr, alpha, eps, weight_decay, momentum):
        return NotImplemented
    largest = np.finfo(params[0].dtype).max

    def formula(i: int, room: Any, p: Any, g: Any, v: Any, *rest: Any) -> None:
        g = _with_penalty(p, g, weight_decay, maximize)
        v *= alpha
        change = np.multiply(g, 1 - alpha, room)
        change *= g
        v += change
        if centered:
            average = rest[-1]
            np.subtract(g, average, change)
            change *= 1 - alpha
            average += change
            np.multiply(average, average, change)
            np.minimum(change, largest, out=change)  # of infinity less infinity there is no root
            np.subtract(v, change, change)
            np.sqrt(change, change)
        else:
            np.sqrt(v, change)
        change += eps
        np.divide(g, change, change)
        if momentum:
            buffer = rest[0]
            buffer *= momentum
            buffer += change
            np.multiply(buffer, lr, change)
        else:
            change *= lr
        p -= change

    _updated(formula, lists)
    return None
