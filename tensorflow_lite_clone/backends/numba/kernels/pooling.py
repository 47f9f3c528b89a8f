"""Maxima over windows, a line of them at a time: first down the columns, then along the line.

Those of 2 x 2 side by side are done a vector of windows at a time (`maxpool2x2_simd`).
Arrays are flat and places unsigned: to cut pieces out of arrays, and to ask whether an index is
negative, costs more than a line's work.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import formula, kernel, loop
from tensorflow_lite_clone.backends.numba.kernels.maxpool2x2_simd import store_gradient, store_max
from tensorflow_lite_clone.backends.numba.kernels.simd import LANES

_f = np.float32
_at = np.uint64
_LOWEST, _ZERO = _f(-np.inf), _f(0)


@formula
def _larger(a, b):
    """The larger of two; NaN if there is one."""
    return b if (b > a) | (b != b) else a


@loop
def _is_2x2(size, count, geometry):
    """Whether windows are 2 x 2 side by side, and whole."""
    kh, kw, sh, sw, ph, pw, dh, dw = geometry
    is_2x2 = kh == kw == sh == sw == 2 and ph == pw == 0 and dh == dw == 1
    return is_2x2 and 2 * count[0] <= size[0] and 2 * count[1] <= size[1]


@loop
def _take_larger(target, to, count, x, place, step):
    """target[to + j] = max(target[to + j], x[place + j * step]) for `count` of them."""
    for j in range(count):
        spot = _at(to + j)
        target[spot] = _larger(target[spot], x[_at(place + j * step)])


@kernel
def max_pool(start, stop, x, y, size, count, geometry):
    """x and y are planes of `size` and `count`, flat."""
    kh, kw, sh, sw, ph, pw, dh, dw = geometry
    height, width = size
    rows, columns = count
    if _is_2x2(size, count, geometry):
        for line_of_windows in range(start * rows, stop * rows):
            plane, row = line_of_windows // rows, line_of_windows % rows
            top = (plane * height + 2 * row) * width
            window = line_of_windows * columns
            for k in range(0, columns, LANES):
                first = top + 2 * k
                store_max(y, window + k, x, first, first + width, columns - k)
        return
    line = np.full(max((columns - 1) * sw + (kw - 1) * dw + 1, width + pw), _LOWEST)
    for plane in range(start, stop):
        for row in range(rows):
            for j in range(width):
                line[_at(pw + j)] = _LOWEST
            for i in range(kh):
                place = row * sh - ph + i * dh
                if 0 <= place < height:
                    _take_larger(line, pw, width, x, (plane * height + place) * width, 1)
            target = (plane * rows + row) * columns
            for j in range(columns):
                y[_at(target + j)] = line[_at(j * sw)]
            for j in range(1, kw):
                if sw == 1:
                    _take_larger(y, target, columns, line, j * dw, 1)
                elif sw == 2:
                    _take_larger(y, target, columns, line, j * dw, 2)
                else:
                    _take_larger(y, target, columns, line, j * dw, sw)


@loop
def _inside(first, kernel, dilation, size):
    """The places of a window that lie in the input: from, to."""
    if first >= 0 and first + (kernel - 1) * dilation < size:
        return 0, kernel
    last = (size - 1 - first) // dilation
    return max(0, (dilation - 1 - first) // dilation), min(kernel, last + 1)


@kernel
def max_pool_backward(start, stop, g, x, y, gx, size, count, geometry):
    """Each window's g at the place of its maximum, added up; planes of `size` and `count`, flat.

    Of equal values the first has it, of NaNs the last.
    """
    kh, kw, sh, sw, ph, pw, dh, dw = geometry
    height, width = size
    rows, columns = count
    is_2x2 = _is_2x2(size, count, geometry)
    all_are_in_a_window = is_2x2 and 2 * rows == height and 2 * columns == width
    for plane in range(start, stop):
        if not all_are_in_a_window:
            gx[plane * height * width : (plane + 1) * height * width] = 0
        for row in range(rows):
            if is_2x2:
                top = (plane * height + 2 * row) * width
                window = (plane * rows + row) * columns
                for k in range(0, columns, LANES):
                    first = top + 2 * k
                    store_gradient(gx, g, window + k, x, first, first + width, columns - k)
                continue
            line = row * sh - ph
            top, bottom = _inside(line, kh, dh, height)
            corner = (plane * height + line) * width
            for column in range(columns):
                place = column * sw - pw
                left, right = _inside(place, kw, dw, width)
                window = (plane * rows + row) * columns + column
                largest, winner = y[_at(window)], -1
                for i in range(top, bottom):
                    for j in range(left, right):
                        spot = corner + place + i * dh * width + j * dw
                        value = x[_at(spot)]
                        wins = (value == largest) & (winner < 0) | (value != value)
                        winner = spot if wins else winner
                if winner >= 0:  # a window in the padding has no maximum
                    gx[_at(winner)] += g[_at(window)]
