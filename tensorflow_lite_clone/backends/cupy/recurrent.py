"""Steps of LSTM and GRU cells, with their gradients: `kernels/recurrent.cu`."""

from __future__ import annotations

from typing import Any

import cupy

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.dispatch.table import override

BLOCK = 256
_PARAMS = ("T", "VEC", "I")
_lstm_forward = Kernel("recurrent.cu", "lstm_cell_forward", params=_PARAMS)
_lstm_backward = Kernel("recurrent.cu", "lstm_cell_backward", params=_PARAMS)
_gru_forward = Kernel("recurrent.cu", "gru_cell_forward", params=_PARAMS)
_gru_backward = Kernel("recurrent.cu", "gru_cell_backward", params=_PARAMS)


def _is_supported(states: tuple, gates: tuple, count: int) -> bool:
    """Whether all states have one shape (..., hidden) and all gates (..., count hidden)."""
    shape, dtype = states[0].shape, states[0].dtype
    if dtype not in ACCUMULATORS or not shape or states[0].size > BLOCK << 31:
        return False
    wide = (*shape[:-1], count * shape[-1])
    return all([x.shape == shape and x.dtype == dtype for x in states]) and all(
        [x.shape == wide and x.dtype == dtype for x in gates]
    )


def _launch(kernel: Kernel, count: int, inputs: tuple, state: Any, outputs: tuple) -> Any:
    """Run a kernel over the elements of `state`; `count` is the number of gates."""
    hidden, size, itemsize = state.shape[-1], state.size, state.itemsize
    inputs = tuple([cupy.ascontiguousarray(x) for x in inputs])
    if size:
        pack = 16 // itemsize
        places = 0
        for x in (*inputs, *outputs):
            places |= x.data.ptr
        if hidden % pack or places % 16:
            pack = 1
        index = "int" if size * count < 1 << 31 else "long long"
        packs = size // pack
        grid = -(-packs // BLOCK)
        kernel[state.dtype, pack, index](grid, BLOCK, *inputs, packs, hidden, *outputs)
    return outputs if len(outputs) > 1 else outputs[0]


def _like(x: Any) -> Any:
    return cupy.empty(x.shape, x.dtype)


@override("lstm_cell_step", backend="cupy")
def lstm_cell_step(F: Any, gates: Any, c: Any) -> Any:
    if not _is_supported((c,), (gates,), 4):
        return NotImplemented
    return _launch(_lstm_forward, 4, (gates, c), c, (_like(c), _like(c)))


@override("lstm_cell_step_backward", backend="cupy")
def lstm_cell_step_backward(F: Any, gh: Any, gc: Any, gates: Any, c: Any, c_new: Any) -> Any:
    if not _is_supported((c, gh, gc, c_new), (gates,), 4):
        return NotImplemented
    return _launch(_lstm_backward, 4, (gh, gc, gates, c, c_new), c, (_like(gates), _like(c)))


@override("gru_cell_step", backend="cupy")
def gru_cell_step(F: Any, x_gates: Any, h_gates: Any, h: Any) -> Any:
    if not _is_supported((h,), (x_gates, h_gates), 3):
        return NotImplemented
    return _launch(_gru_forward, 3, (x_gates, h_gates, h), h, (_like(h),))


@override("gru_cell_step_backward", backend="cupy")
def gru_cell_step_backward(F: Any, g: Any, x_gates: Any, h_gates: Any, h: Any) -> Any:
    if not _is_supported((h, g), (x_gates, h_gates), 3):
        return NotImplemented
    outputs = (_like(x_gates), _like(h_gates), _like(h))
    return _launch(_gru_backward, 3, (g, x_gates, h_gates, h), h, outputs)
