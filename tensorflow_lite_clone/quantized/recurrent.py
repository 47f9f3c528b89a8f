"""LSTMs and GRUs whose two linear maps, from the input and from the state, are quantized ones.

The input of a layer is quantized once for all steps, the state at every step. Gates and states are
computed in float32, as in `ops.nn.recurrent`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.ops.nn.activation import relu
from tensorflow_lite_clone.ops.nn.dropout import dropout
from tensorflow_lite_clone.ops.nn.recurrent import GruCellStep, LstmCellStep
from tensorflow_lite_clone.ops.nn.recurrent_layers import run_direction
from tensorflow_lite_clone.ops.pointwise.elementary import tanh
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.ops.shape.slices import split_with_sizes
from tensorflow_lite_clone.quantized.linear import PackedLinear, ScriptObject, linear_dynamic
from tensorflow_lite_clone.tensor import Tensor


class CellParameters(ScriptObject, cpp_class="__torch__.torch.classes.rnn.CellParamsBase"):
    """The two maps of a cell, with the biases inside."""

    def __init__(self, ih: PackedLinear, hh: PackedLinear, reduce_range: bool = True) -> None:
        self.ih, self.hh, self.reduce_range = ih, hh, reduce_range

    def _contents(self) -> tuple:
        maps = [self.ih, self.hh]
        if self.ih.weight.is_quantized:
            biases = [self.ih.bias, self.hh.bias]
            return "quantized_dynamic", biases, [], [int(self.reduce_range)], maps
        return "quantized_fp16", [], [], [], maps

    def _restore(self, *contents: Any) -> None:
        kind, _, _, numbers, (self.ih, self.hh) = contents
        if kind not in ("quantized_dynamic", "quantized_fp16"):
            raise NotImplementedError(f"there are no cells of the kind {kind!r} here")
        self.reduce_range = bool(numbers[0]) if numbers else True

    def gates_of_input(self, x: Tensor) -> Tensor:
        """The input's part of the gates, (..., gates * hidden)."""
        return linear_dynamic(x, self.ih, self.reduce_range)

    def gates_of_state(self, h: Tensor) -> Tensor:
        """The hidden state's part of the gates."""
        return linear_dynamic(h, self.hh, self.reduce_range)


def lstm_step(cell: CellParameters, gates: Tensor, state: Any) -> tuple[Tensor, Tensor]:
    """The new hidden state and cell, for the input's part of the gates and the old ones."""
    h, c = state
    new_h, new_c = apply(LstmCellStep, gates + cell.gates_of_state(h), c)
    return new_h, new_c


def gru_step(cell: CellParameters, gates: Tensor, h: Tensor) -> Tensor:
    """The new hidden state."""
    result: Tensor = apply(GruCellStep, gates, cell.gates_of_state(h), h)
    return result


def tanh_step(cell: CellParameters, gates: Tensor, h: Tensor) -> Tensor:
    """The new hidden state of a plain network."""
    result: Tensor = tanh(cell.gates_of_state(h) + gates)
    return result


def relu_step(cell: CellParameters, gates: Tensor, h: Tensor) -> Tensor:
    """The new hidden state of a plain network with ReLU."""
    result: Tensor = relu(cell.gates_of_state(h) + gates)
    return result


@no_grad()
def run_layers(
    step: Callable[..., Any],
    x: Tensor,
    sizes: list[int] | None,
    states: list[Any],
    cells: list[CellParameters],
    directions: int,
    p: float,
) -> tuple[Tensor, list[Any]]:
    """All layers over (steps, n, in), or over packed rows with `sizes`: outputs, last states.

    `states` and `cells` stand layer after layer, of each the directions; `p` is dropout's between
    layers.
    """
    last: list[Any] = []
    for first in range(0, len(cells), directions):
        outputs = []
        for index in range(first, first + directions):
            order = -1 if index > first else 1
            cell = cells[index]
            gates = cell.gates_of_input(x)
            steps = gates.unbind(0) if sizes is None else split_with_sizes(gates, sizes)

            def advance(gates: Tensor, state: Any, cell: CellParameters = cell) -> Any:
                return step(cell, gates, state)

            out, state = run_direction(advance, steps[::order], states[index])
            outputs.append(stack(out[::order]) if sizes is None else cat(out[::order]))
            last.append(state)
        x = outputs[0] if directions == 1 else cat(outputs, -1)
        if p and first + directions < len(cells):
            x = dropout(x, p, True)
    return x, last
