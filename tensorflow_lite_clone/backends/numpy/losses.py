"""The usual cross-entropy on the CPU, with no pass and no array that is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.dispatch.table import override


def _is_plain(y: Any, target: Any, weight: Any, ignore_index: int, smoothing: float) -> bool:
    """Whether rows have a class index each, none of them ignored, weighted or smoothed."""
    return (
        weight is None
        and not smoothing
        and y.ndim == 2
        and y.itemsize > 2
        and target.size > 0
        and not 0 <= ignore_index < y.shape[1]
        # As unsigned numbers, negative (ignored or wrong) ones are too large.
        and np.maximum.reduce(target.view(np.uint64), None) < y.shape[1]
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
    y = x - x[rows, x.argmax(1)][:, None]  # faster than the maximum
    picked = y[rows, target]
    np.exp(y, y)
    loss = np.add.reduce(y, 1)
    y /= loss[:, None]
    np.log(loss, loss)
    loss -= picked
    if reduction == "none":
        return loss, y
    loss = np.add.reduce(loss)
    return (loss / count if reduction == "mean" else loss), y


@override("cross_entropy_backward", backend="numpy")
def cross_entropy_backward(
    F: Any,
    g: Any,
    y: Any,
    target: Any,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    if not _is_plain(y, target, weight, ignore_index, smoothing):
        return NotImplemented
    if reduction == "none":
        gx = y * g[:, None]
    else:
        g = g / len(y) if reduction == "mean" else g
        gx = y * g
    gx[np.arange(len(y)), target] -= g
    return gx
