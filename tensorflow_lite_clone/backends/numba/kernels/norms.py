"""Norms of rows, groups and channels, and their gradients.

Means are taken first and variances from what is left, so that nothing cancels. The mean of what
is left is what the sum was rounded by: it corrects both, as in Chan, Golub and LeVeque, "Algorithms
for computing the sample variance" (1983).
"""

from __future__ import annotations

import math

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.jit import kernel, loop

_f = np.float32
_ZERO = _f(0)


@loop
def _rate(squares, count, eps):
    """1 / sqrt(variance + eps)."""
    return _f(1 / math.sqrt(squares / count + eps))


@loop
def _less(squares, rest, count):
    """The sum of squares around the mean, from that around a number that is off by rest / count."""
    return max(squares - rest * rest / count, 0.0)


@loop
def _left(squares, rest, count):
    """What a mean is off by; nothing where it is infinite, as the sums are NaN then."""
    return _f(rest / count) if squares == squares else _ZERO


@kernel
def layer_norm(start, stop, x, w, b, eps, y, mean, rstd):
    columns = x.shape[1]
    for i in range(start, stop):
        total = _ZERO
        for j in range(columns):
            total += x[i, j]
        middle = _f(total / columns)
        squares, rest = _ZERO, _ZERO
        for j in range(columns):
            d = x[i, j] - middle
            squares += d * d
            rest += d
        rate = _rate(_less(squares, rest, columns), columns, eps)
        middle += _left(squares, rest, columns)
        for j in range(columns):
            y[i, j] = (x[i, j] - middle) * rate * w[j] + b[j]
        mean[i] = middle
        rstd[i] = rate


