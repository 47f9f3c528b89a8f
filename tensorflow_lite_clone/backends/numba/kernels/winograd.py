"""The transforms of `convolution_winograd`, for some channels at a time.

A block of channels of a piece is copied so that they lie side by side: every step after that is a
loop over them. Its arrays have places that are known when it is compiled, so that it needs no test
of whether they overlap, and is vectorised.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import kernel, loop

_LANES = 16
_WIDE = 64  # channels of a block
_f = np.float32
# The points are 0, a, -a, b, -b and infinity with a = 3/4, b = 3/2.
_A, _A2, _A3 = _f(3 / 4), _f(9 / 16), _f(27 / 64)
_B, _B2, _B3 = _f(3 / 2), _f(9 / 4), _f(27 / 8)
_A2B2, _SUM = _f(81 / 64), _f(45 / 16)  # a^2 b^2, a^2 + b^2
_HALF, _QUARTER = _f(1 / 2), _f(1 / 4)
_EA, _OA, _PA = _f(9 / 8), _f(27 / 32), _f(3 / 8)  # b^2 / 2, a b^2 / 2, a / 2
_EB, _OB = _f(9 / 64), _f(27 / 128)  # a^2 / 4, a^2 b / 4
_ZERO = _f(0)
# Unsigned: with signed places Numba would look for negative ones, which count from the end.
_unsigned = np.uintp
_N, _4N, _6N = np.uintp(_WIDE), np.uintp(4 * _WIDE), np.uintp(6 * _WIDE)
_FOUR, _SIX, _POINTS = np.uintp(4), np.uintp(6), np.uintp(36)


@loop
def _six(source, i, stride):
    """Six numbers, `stride` apart."""
    second = i + stride
    third = second + stride
    fourth = third + stride
    fifth = fourth + stride
    return (source[i], source[second], source[third], source[fourth], source[fifth],
            source[fifth + stride])  # fmt: skip


@loop
def _seen(target, to, step, source, start, stride):
    """Six numbers of a tile, at the points."""
    for k in range(_N):
        d0, d1, d2, d3, d4, d5 = _six(source, start + k, stride)
        j = to + k
        target[j] = _A2B2 * d0 - _SUM * d2 + d4
        even, odd = _HALF * d4 - _EA * d2, _PA * d3 - _OA * d1
        j += step
        target[j] = even + odd
        j += step
        target[j] = even - odd
        even, odd = _QUARTER * d4 - _EB * d2, _PA * d3 - _OB * d1
        j += step
        target[j] = even + odd
        j += step
        target[j] = even - odd
        j += step
        target[j] = _A2B2 * d1 - _SUM * d3 + d5


@loop
def _upstream(target, to, step, source, start, stride):
    """The gradients of four results, at the points."""
    for k in range(_N):
        i = start + k
        second = i + stride
        third = second + stride
        g0, g1, g2, g3 = source[i], source[second], source[third], source[third + stride]
        j = to + k
        target[j] = g0
        even, odd = g0 + _A2 * g2, _A * g1 + _A3 * g3
        j += step
        target[j] = even + odd
        j += step
        target[j] = even - odd
        even, odd = g0 + _B2 * g2, _B * g1 + _B3 * g3
        j += step
        target[j] = even + odd
        j += step
        target[j] = even - odd
        j += step
        target[j] = g3


@loop
def _made(target, to, step, source, start, stride):
    """Four results of a tile, from sums at the points."""
    for k in range(_N):
        m0, m1, m2, m3, m4, m5 = _six(source, start + k, stride)
        even, odd, far, further = m1 + m2, m1 - m2, m3 + m4, m3 - m4
        j = to + k
        target[j] = m0 + even + far
        j += step
        target[j] = _A * odd + _B * further
        j += step
        target[j] = _A2 * even + _B2 * far
        j += step
        target[j] = _A3 * odd + _B3 * further + m5


@loop
def _gathered(lines, x, channel, number, row, column, high, wide):
    """Copy channels of x (channels, height, width), from a place on that may be outside, to lines
    (high, wide, 64)."""
    h, w = x.shape[1:]
    lines[: high * wide * _WIDE] = _ZERO
    left, right = max(-column, 0), min(w - column, wide)
    for first in range(0, number, _LANES):
        for i in range(max(-row, 0), min(h - row, high)):
            for k in range(first, min(first + _LANES, number)):
                source = x[channel + k, row + i, column + left : column + right]
                place = (i * wide + left) * _WIDE + k
                for j in range(source.size):
                    lines[place + j * _WIDE] = source[j]


@loop
def _spread(v, place, stride, points, number):
    """Write some channels at all points to v, where those of a point are `stride` apart."""
    for k in range(_POINTS):
        source, target = k * _N, place + k * stride
        for n in range(number):
            v[target + n] = points[source + n]


@loop
def _collected(points, v, place, stride, number):
    """The opposite of `_spread`."""
    for k in range(_POINTS):
        target, source = k * _N, place + k * stride
        for n in range(number):
            points[target + n] = v[source + n]


@kernel
def values(start, stop, x, v, corner, tiles, of_results):
    """Write a piece of x (images from `start` to `stop`, channels, height, width) at the points.

    v is (36, tiles down and along, images, channels), flat; points along the last axis come first.
    The piece starts at `corner`. It is one of gradients of results if `of_results`.
    """
    down, along = tiles
    margin = 0 if of_results else 2
    high, wide = 4 * down + margin, 4 * along + margin
    images, channels = x.shape[:2]
    lines = np.empty(high * wide * _WIDE, np.float32)
    middle, points = np.empty(36 * _WIDE, np.float32), np.empty(36 * _WIDE, np.float32)
    stride, line = _unsigned(down * along * images * channels), _unsigned(wide * _WIDE)
    for image in range(start, stop):
        for channel in range(0, channels, _WIDE):
            number = min(_WIDE, channels - channel)
            _gathered(lines, x[image], channel, number, corner[0], corner[1], high, wide)
            for i in range(down):
                for j in range(along):
                    tile = _unsigned((4 * i * wide + 4 * j) * _WIDE)
                    if of_results:
                        for k in range(_FOUR):
                            _upstream(middle, k * _N, _4N, lines, tile + k * _N, line)
                        for k in range(_SIX):
                            _upstream(points, k * _N, _6N, middle, k * _4N, _N)
                    else:
                        for k in range(_SIX):
                            _seen(middle, k * _N, _6N, lines, tile + k * _N, line)
                        for k in range(_SIX):
                            _seen(points, k * _N, _6N, middle, k * _6N, _N)
                    place = ((i * along + j) * images + image) * channels + channel
                    _spread(v, _unsigned(place), stride, points, _unsigned(number))


@kernel
def results(start, stop, sums, bias, y, corner, tiles):
    """Write what sums (36, tiles down and along, images, channels) make to a piece of y (images,
    channels, height, width), which starts at `corner`."""
    row, column = corner
    down, along = tiles
    high, wide = 4 * down, 4 * along
    images, channels, h, w = y.shape
    lines = np.empty(high * wide * _WIDE, np.float32)
    middle, points = np.empty(24 * _WIDE, np.float32), np.zeros(36 * _WIDE, np.float32)
    stride, line = _unsigned(down * along * images * channels), _unsigned(wide * _WIDE)
    for image in range(start, stop):
        for channel in range(0, channels, _WIDE):
            number = min(_WIDE, channels - channel)
            for i in range(down):
                for j in range(along):
                    place = ((i * along + j) * images + image) * channels + channel
                    _collected(points, sums, _unsigned(place), stride, _unsigned(number))
                    for k in range(_SIX):
                        _made(middle, k * _N, _6N, points, k * _N, _6N)
                    tile = _unsigned((4 * i * wide + 4 * j) * _WIDE)
                    for k in range(_FOUR):
                        _made(lines, tile + k * _N, line, middle, k * _6N, _N)
            for part in range(0, number, _LANES):
                for i in range(min(high, h - row)):
                    for k in range(part, min(part + _LANES, number)):
                        b = bias[channel + k]
                        target = y[image, channel + k, row + i, column : min(column + wide, w)]
                        source = i * wide * _WIDE + k
                        for j in range(target.size):
                            target[j] = lines[source + j * _WIDE] + b
