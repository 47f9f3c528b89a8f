"""The usual cross-entropy on the CPU, with no pass and no array that is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.blocks import by_rows
from tensorflow_lite_clone.backends.numpy.scratch import scratch
from tensorflow_lite_clone.backends.numpy.softmax import MOST_FOR_LOGS, exponentials
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
    count, classes = x.shape
    picked = x[np.arange(count), target]
    lse = np.empty(count, x.dtype)

    def work(start: int, stop: int) -> None:
        with scratch((stop - start) * classes, x.dtype) as memory:
            part, y = x[start:stop], memory.reshape(stop - start, classes)
            sums, top = exponentials(part, y, MOST_FOR_LOGS)
        np.log(sums, lse[start:stop])
        if top is not None:
            lse[start:stop] += top[:, 0]

    by_rows(work, count, classes, products=True)
    loss = lse - picked
    np.maximum(loss, 0, out=loss)  # what is rounded may be less
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
    count, classes = x.shape
    if reduction == "none":
        scale = g
    else:
        scale = np.full(count, g / count if reduction == "mean" else g, x.dtype)
    gx = np.empty((count, classes), x.dtype)

    def work(start: int, stop: int) -> None:
        part, total = gx[start:stop], lse[start:stop]
        np.subtract(x[start:stop], total[:, None], part)
        np.exp(part, part)
        part[np.arange(stop - start), target[start:stop]] -= 1
        np.multiply(part, scale[start:stop, None], part)

    by_rows(work, count, classes)
    return gx
