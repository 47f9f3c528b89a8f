"""Cells of recurrent networks: modules of one step."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.ops.create import empty, zeros
from tensorflow_lite_clone.ops.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from tensorflow_lite_clone.tensor import Tensor


class RNNCellBase(Module):
    """Weights of a cell with `num_chunks` gates, drawn from U(-1/sqrt(hidden), 1/sqrt(hidden))."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    nonlinearity = "tanh"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            made = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights, then the biases."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.nonlinearity != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _step(self, cell: Any, input: Tensor, hx: Any, states: int) -> Any:
        """One step of `cell`; an input without a batch is given one for the while."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for index, state in enumerate([hx] if states == 1 else hx or ()):
            if state is not None and state.ndim not in (1, 2):
                which = "hidden" if states == 1 else f"hx[{index}]"
                raise ValueError(
                    f"{name}: Expected {which} to be 1D or 2D, got {state.ndim}D instead"
                )
        batched = input.ndim == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            start = zeros(
                input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device
            )
            hx = start if states == 1 else (start, start)
        elif not batched:
            hx = hx.unsqueeze(0) if states == 1 else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        result = cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if batched:
            return result
        return result.squeeze(0) if states == 1 else (result[0].squeeze(0), result[1].squeeze(0))


class RNNCell(RNNCellBase):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh): (n, in), (n, hidden) -> (n, hidden).

    `nonlinearity` is "tanh" or "relu"; without `hx` the hidden state is zero. The batch axis may
    be missing from both.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        cells = {"tanh": rnn_tanh_cell, "relu": rnn_relu_cell}
        if self.nonlinearity not in cells:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(cells[self.nonlinearity], input, hx, 1)


class LSTMCell(RNNCellBase):
    """One step of an LSTM: (n, in) and two of (n, hidden) -> the new two, hidden state and cell.

    Without `hx` both are zero. The batch axis may be missing from all.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device=device, dtype=dtype)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        if isinstance(hx, Tensor):
            raise TypeError(
                "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            )
        return self._step(lstm_cell, input, hx, 2)


class GRUCell(RNNCellBase):
    """One step of a GRU: (n, in), (n, hidden) -> (n, hidden).

    Without `hx` the hidden state is zero. The batch axis may be missing from both.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(gru_cell, input, hx, 1)
