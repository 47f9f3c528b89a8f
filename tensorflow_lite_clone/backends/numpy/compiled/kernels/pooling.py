"""Maxima over windows, a line of them at a time: first down the columns, then along the line."""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.kernels.jit import formula, kernel, loop

_f = np.float32
_LOWEST = _f(-np.inf)
_NONE = np.int32(-1)


@formula
def _larger(a, b):
    """The larger of two; NaN if there is one."""
    return b if b > a or b != b else a


@loop
def _take_larger(target, x, step):
    """target[j] = max(target[j], x[j * step]); steps of 1 and 2 vectorise."""
    if step == 1:
        for j in range(target.size):
            target[j] = _larger(target[j], x[j])
    elif step == 2:
        for j in range(target.size):
            target[j] = _larger(target[j], x[2 * j])
    else:
        for j in range(target.size):
            target[j] = _larger(target[j], x[j * step])


@kernel
def max_pool(start, stop, x, y, geometry):
    """x (planes, height, width), y (planes, rows, columns)."""
    kh, kw, sh, sw, ph, pw, dh, dw = geometry
    height, width = x.shape[1:]
    rows, columns = y.shape[1:]
    line = np.full(max((columns - 1) * sw + (kw - 1) * dw + 1, width + pw), _LOWEST)
    inside = line[pw : pw + width]
    for plane in range(start, stop):
        for row in range(rows):
            inside[:] = _LOWEST
            for i in range(kh):
                place = row * sh - ph + i * dh
                if 0 <= place < height:
                    _take_larger(inside, x[plane, place], 1)
            target = y[plane, row]
            target[:] = _LOWEST
            for j in range(kw):
                _take_larger(target, line[j * dw :], sw)


@loop
def _mark(winners, tops, x, step, number):
    """Note where x[j * step] is the window's maximum: the first one, of NaNs the last."""
    for j in range(winners.size):
        value = x[j * step]
        first = value == tops[j] and winners[j] < 0
        winners[j] = number if first or value != value else winners[j]


@kernel
def max_pool_backward(start, stop, g, x, y, gx, geometry):
    """Each window's g at the place of its maximum, added up."""
    kh, kw, sh, sw, ph, pw, dh, dw = geometry
    height, width = x.shape[1:]
    rows, columns = y.shape[1:]
    winners = np.empty(columns, np.int32)
    for plane in range(start, stop):
        gx[plane, :, :] = 0
        target = gx[plane].reshape(height * width)
        for row in range(rows):
            winners[:] = _NONE
            for i in range(kh):
                place = row * sh - ph + i * dh
                if not 0 <= place < height:
                    continue
                for j in range(kw):
                    shift = j * dw - pw
                    first = max(0, (-shift + sw - 1) // sw)
                    last = min(columns, (width - 1 - shift) // sw + 1)
                    if first >= last:
                        continue
                    part, tops = winners[first:last], y[plane, row][first:last]
                    seen, number = x[plane, place][first * sw + shift :], np.int32(i * kw + j)
                    if sw == 1:
                        _mark(part, tops, seen, 1, number)
                    elif sw == 2:
                        _mark(part, tops, seen, 2, number)
                    else:
                        _mark(part, tops, seen, sw, number)
            top = row * sh - ph
            for column in range(columns):
                number = winners[column]
                if number >= 0:
                    i, j = number // kw, number % kw
                    place = (top + i * dh) * width + column * sw - pw + j * dw
                    target[place] += g[plane, row, column]
