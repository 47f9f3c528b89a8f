"""Depthwise convolutions, a plane at a time, which is copied into zeros first."""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import kernel, loop

_ZERO = np.float32(0)


@loop
def _small(source, w, bias, target):
    """Windows of 3 x 3 side by side."""
    a, b, c = w[0, 0], w[0, 1], w[0, 2]
    d, e, f = w[1, 0], w[1, 1], w[1, 2]
    g, h, i = w[2, 0], w[2, 1], w[2, 2]
    for row in range(target.shape[0]):
        top, middle, low, line = source[row], source[row + 1], source[row + 2], target[row]
        for j in range(line.size):
            line[j] = (
                bias
                + (a * top[j] + b * top[j + 1] + c * top[j + 2])
                + (d * middle[j] + e * middle[j + 1] + f * middle[j + 2])
                + (g * low[j] + h * low[j + 1] + i * low[j + 2])
            )


@loop
def _add(line, factor, seen, step):
    for j in range(line.size):
        line[j] += factor * seen[j * step]


@kernel
def conv(start, stop, x, w, bias, y, geometry):
    """x and y (samples and channels, height, width), w (channels, height, width)."""
    sh, sw, ph, pw, dh, dw = geometry
    channels, kh, kw = w.shape
    height, width = x.shape[1:]
    padded = np.zeros((height + 2 * ph, width + 2 * pw), np.float32)
    small = kh == kw == 3 and sh == sw == dh == dw == 1
    for plane in range(start, stop):
        channel = plane % channels
        padded[ph : ph + height, pw : pw + width] = x[plane]
        if small:
            _small(padded, w[channel], bias[channel], y[plane])
            continue
        for row in range(y.shape[1]):
            line = y[plane, row]
            line[:] = bias[channel]
            for i in range(kh):
                for j in range(kw):
                    seen = padded[row * sh + i * dh][j * dw :]
                    if sw == 1:
                        _add(line, w[channel, i, j], seen, 1)
                    else:
                        _add(line, w[channel, i, j], seen, sw)


@kernel
def conv_backward_weight(start, stop, g, x, gw, geometry):
    """g and x (samples, channels, height, width), gw (channels, height, width).

    Between lines of the padded width, a place of the window sees the plane as one line, shifted:
    its gradient is a scalar product, for which what is too much of g is zero.
    """
    ph, pw, dh, dw = geometry
    height, width = x.shape[2:]
    rows, columns = g.shape[2:]
    wide = width + 2 * pw
    padded = np.zeros((height + 2 * ph, wide), np.float32)
    upstream = np.zeros((rows, wide), np.float32)
    length = (rows - 1) * wide + columns
    slopes = upstream.reshape(rows * wide)[:length]
    values = padded.reshape((height + 2 * ph) * wide)
    for channel in range(start, stop):
        gw[channel] = 0
        for sample in range(len(x)):
            padded[ph : ph + height, pw : pw + width] = x[sample, channel]
            upstream[:, :columns] = g[sample, channel]
            for i in range(gw.shape[1]):
                for j in range(gw.shape[2]):
                    seen = values[i * dh * wide + j * dw :]
                    total = _ZERO
                    for k in range(length):
                        total += slopes[k] * seen[k]
                    gw[channel, i, j] += total
