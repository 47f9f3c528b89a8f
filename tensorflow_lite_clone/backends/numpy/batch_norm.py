"""Batch normalisation on the CPU: sums in one pass each, and x * scale + shift in two."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.statistics import (
    channel_sums,
    combined,
    is_plain,
    is_safe,
    scaled,
)
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.table import override


def _channels(x: Any) -> Any:
    return x.reshape(x.shape[0], x.shape[1], prod(x.shape[2:]))


def _normalized(x: Any, rows: Any, w: Any, b: Any, mean: Any, variance: Any, eps: float) -> Any:
    scale = 1 / np.sqrt(variance + eps)
    if w is not None:
        scale = scale * w
    shift = -mean * scale
    if b is not None:
        shift = shift + b
    return scaled(rows, scale, shift, x.shape)


@override("batch_norm", backend="numpy")
def batch_norm(
    F: Any,
    x: Any,
    w: Any,
    b: Any,
    running_mean: Any,
    running_var: Any,
    *,
    momentum: float,
    eps: float,
) -> Any:
    if x.size < tuning.small_normalization or not is_plain(x, w, b):
        return NotImplemented
    rows = _channels(x)
    count = x.size // x.shape[1]
    mean, squares = [sums / count for sums in channel_sums(rows, rows)]
    variance = squares - mean * mean
    if is_safe(mean, variance):
        y = _normalized(x, rows, w, b, mean, variance, eps)
    else:
        # The mean of what is left is what the sum was rounded by.
        mean = mean.astype(x.dtype)
        centered = rows - mean[:, None]
        rest, squares = [sums / count for sums in channel_sums(centered, centered)]
        variance = np.maximum(squares - rest * rest, 0)
        y = _normalized(x, centered, w, b, rest, variance, eps)
        mean = mean + rest
    results = [y]
    results += [mean.astype(x.dtype), variance.astype(x.dtype)]
    unbiased = variance * (count / (count - 1))
    for running, new in ((running_mean, mean), (running_var, unbiased)):
        if running is not None:
            results.append((running + (new - running) * momentum).astype(running.dtype))
    return tuple(results)


@override("batch_norm_backward", backend="numpy")
def batch_norm_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, *, eps: float, needs: tuple
) -> Any:
    if (
        x.size < tuning.small_normalization
        or mean is None
        or not is_plain(x, g, w)
        or not is_safe(mean, variance)
    ):
        return NotImplemented
    gs, rows = _channels(g), _channels(x)
    count = x.size // x.shape[1]
    mean = mean.astype(np.float64)
    r = 1 / np.sqrt(variance + np.float64(eps))
    gb, slope = channel_sums(gs, rows)
    slope -= mean * gb
    gx = None
    if needs[0]:
        a = r if w is None else r * w
        b = a * r * r * slope / -count
        gx = combined(gs, rows, a, b, a * gb / -count - b * mean, x.shape)
    return (
        gx,
        (slope * r).astype(x.dtype) if needs[1] else None,
        gb.astype(x.dtype) if needs[2] else None,
    )


@override("batch_norm_eval", backend="numpy")
def batch_norm_eval(F: Any, x: Any, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
    if x.size < tuning.small_normalization or not is_plain(x, w, b, mean, variance):
        return NotImplemented
    return _normalized(x, _channels(x), w, b, mean, variance, eps)


@override("batch_norm_eval_backward", backend="numpy")
def batch_norm_eval_backward(
    F: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, *, eps: float, needs: tuple
) -> Any:
    if (
        x.size < tuning.small_normalization
        or not is_plain(x, g, w, mean, variance)
        or not is_safe(mean, variance)
    ):
        return NotImplemented
    gs = _channels(g)
    r = 1 / np.sqrt(variance + np.float64(eps))
    gx = gw = gb = None
    if needs[0]:
        gx = scaled(gs, r if w is None else r * w, None, x.shape)
    if needs[1] or needs[2]:
        gb, slope = channel_sums(gs, _channels(x))
        gw = ((slope - mean * gb) * r).astype(x.dtype) if needs[1] else None
        gb = gb.astype(x.dtype) if needs[2] else None
    return gx, gw, gb
