"""The cross-entropy of rows with a class index each."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import (
    Compilation,
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.dispatch.table import min_sizes

_kernels = Kernels("losses")
_compilation = Compilation()  # of both: the gradient's first array is a number


def _is_plain(x: np.ndarray, target: np.ndarray, weight: Any, smoothing: float) -> bool:
    """Whether rows of classes have an index each, without weights and smoothing, all in range or
    negative: the kernels do not look at them again."""
    return (
        weight is None
        and not smoothing
        and x.ndim == 2
        and target.dtype.char == "l"
        and np.maximum.reduce(target, None) < x.shape[1]
    )


@compiled("cross_entropy", least=1 << 10, compilation=_compilation)
def cross_entropy(
    x: np.ndarray,
    target: np.ndarray,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    if not _is_plain(x, target, weight, smoothing) or not _allowed(target, ignore_index):
        return NotImplemented
    losses, lse = np.empty(len(x), x.dtype), np.empty(len(x), x.dtype)
    run(_kernels.cross_entropy, *x.shape, x, target, ignore_index, losses, lse)
    if reduction == "none":
        return losses, lse
    loss = np.add.reduce(losses)
    return (loss / _count(target, ignore_index) if reduction == "mean" else loss), lse


def _allowed(target: np.ndarray, ignore_index: int) -> bool:
    """Whether negative targets are those to be ignored."""
    least = np.minimum.reduce(target, None)
    return bool(least >= 0 or np.all((target >= 0) | (target == ignore_index)))


def _count(target: np.ndarray, ignore_index: int) -> np.float32:
    return np.float32(np.count_nonzero(target != ignore_index))


@compiled("cross_entropy_backward", least=1, compilation=_compilation)
def cross_entropy_backward(
    g: np.ndarray,
    x: np.ndarray,
    lse: np.ndarray,
    target: np.ndarray,
    weight: Any,
    *,
    axis: int,
    reduction: str,
    ignore_index: int,
    smoothing: float,
) -> Any:
    large = x.size >= min_sizes["cross_entropy", "numba"] and row_major(x, lse)
    if not large or not _is_plain(x, target, weight, smoothing):
        return NotImplemented
    if reduction == "mean":
        g = g / _count(target, ignore_index)
    gx = np.empty_like(x)
    scale = np.broadcast_to(g, lse.shape).copy()
    run(_kernels.cross_entropy_backward, *x.shape, scale, x, lse, target, ignore_index, gx)
    return gx
