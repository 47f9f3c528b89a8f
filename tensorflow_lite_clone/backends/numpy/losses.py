"""The usual cross-entropy on the CPU, with no pass and no array that is not needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy import small_inputs
from tensorflow_lite_clone.backends.numpy.blocks import row_blocks
from tensorflow_lite_clone.backends.numpy.softmax import MOST_FOR_LOGS, exponentials
from tensorflow_lite_clone.backends.numpy.statistics import row_sums
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.dispatch.table import override


def _is_plain(x: Any, target: Any, weight: Any, ignore_index: int, smoothing: float) -> bool:
    """Whether rows have a class index each, none of them ignored, weighted or smoothed."""
    return (
        weight is None
        and not smoothing
        and x.ndim == 2
        and x.shape[1] > 1  # of one class it is known exactly
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
    if weight is None and not smoothing and x.ndim == 2:
        result = small_inputs.cross_entropy(x, target, reduction, ignore_index)
        if result is not NotImplemented:
            return result
    if not _is_plain(x, target, weight, ignore_index, smoothing):
        return NotImplemented
    count, classes = x.shape
    rows = np.arange(count)
    if x.size < tuning.small_elementwise:
        lse = x[rows, x.argmax(1)]  # faster than the maximum
        y = x - lse[:, None]
        picked = y[rows, target]
        np.exp(y, y)
        loss = np.add.reduce(y, 1)
        np.log(loss, loss)
        lse += loss
        loss -= picked
    else:
        logs, tops = _log_sums(x)
        loss = logs - (x[rows, target] - tops)
        np.maximum(loss, 0, out=loss)  # what is rounded may be less
        lse = logs + tops
    if reduction == "none":
        return loss, lse
    loss = np.add.reduce(loss)
    return (loss / count if reduction == "mean" else loss), lse


def _log_sums(x: Any) -> tuple[Any, Any]:
    """The logarithms of the sums of exp(x - t) of each row of a matrix, and t."""
    count, classes = x.shape
    logs, tops = np.zeros((2, count), x.dtype)

    def work(start: int, stop: int) -> None:
        with workspace((stop - start) * classes, x.dtype) as memory:
            y = memory.reshape(stop - start, classes)
            sums, top = exponentials(x[start:stop], y, MOST_FOR_LOGS)
        np.log(sums, logs[start:stop])
        if top is not None:
            tops[start:stop] = top[:, 0]

    row_blocks(work, count, classes, products=True)
    return logs, tops


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
    scale = g / count if reduction == "mean" else g
    gx = np.empty((count, classes), x.dtype)
    # exp(x) exp(-lse) saves the difference, where neither overflows: x is lse at most.
    direct = np.maximum.reduce(lse) <= 80 and np.minimum.reduce(lse) >= -8

    def work(start: int, stop: int) -> None:
        part, total = gx[start:stop], lse[start:stop]
        share = scale[start:stop] if reduction == "none" else scale
        if direct:
            np.exp(x[start:stop], part)
            np.multiply(part, (np.exp(-total) * share)[:, None], part)
        else:
            np.subtract(x[start:stop], total[:, None], part)
            np.exp(part, part)
            # A large sum's logarithm is rounded; the exponentials' own sum tells by how much.
            np.multiply(part, (share / row_sums(part))[:, None], part)
        places = np.arange(0, part.size, classes)
        places += target[start:stop]
        part.reshape(-1)[places] -= share

    row_blocks(work, count, classes, products=True)
    return gx