@kernel
def layer_norm_backward(start, stop, g, x, w, mean, rstd, gx, sums):
    """`sums` (2, parts, columns), of zeros, receives parts of the weights' and bias' gradients."""
    rows, columns = x.shape
    parts = sums.shape[1]
    for part in range(start, stop):
        slopes, shifts = sums[0, part], sums[1, part]
        for i in range(rows * part // parts, rows * (part + 1) // parts):
            middle, rate = mean[i], rstd[i]
            shift, slope = _ZERO, _ZERO
            for j in range(columns):
                z = (x[i, j] - middle) * rate
                slopes[j] += g[i, j] * z
                shifts[j] += g[i, j]
                h = g[i, j] * w[j]
                shift += h
                slope += h * z
            shift, slope = _f(shift / columns), _f(slope / columns)
            for j in range(columns):
                z = (x[i, j] - middle) * rate
                gx[i, j] = (g[i, j] * w[j] - shift - z * slope) * rate


@kernel
def rms_norm(start, stop, x, w, eps, y, scale):
    columns = x.shape[1]
    for i in range(start, stop):
        squares = _ZERO
        for j in range(columns):
            squares += x[i, j] * x[i, j]
        rate = _rate(squares, columns, eps)
        for j in range(columns):
            y[i, j] = x[i, j] * rate * w[j]
        scale[i] = rate


@kernel
def rms_norm_backward(start, stop, g, x, w, scale, gx, sums):
    """`sums` (parts, columns), of zeros, receives parts of the weights' gradient."""
    rows, columns = x.shape
    parts = sums.shape[0]
    for part in range(start, stop):
        slopes = sums[part]
        for i in range(rows * part // parts, rows * (part + 1) // parts):
            rate = scale[i]
            slope = _ZERO
            for j in range(columns):
                product = g[i, j] * (x[i, j] * rate)
                slopes[j] += product
                slope += product * w[j]
            slope = _f(slope / columns)
            for j in range(columns):
                gx[i, j] = (g[i, j] * w[j] - x[i, j] * rate * slope) * rate


@loop
def _total(x, i, j):
    total = _ZERO
    for k in range(x.shape[2]):
        total += x[i, j, k]
    return total


@loop
def _squares(x, i, j, middle):
    """The sums of (x - mean)^2 and of x - mean over a line."""
    squares, rest = _ZERO, _ZERO
    for k in range(x.shape[2]):
        d = x[i, j, k] - middle
        squares += d * d
        rest += d
    return squares, rest


@loop
def _gradient_sums(g, x, i, j, middle):
    """The sums of g and of g (x - mean) over a line."""
    shift, slope = _ZERO, _ZERO
    for k in range(x.shape[2]):
        shift += g[i, j, k]
        slope += g[i, j, k] * (x[i, j, k] - middle)
    return shift, slope


@kernel
def group_norm(start, stop, x, w, b, eps, y, mean, rstd):
    """x (samples and groups, channels of a group, space); sums of many lines are in float64."""
    channels, size = x.shape[1:]
    groups = w.size // channels
    for i in range(start, stop):
        total = 0.0
        for j in range(channels):
            total += _total(x, i, j)
        middle = _f(total / (channels * size))
        squares, rest = 0.0, 0.0
        for j in range(channels):
            found, left = _squares(x, i, j, middle)
            squares += found
            rest += left
        rate = _rate(_less(squares, rest, channels * size), channels * size, eps)
        middle += _left(squares, rest, channels * size)
        for j in range(channels):
            channel = i % groups * channels + j
            scale, shift = rate * w[channel], b[channel]
            for k in range(size):
                y[i, j, k] = (x[i, j, k] - middle) * scale + shift
        mean[i] = middle
        rstd[i] = rate


@kernel
def group_norm_backward(start, stop, g, x, w, mean, rstd, gx, sums):
    """`sums` (2, rows, channels) receives what samples add to the weights' and bias' gradients."""
    channels, size = x.shape[1:]
    groups = w.size // channels
    for i in range(start, stop):
        middle, rate = mean[i], rstd[i]
        shift, slope = 0.0, 0.0
        for j in range(channels):
            part, product = _gradient_sums(g, x, i, j, middle)
            product *= rate
            sums[0, i, j] = product
            sums[1, i, j] = part
            factor = w[i % groups * channels + j]
            shift += part * factor
            slope += product * factor
        low = _f(shift / (channels * size))
        steep = _f(slope / (channels * size)) * rate
        for j in range(channels):
            factor = w[i % groups * channels + j]
            for k in range(size):
                d = x[i, j, k] - middle
                gx[i, j, k] = (g[i, j, k] * factor - low - d * steep) * rate


@kernel
def batch_norm(start, stop, x, w, b, eps, y, mean, variance):
    samples, size = len(x), x.shape[2]
    for j in range(start, stop):
        total = 0.0
        for i in range(samples):
            total += _total(x, i, j)
        middle = _f(total / (samples * size))
        squares, rest = 0.0, 0.0
        for i in range(samples):
            found, left = _squares(x, i, j, middle)
            squares += found
            rest += left
        middle += _left(squares, rest, samples * size)
        squares = _less(squares, rest, samples * size)
        scale = _rate(squares, samples * size, eps) * w[j]
        shift = b[j]
        for i in range(samples):
            for k in range(size):
                y[i, j, k] = (x[i, j, k] - middle) * scale + shift
        mean[j] = middle
        variance[j] = squares / (samples * size)


@kernel
def batch_norm_backward(start, stop, g, x, w, mean, variance, eps, gx, gw, gb):
    samples, size = len(x), x.shape[2]
    count = samples * size
    for j in range(start, stop):
        middle = mean[j]
        shift, slope = 0.0, 0.0
        for i in range(samples):
            part, product = _gradient_sums(g, x, i, j, middle)
            shift += part
            slope += product
        rate = 1 / math.sqrt(variance[j] + eps)
        gw[j] = slope * rate
        gb[j] = shift
        low, steep, scale = _f(shift / count), _f(slope / count * rate * rate), _f(rate * w[j])
        for i in range(samples):
            for k in range(size):
                gx[i, j, k] = (g[i, j, k] - low - (x[i, j, k] - middle) * steep) * scale


@kernel
def batch_norm_eval(start, stop, x, w, b, mean, variance, eps, y):
    """x (samples and channels, space)."""
    size, channels = x.shape[1], w.size
    for i in range(start, stop):
        j = i % channels
        middle, shift = mean[j], b[j]
        scale = _f(1 / math.sqrt(variance[j] + eps)) * w[j]
        for k in range(size):
            y[i, k] = (x[i, k] - middle) * scale + shift
