"""Cells of recurrent networks after their matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.compiled.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)

_kernels = Kernels("recurrent")
_LEAST = 1 << 9
_WORK = 8  # a hidden element's, in those of a softmax


def _serves(hidden: int, *arrays: np.ndarray) -> bool:
    return row_major(*arrays) and all([x.ndim == 2 and x.shape[1] % hidden == 0 for x in arrays])


@compiled("lstm_cell_step", least=_LEAST)
def lstm_cell_step(gates: np.ndarray, c: np.ndarray) -> Any:
    if not _serves(c.shape[-1], gates, c):
        return NotImplemented
    h, new = np.empty_like(c), np.empty_like(c)
    run(_kernels.lstm_cell_step, len(c), _WORK * c.shape[1], gates, c, h, new)
    return h, new


@compiled("lstm_cell_step_backward", least=_LEAST)
def lstm_cell_step_backward(
    gh: np.ndarray, gc: np.ndarray, gates: np.ndarray, c: np.ndarray, c_new: np.ndarray
) -> Any:
    if not _serves(c.shape[-1], gc, gates, c, c_new):
        return NotImplemented
    g_gates, g_c = np.empty_like(gates), np.empty_like(c)
    run(_kernels.lstm_cell_step_backward, len(c), _WORK * c.shape[1], gh, gc, gates, c, c_new,
        g_gates, g_c)  # fmt: skip
    return g_gates, g_c


@compiled("gru_cell_step", least=_LEAST)
def gru_cell_step(x_gates: np.ndarray, h_gates: np.ndarray, h: np.ndarray) -> Any:
    if not _serves(h.shape[-1], x_gates, h_gates, h):
        return NotImplemented
    new = np.empty_like(h)
    run(_kernels.gru_cell_step, len(h), _WORK * h.shape[1], x_gates, h_gates, h, new)
    return new


@compiled("gru_cell_step_backward", least=_LEAST)
def gru_cell_step_backward(
    g: np.ndarray, x_gates: np.ndarray, h_gates: np.ndarray, h: np.ndarray
) -> Any:
    if not _serves(h.shape[-1], x_gates, h_gates, h):
        return NotImplemented
    gx, gh_gates, gh = np.empty_like(x_gates), np.empty_like(h_gates), np.empty_like(h)
    run(_kernels.gru_cell_step_backward, len(h), _WORK * h.shape[1], g, x_gates, h_gates, h, gx,
        gh_gates, gh)  # fmt: skip
    return gx, gh_gates, gh
