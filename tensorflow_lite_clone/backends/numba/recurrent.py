"""What recurrent networks do beside their matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numba.layer import (
    Kernels,
    compiled,
    row_major,
    run,
)
from tensorflow_lite_clone.backends.numpy import recurrent
from tensorflow_lite_clone.backends.numpy.workspace import workspace

_kernels = Kernels("recurrent")
_LEAST = 1 << 9
_WORK = 8  # a hidden element's, in those of a softmax


def _is_supported(hidden: int, *arrays: np.ndarray) -> bool:
    return row_major(*arrays) and all([x.ndim == 2 and x.shape[1] % hidden == 0 for x in arrays])


@compiled("lstm_cell_step", least=_LEAST)
def lstm_cell_step(gates: np.ndarray, c: np.ndarray) -> Any:
    if not _is_supported(c.shape[-1], gates, c):
        return NotImplemented
    h, new = np.empty_like(c), np.empty_like(c)
    run(_kernels.lstm_cell_step, len(c), _WORK * c.shape[1], gates, c, h, new)
    return h, new


@compiled("lstm_cell_step_backward", least=_LEAST)
def lstm_cell_step_backward(
    gh: np.ndarray, gc: np.ndarray, gates: np.ndarray, c: np.ndarray, c_new: np.ndarray
) -> Any:
    if not _is_supported(c.shape[-1], gc, gates, c, c_new):
        return NotImplemented
    g_gates, g_c = np.empty_like(gates), np.empty_like(c)
    run(_kernels.lstm_cell_step_backward, len(c), _WORK * c.shape[1], gh, gc, gates, c, c_new,
        g_gates, g_c)  # fmt: skip
    return g_gates, g_c


@compiled("gru_cell_step", least=_LEAST)
def gru_cell_step(x_gates: np.ndarray, h_gates: np.ndarray, h: np.ndarray) -> Any:
    if not _is_supported(h.shape[-1], x_gates, h_gates, h):
        return NotImplemented
    new = np.empty_like(h)
    run(_kernels.gru_cell_step, len(h), _WORK * h.shape[1], x_gates, h_gates, h, new)
    return new


@compiled("gru_cell_step_backward", least=_LEAST)
def gru_cell_step_backward(
    g: np.ndarray, x_gates: np.ndarray, h_gates: np.ndarray, h: np.ndarray
) -> Any:
    if not _is_supported(h.shape[-1], x_gates, h_gates, h):
        return NotImplemented
    gx, gh_gates, gh = np.empty_like(x_gates), np.empty_like(h_gates), np.empty_like(h)
    run(_kernels.gru_cell_step_backward, len(h), _WORK * h.shape[1], g, x_gates, h_gates, h, gx,
        gh_gates, gh)  # fmt: skip
    return gx, gh_gates, gh


def _activate(block: np.ndarray, c: np.ndarray, h: np.ndarray) -> None:
    run(_kernels.lstm_activate, c.size, _WORK, block, c, h)


def _slopes(
    gh: np.ndarray,
    gc: np.ndarray,
    w_hh: np.ndarray,
    kept: np.ndarray,
    gates: np.ndarray,
    order: slice,
) -> tuple[np.ndarray, np.ndarray]:
    steps, size, n = gh.shape
    transposed = w_hh.T
    to_h, to_c = np.zeros((size, n), gh.dtype), np.array(gc, order="C")
    with workspace(gates.size, gh.dtype) as memory:
        found = memory.reshape(steps, 4, size, n)
        products = memory.reshape(steps, 4 * size, n)
        for step in range(steps)[::-1]:
            run(_kernels.lstm_slopes, to_c.size, _WORK, gh[step], kept[step], kept[step + 1, 4],
                to_h, to_c, found[step])  # fmt: skip
            np.matmul(transposed, products[step], out=to_h)
        gates[:, :, order] = found.transpose(1, 2, 0, 3)
    return to_h, to_c


@compiled("lstm_sequence", least=_LEAST)
def lstm_sequence(x: np.ndarray, *arrays: Any, backwards: bool) -> Any:
    if not recurrent.is_supported(x, *arrays):
        return NotImplemented
    return recurrent.forward(_activate, x, *arrays, backwards=backwards)


@compiled("lstm_sequence_backward", least=_LEAST)
def lstm_sequence_backward(
    gh: np.ndarray,
    gc: np.ndarray,
    x: np.ndarray,
    w_ih: np.ndarray,
    w_hh: np.ndarray,
    bias: Any,
    h: np.ndarray,
    c: np.ndarray,
    columns: Any,
    kept: Any,
    *,
    backwards: bool,
    needs: tuple[bool, ...],
) -> Any:
    if kept is None or not kept.size:
        return NotImplemented
    return recurrent.backward(_slopes, gh, gc, x, w_ih, w_hh, bias, columns, kept, backwards, needs)
