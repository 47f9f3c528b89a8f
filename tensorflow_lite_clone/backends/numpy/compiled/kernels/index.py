"""Reads and sums at places that were looked at before: all are in range.

Places are unsigned: with signed ones Numba would look for negative ones, which count from the end.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.kernels.jit import kernel, loop

_unsigned = np.uintp
_ZERO = np.float32(0)


@kernel
def gather(start, stop, x, index, y):
    """x, index and y are (before, along the axis, behind)."""
    count, size = index.shape[1:]
    for i in range(start, stop):
        if size == 1:
            line, places, target = x[i, :, 0], index[i, :, 0], y[i, :, 0]
            for j in range(_unsigned(count)):
                target[j] = line[_unsigned(places[j])]
        else:
            for j in range(count):
                for k in range(size):
                    y[i, j, k] = x[i, _unsigned(index[i, j, k]), k]


@loop
def _add(y, index, src):
    """Of one i: y, index and src are (along the axis, behind)."""
    count, size = index.shape
    if size == 1:
        line, places, values = y[:, 0], index[:, 0], src[:, 0]
        for j in range(_unsigned(count)):
            line[_unsigned(places[j])] += values[j]
    else:
        for j in range(count):
            for k in range(size):
                y[_unsigned(index[j, k]), k] += src[j, k]


@kernel
def scatter_add_to(start, stop, y, index, src):
    """y, index and src are (before, along the axis, behind)."""
    for i in range(start, stop):
        _add(y[i], index[i], src[i])


@kernel
def scatter_add(start, stop, x, index, src, y):
    """The same, to x: in a cache from when it is copied."""
    for i in range(start, stop):
        source, target = x[i].ravel(), y[i].ravel()
        for j in range(source.size):
            target[j] = source[j]
        _add(y[i], index[i], src[i])


@kernel
def gather_backward(start, stop, g, index, gx):
    """The same, to zeros."""
    for i in range(start, stop):
        gx[i] = _ZERO
        _add(gx[i], index[i], g[i])


@kernel
def sum_rows(start, stop, g, index, skipped, y):
    """Every thread adds up what belongs to its rows of y: from `start` to `stop`."""
    named = np.zeros(stop - start, np.bool_)
    for i in range(index.size):
        row = index[i]
        if start <= row < stop and row != skipped:
            source, target = g[_unsigned(i)], y[_unsigned(row)]
            if named[_unsigned(row - start)]:
                for j in range(source.size):
                    target[j] += source[j]
            else:
                named[_unsigned(row - start)] = True
                for j in range(source.size):
                    target[j] = source[j]
    for row in range(start, stop):
        if not named[row - start]:
            y[row] = _ZERO
