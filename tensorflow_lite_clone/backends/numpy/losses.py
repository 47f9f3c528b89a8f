"""The usual cross-entropy on the CPU, with no pass and no array that is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.table import override


def _is_plain(x: Any, target: Any, weight: Any, ignore_index: int, smoothing: float) -> bool:
    """Whether rows have a class index each, none of them ignored, weighted or smoothed."""
    return (
        weight is None
        and not smoothing
        and x.ndim == 2
        and x.itemsize > 2
        and target.size > 0
        and not 0 <= ignore_index < x.shape[1]
        # As unsigned numbers, negative (ignored or wrong) ones are too large.
        and np.maximum.reduce(target.view(np.uint64), None) < x.shape[1]
    )


@override("cross_entropy", backend="numpy")
def cross_entropy(
    F: Any,
    x: Any,
    target: Any,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    if not _is_plain(x, target, weight, ignore_index, smoothing):
        return NotImplemented
    count = x.shape[0]
    rows = np.arange(count)
    lse = x[rows, x.argmax(1)]  # faster than the maximum
    y = x - lse[:, None]
    picked = y[rows, target]
    np.exp(y, y)
    loss = np.add.reduce(y, 1)
    np.log(loss, loss)
    lse += loss
    loss -= picked
    if reduction == "none":
        return loss, lse
    loss = np.add.reduce(loss)
    return (loss / count if reduction == "mean" else loss), lse


@override("cross_entropy_backward", backend="numpy")
def cross_entropy_backward(
    F: Any,
    g: Any,
    x: Any,
    lse: Any,
    target: Any,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    if not _is_plain(x, target, weight, ignore_index, smoothing):
        return NotImplemented
    gx = x - lse[:, None]
    np.exp(gx, gx)
    gx[np.arange(len(gx)), target] -= 1
    if reduction == "none":
        gx *= g[:, None]
    else:
        gx *= g / len(gx) if reduction == "mean" else g
    return gx
