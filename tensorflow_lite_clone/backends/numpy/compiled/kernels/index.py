"""Reads and sums at places that were looked at before: all are in range."""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.kernels.jit import kernel


@kernel
def gather(start, stop, x, index, y):
    """x, index and y are (before, along the axis, behind)."""
    count, size = index.shape[1:]
    for i in range(start, stop):
        if size == 1:
            line, places, target = x[i, :, 0], index[i, :, 0], y[i, :, 0]
            for j in range(count):
                target[j] = line[np.uint64(places[j])]
        else:
            for j in range(count):
                for k in range(size):
                    y[i, j, k] = x[i, index[i, j, k], k]


@kernel
def scatter_add(start, stop, y, index, src):
    """y, index and src are (before, along the axis, behind)."""
    count, size = index.shape[1:]
    for i in range(start, stop):
        if size == 1:
            line, places, values = y[i, :, 0], index[i, :, 0], src[i, :, 0]
            for j in range(count):
                line[np.uint64(places[j])] += values[j]
        else:
            for j in range(count):
                for k in range(size):
                    y[i, index[i, j, k], k] += src[i, j, k]


@kernel
def embedding_backward(start, stop, g, index, padding, gw):
    """Every thread adds up what belongs to its rows of the table."""
    gw[start:stop] = 0
    size = g.shape[1]
    for i in range(index.size):
        row = index[i]
        if start <= row < stop and row != padding:
            for j in range(size):
                gw[row, j] += g[i, j]
