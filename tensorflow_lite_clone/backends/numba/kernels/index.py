"""Reads and sums at places.

Places are unsigned: with signed ones Numba would look for negative ones, which count from the end,
and as unsigned numbers those are the largest. Nothing is done for an i with one that is too large:
`most` is told the largest of each i.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import kernel, loop

_unsigned = np.uintp
_ZERO = np.float32(0)
_NONE = np.uintp(0)


@loop
def _largest(index):
    count, size = index.shape
    most = _NONE
    for k in range(size):
        for j in range(_unsigned(count)):
            most = max(most, _unsigned(index[j, k]))
    return most


@kernel
def gather(start, stop, x, index, y, most):
    """x, index and y are (before, along the axis, behind), most is (before,)."""
    count, size = index.shape[1:]
    for i in range(start, stop):
        most[i] = _largest(index[i])
        if most[i] >= _unsigned(x.shape[1]):
            continue
        if size == 1:
            line, places, target = x[i, :, 0], index[i, :, 0], y[i, :, 0]
            for j in range(_unsigned(count)):
                target[j] = line[_unsigned(places[j])]
        else:
            for j in range(count):
                for k in range(size):
                    y[i, j, k] = x[i, _unsigned(index[i, j, k]), k]


@kernel
def scatter_add(start, stop, y, index, src, most):
    """y, index and src are (before, along the axis, behind), most is (before,)."""
    count, size = index.shape[1:]
    for i in range(start, stop):
        most[i] = _largest(index[i])
        if most[i] >= _unsigned(y.shape[1]):
            continue
        if size == 1:
            line, places, values = y[i, :, 0], index[i, :, 0], src[i, :, 0]
            for j in range(_unsigned(count)):
                line[_unsigned(places[j])] += values[j]
        else:
            for j in range(count):
                for k in range(size):
                    y[i, _unsigned(index[i, j, k]), k] += src[i, j, k]


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
