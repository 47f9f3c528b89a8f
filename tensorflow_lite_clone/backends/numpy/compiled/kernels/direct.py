"""Convolutions with windows of 3 x 3 side by side, two outputs at a time.

A few padded images of a channel, one after the other, are one line, of which each place of the
window sees a part: one loop along the line does all pixels. The padding after a row is that before
the next one, and so it is with images. What the loop computes there is left out. Lines are as long
as whole turns of the vectorised loop need.
"""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.kernels.jit import kernel, loop

_ZERO = np.float32(0)
_TURN = 64  # elements that a turn of a loop over float32 takes
# Unsigned: with signed places Numba would look for negative ones, which count from the end.
_unsigned = np.uintp
_ONE, _TWO = np.uintp(1), np.uintp(2)


@loop
def _length(images, plane, wide, rows, columns):
    used = (images - 1) * plane + (rows - 1) * wide + columns
    return (used + _TURN - 1) // _TURN * _TURN


@loop
def _put(lines, x, image, plane, wide, ph, pw):
    """Write an image's channels into their lines; the padding between stays zero."""
    for channel in range(x.shape[0]):
        for row in range(x.shape[1]):
            place = image * plane + (row + ph) * wide + pw
            source, target = x[channel, row], lines[channel, place : place + x.shape[2]]
            for j in range(source.size):
                target[j] = source[j]


@kernel
def conv(start, stop, x, w, bias, y, group, padding):
    """Of the lines from `start` to `stop`, of `group` images each; x and y (images, channels,
    height, width), w (outputs, channels, 3, 3)."""
    ph, pw = padding
    outputs, channels = w.shape[:2]
    rows, columns = y.shape[2:]
    wide = x.shape[3] + pw
    plane = (x.shape[2] + ph) * wide
    most = _length(group, plane, wide, rows, columns)
    lines = np.zeros((channels, most + 2 * wide + 2), np.float32)
    sums = np.empty((2, most), np.float32)
    first_sum, second_sum = sums[0], sums[1]
    second, third = _unsigned(wide), _unsigned(2 * wide)
    for image in range(start * group, min(stop * group, len(x)), group):
        images = min(group, len(x) - image)
        length = _unsigned(_length(images, plane, wide, rows, columns))
        for i in range(images):
            _put(lines, x[image + i], i, plane, wide, ph, pw)
        for output in range(0, outputs, 2):
            other = min(output + 1, outputs - 1)
            first_sum[:] = bias[output]
            second_sum[:] = bias[other]
            for channel in range(channels):
                line, v, z = lines[channel], w[output, channel], w[other, channel]
                va, vb, vc = v[0, 0], v[0, 1], v[0, 2]
                vd, ve, vf = v[1, 0], v[1, 1], v[1, 2]
                vg, vh, vi = v[2, 0], v[2, 1], v[2, 2]
                za, zb, zc = z[0, 0], z[0, 1], z[0, 2]
                zd, ze, zf = z[1, 0], z[1, 1], z[1, 2]
                zg, zh, zi = z[2, 0], z[2, 1], z[2, 2]
                for j in range(length):
                    a, b, c = line[j], line[j + _ONE], line[j + _TWO]
                    k = j + second
                    d, e, f = line[k], line[k + _ONE], line[k + _TWO]
                    k = j + third
                    g, h, i = line[k], line[k + _ONE], line[k + _TWO]
                    first_sum[j] += (
                        (va * a + vb * b + vc * c)
                        + (vd * d + ve * e + vf * f)
                        + (vg * g + vh * h + vi * i)
                    )
                    second_sum[j] += (
                        (za * a + zb * b + zc * c)
                        + (zd * d + ze * e + zf * f)
                        + (zg * g + zh * h + zi * i)
                    )
            for i in range(images):
                for which in range(1 + other - output):
                    for row in range(rows):
                        place = i * plane + row * wide
                        source = sums[which, place : place + columns]
                        target = y[image + i, output + which, row]
                        for j in range(columns):
                            target[j] = source[j]


@kernel
def conv_backward_weight(start, stop, g, x, gw, group, padding):
    """Of the pairs of outputs from `start` to `stop`; g and x (images, channels, height, width),
    gw (outputs, channels, 3, 3)."""
    ph, pw = padding
    outputs, rows, columns = g.shape[1:]
    wide = x.shape[3] + pw
    plane = (x.shape[2] + ph) * wide
    most = _length(group, plane, wide, rows, columns)
    lines = np.zeros((x.shape[1], most + 2 * wide + 2), np.float32)
    slopes = np.zeros((2, most), np.float32)  # zero between rows and images
    second, third = _unsigned(wide), _unsigned(2 * wide)
    gw[2 * start : 2 * stop] = _ZERO
    for image in range(0, len(x), group):
        images = min(group, len(x) - image)
        length = _unsigned(_length(images, plane, wide, rows, columns))
        if images < group:
            slopes[:] = _ZERO
        for i in range(images):
            _put(lines, x[image + i], i, plane, wide, ph, pw)
        for pair in range(start, stop):
            output = 2 * pair
            other = min(output + 1, outputs - 1)
            for i in range(images):
                _put(slopes[:1], g[image + i, output : output + 1], i, plane, wide, 0, 0)
                _put(slopes[1:], g[image + i, other : other + 1], i, plane, wide, 0, 0)
            first, last = slopes[0], slopes[1]
            for channel in range(x.shape[1]):
                line = lines[channel]
                va = vb = vc = vd = ve = vf = vg = vh = vi = _ZERO
                za = zb = zc = zd = ze = zf = zg = zh = zi = _ZERO
                for j in range(length):
                    v, z = first[j], last[j]
                    a, b, c = line[j], line[j + _ONE], line[j + _TWO]
                    k = j + second
                    d, e, f = line[k], line[k + _ONE], line[k + _TWO]
                    k = j + third
                    o, p, q = line[k], line[k + _ONE], line[k + _TWO]
                    va, vb, vc = va + v * a, vb + v * b, vc + v * c
                    vd, ve, vf = vd + v * d, ve + v * e, vf + v * f
                    vg, vh, vi = vg + v * o, vh + v * p, vi + v * q
                    za, zb, zc = za + z * a, zb + z * b, zc + z * c
                    zd, ze, zf = zd + z * d, ze + z * e, zf + z * f
                    zg, zh, zi = zg + z * o, zh + z * p, zi + z * q
                _add(gw[output, channel], va, vb, vc, vd, ve, vf, vg, vh, vi)
                if other > output:
                    _add(gw[other, channel], za, zb, zc, zd, ze, zf, zg, zh, zi)


@loop
def _add(target, a, b, c, d, e, f, g, h, i):
    target[0, 0] += a
    target[0, 1] += b
    target[0, 2] += c
    target[1, 0] += d
    target[1, 1] += e
    target[1, 2] += f
    target[2, 0] += g
    target[2, 1] += h
    target[2, 2] += i
