"""Sliding windows over arrays, for forwards: taken out, and added back."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.backends.windows import padded_size, window_slices


def padded(F: Any, x: Any, before: tuple, total: tuple, value: Any = 0) -> Any:
    """`x` (batch, channels, *space) inside a space of size `total`, at `before`, around it `value`.

    Where `total` is too small for that, the end of `x` is left out.
    """
    size = x.shape[2:]
    if size == total and not any(before):
        return x
    result = F.full((*x.shape[:2], *total), value, dtype=x.dtype)
    inside = [slice(b, b + n) for b, n in zip(before, size)]
    kept = [slice(0, t - b) for b, t in zip(before, total)]
    result[(..., *inside)] = x[(..., *kept)]
    return result


def unfolded(
    F: Any, x: Any, count: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple
) -> Any:
    """All windows of x (batch, channels, *space): (batch, channels, *kernel, *count), a view."""
    total = padded_size(count, kernel, stride, dilation)
    total = tuple(max(t, n + p) for t, n, p in zip(total, x.shape[2:], padding))
    x = padded(F, x, padding, total)
    steps = F.backend.strides(x)
    inner = [step * d for step, d in zip(steps[2:], dilation)]
    outer = [step * s for step, s in zip(steps[2:], stride)]
    return F.as_strided(x, (*x.shape[:2], *kernel, *count), (*steps[:2], *inner, *outer))


def folded(
    F: Any,
    windows: Any,
    size: tuple,
    kernel: tuple,
    stride: tuple,
    padding: tuple,
    dilation: tuple,
) -> Any:
    """The transpose of `unfolded`: windows added up in a space of `size`."""
    count = windows.shape[2 + len(size) :]
    total = padded_size(count, kernel, stride, dilation)
    total = tuple(max(t, n + p) for t, n, p in zip(total, size, padding))
    result = F.zeros((*windows.shape[:2], *total), dtype=windows.dtype)
    for place, slices in window_slices(kernel, count, stride, dilation):
        result[(..., *slices)] += windows[(slice(None), slice(None), *place)]
    if total == tuple(size):
        return result
    inside = tuple([slice(p, p + n) for p, n in zip(padding, size)])
    return F.copy(result[(..., *inside)])
