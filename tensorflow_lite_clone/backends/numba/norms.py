"""Layer, group, RMS and batch norm and their gradients."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)

_kernels = Kernels("norms")
_LEAST = 1 << 10
LEAST_SPACE = 16  # elements of a channel that lie together
_PARTS = 8  # sums over rows are taken in so many parts, whatever the number of threads


def _or(array: np.ndarray | None, value: float, size: int) -> np.ndarray:
    """The weights or a bias as a line; where there are none what they stand for."""
    return np.full(size, value, np.float32) if array is None else array.reshape(-1)


@compiled("layer_norm", least=_LEAST)
def layer_norm(x: np.ndarray, w: Any, b: Any, *, ndim: int, eps: float) -> Any:
    if not row_major(w, b):
        return NotImplemented
    size = prod(x.shape[x.ndim - ndim :])
    rows, y = x.reshape(-1, size), np.empty_like(x)
    mean, rstd = np.empty((2, len(rows), 1), x.dtype)
    run(_kernels.layer_norm, *rows.shape, rows, _or(w, 1, size), _or(b, 0, size), eps,
        y.reshape(rows.shape), mean[:, 0], rstd[:, 0])  # fmt: skip
    return y, mean, rstd


@compiled("layer_norm_backward", least=_LEAST)
def layer_norm_backward(
    g: np.ndarray, x: np.ndarray, w: Any, mean: Any, rstd: Any, *, ndim: int, eps: float, needs: Any
) -> Any:
    if mean is None or not row_major(x, w, mean, rstd):
        return NotImplemented
    space = x.shape[x.ndim - ndim :]
    size = prod(space)
    rows, gx = x.reshape(-1, size), np.empty_like(x)
    parts = np.zeros((2, _PARTS, size), x.dtype)
    run(_kernels.layer_norm_backward, _PARTS, x.size // _PARTS, g.reshape(rows.shape), rows,
        _or(w, 1, size), mean[:, 0], rstd[:, 0], gx.reshape(rows.shape), parts)  # fmt: skip
    gw, gb = np.add.reduce(parts, 1).reshape(2, *space)
    return gx if needs[0] else None, gw if needs[1] else None, gb if needs[2] else None


@compiled("rms_norm", least=_LEAST)
def rms_norm(x: np.ndarray, w: Any, *, ndim: int, eps: float) -> Any:
    if not row_major(w):
        return NotImplemented
    lead = x.shape[: x.ndim - ndim]
    size = prod(x.shape[x.ndim - ndim :])
    rows, y = x.reshape(-1, size), np.empty_like(x)
    scale = np.empty((*lead, *(1,) * ndim), x.dtype)
    run(_kernels.rms_norm, *rows.shape, rows, _or(w, 1, size), eps, y.reshape(rows.shape),
        scale.reshape(-1))  # fmt: skip
    return y, scale


@compiled("rms_norm_backward", least=_LEAST)
def rms_norm_backward(
    g: np.ndarray, x: np.ndarray, w: Any, scale: Any, *, ndim: int, eps: float, needs: Any
) -> Any:
    if scale is None or not row_major(x, w, scale):
        return NotImplemented
    space = x.shape[x.ndim - ndim :]
    size = prod(space)
    rows, gx = x.reshape(-1, size), np.empty_like(x)
    parts = np.zeros((_PARTS, size), x.dtype)
    run(_kernels.rms_norm_backward, _PARTS, x.size // _PARTS, g.reshape(rows.shape), rows,
        _or(w, 1, size), scale.reshape(-1), gx.reshape(rows.shape), parts)  # fmt: skip
    gw = np.add.reduce(parts, 0).reshape(space)
    return gx if needs[0] else None, gw if needs[1] else None


def _channels(x: np.ndarray) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1], prod(x.shape[2:])


def _spacious(x: np.ndarray) -> bool:
    return prod(x.shape[2:]) >= LEAST_SPACE


@compiled("group_norm", least=_LEAST)
def group_norm(x: np.ndarray, w: Any, b: Any, *, groups: int, eps: float) -> Any:
    if not _spacious(x) or not row_major(w, b):
        return NotImplemented
    n, c, size = _channels(x)
    rows, y = x.reshape(n * groups, c // groups, size), np.empty_like(x)
    mean, rstd = np.empty((2, len(rows), 1), x.dtype)
    run(_kernels.group_norm, len(rows), c // groups * size, rows, _or(w, 1, c), _or(b, 0, c), eps,
        y.reshape(rows.shape), mean[:, 0], rstd[:, 0])  # fmt: skip
    return y, mean, rstd


@compiled("group_norm_backward", least=_LEAST)
def group_norm_backward(
    g: np.ndarray,
    x: np.ndarray,
    w: Any,
    mean: Any,
    rstd: Any,
    *,
    groups: int,
    eps: float,
    needs: Any,
) -> Any:
    if mean is None or not _spacious(x) or not row_major(x, w, mean, rstd):
        return NotImplemented
    n, c, size = _channels(x)
    rows, gx = x.reshape(n * groups, c // groups, size), np.empty_like(x)
    sums = np.empty((2, n * groups, c // groups), x.dtype)
    run(_kernels.group_norm_backward, len(rows), c // groups * size, g.reshape(rows.shape), rows,
        _or(w, 1, c), mean[:, 0], rstd[:, 0], gx.reshape(rows.shape), sums)  # fmt: skip
    gw, gb = np.add.reduce(sums.reshape(2, n, c), 1)
    return gx if needs[0] else None, gw if needs[1] else None, gb if needs[2] else None


@compiled("batch_norm", least=_LEAST)
def batch_norm(
    x: np.ndarray,
    w: Any,
    b: Any,
    running_mean: Any,
    running_var: Any,
    *,
    momentum: Any,
    eps: float,
) -> Any:
    if not _spacious(x) or not row_major(w, b):
        return NotImplemented
    n, c, size = _channels(x)
    rows, y = x.reshape(n, c, size), np.empty_like(x)
    mean, variance = np.empty((2, c), x.dtype)
    run(_kernels.batch_norm, c, n * size, rows, _or(w, 1, c), _or(b, 0, c), eps,
        y.reshape(rows.shape), mean, variance)  # fmt: skip
    results = [y, mean, variance]
    if running_mean is not None:
        new = running_mean + (mean - running_mean) * momentum
        results.append(new.astype(running_mean.dtype, copy=False))
    if running_var is not None:
        count = n * size
        new = running_var + (variance * (count / (count - 1)) - running_var) * momentum
        results.append(new.astype(running_var.dtype, copy=False))
    return tuple(results)


@compiled("batch_norm_backward", least=_LEAST)
def batch_norm_backward(
    g: np.ndarray, x: np.ndarray, w: Any, mean: Any, variance: Any, *, eps: float, needs: Any
) -> Any:
    if mean is None or not _spacious(x) or not row_major(x, w, mean, variance):
        return NotImplemented
    n, c, size = _channels(x)
    rows, gx = x.reshape(n, c, size), np.empty_like(x)
    gw, gb = np.empty((2, c), x.dtype)
    run(_kernels.batch_norm_backward, c, n * size, g.reshape(rows.shape), rows, _or(w, 1, c), mean,
        variance, eps, gx.reshape(rows.shape), gw, gb)  # fmt: skip
    return gx if needs[0] else None, gw if needs[1] else None, gb if needs[2] else None


@compiled("batch_norm_eval", least=_LEAST)
def batch_norm_eval(x: np.ndarray, w: Any, b: Any, mean: Any, variance: Any, *, eps: float) -> Any:
    if not _spacious(x) or not row_major(w, b, mean, variance):
        return NotImplemented
    n, c, size = _channels(x)
    y = np.empty_like(x)
    run(_kernels.batch_norm_eval, n * c, size, x.reshape(n * c, size), _or(w, 1, c), _or(b, 0, c),
        mean, variance, eps, y.reshape(n * c, size))  # fmt: skip
    return y
