"""Recurrent networks: modules of whole sequences, and cells, modules of one step."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.nn import init
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parameter import Parameter
from tensorflow_lite_clone.nn.utils.rnn import PackedSequence
from tensorflow_lite_clone.ops.create.constructors import empty, zeros
from tensorflow_lite_clone.ops.decorators.autocast import state as autocast
from tensorflow_lite_clone.ops.nn.recurrent import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from tensorflow_lite_clone.ops.nn.recurrent_layers import gru, lstm, rnn_relu, rnn_tanh
from tensorflow_lite_clone.tensor import Tensor

__all__ = [
    "GRU",
    "GRUCell",
    "LSTM",
    "LSTMCell",
    "RNN",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
#: Options whose type is looked at, in this order; integers must be positive.
_KINDS: dict[str, type] = {"bias": bool, "batch_first": bool, "input_size": int, "hidden_size": int}
_NETWORKS = {"LSTM": lstm, "GRU": gru, "RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu}


def _draw(module: Module, hidden_size: int) -> None:
    """Fill all parameters from U(-1/sqrt(hidden), 1/sqrt(hidden)), in their order."""
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """Layers of cells over a sequence; `mode` is "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".

    Of every layer and direction there are ``weight_ih_l0`` (gates * hidden, in), ``weight_hh_l0``,
    ``bias_ih_l0`` and ``bias_hh_l0``, and with `proj_size` ``weight_hr_l0`` (proj, hidden);
    ``_reverse`` marks those of the second direction. Layers after the first take the outputs of
    the one before, through dropout in training. Raises TypeError or ValueError for options that
    make no network.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_options(dropout)
        self._flat_weights_names: list[str] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse") if bidirectional else ("",):
                for name, shape in self._shapes(layer).items():
                    self._register_empty(f"{name}_l{layer}{suffix}", shape, device, dtype)
                    self._flat_weights_names.append(f"{name}_l{layer}{suffix}")
        self.reset_parameters()

    def _check_options(self, dropout: Any) -> None:
        if (
            not isinstance(dropout, numbers.Number)
            or isinstance(dropout, bool)
            or not 0 <= self.dropout <= 1
        ):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if self.dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=level_outside(),
            )
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(
                    f"{name} should be of type {kind.__name__}, got: {type(value).__name__}"
                )
            if kind is int and getattr(self, name) <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError(f"Unrecognized RNN mode: {self.mode}")

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the weights of a layer's cell."""
        rows, out = _GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        size = out * (2 if self.bidirectional else 1) if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (rows, size), "weight_hh": (rows, out)}
        if self.bias:
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    @property
    def _flat_weights(self) -> list[Tensor]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """The weights, a list per layer and direction."""
        weights = self._flat_weights
        size = len(self._shapes(0))
        return [weights[start : start + size] for start in range(0, len(weights), size)]

    def _saved_state(self) -> dict[str, Any]:
        names, size = self._flat_weights_names, len(self._shapes(0))
        lists = [names[start : start + size] for start in range(0, len(names), size)]
        return {
            **self.__dict__,
            "_all_weights": lists,
            "_flat_weights": self._flat_weights,
        }

    def reset_parameters(self) -> None:
        """Draw the weights in their order."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: every weight has memory of its own."""

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        for name, default in {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }.items():
            if getattr(self, name) != default:
                text += f", {name}={getattr(self, name)}"
        return text

    def _state_shape(self, batch: int, size: int) -> tuple[int, int, int]:
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def _check_input(self, input: Tensor, packed: bool) -> None:
        if not packed and input.dim() not in (2, 3):
            what = "D tensor" if self.mode.startswith("RNN") else "D"
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got "
                f"{input.dim()}{what} instead"
            )
        weight = getattr(self, self._flat_weights_names[0]).dtype
        if input.dtype is not weight and input.device.type not in autocast.dtypes:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight}). Convert "
                f"input: input.to({weight}), or convert model: model.to({input.dtype})"
            )

    def _check_state(self, state: Tensor, expected: tuple[int, ...], name: str) -> None:
        if tuple(state.shape) != expected:
            raise RuntimeError(f"Expected {name} size {expected}, got {list(state.shape)}")

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs of the last layer, and the last states.

        `input` is (steps, n, in), (n, steps, in) with `batch_first`, (steps, in) without a batch,
        or a `PackedSequence`; states are (layers * directions, n, hidden), and zero by default.
        """
        packed = isinstance(input, PackedSequence)
        x = input.data if packed else input
        self._check_input(x, packed)
        sizes, order, back = (
            (input.batch_sizes, input.sorted_indices, input.unsorted_indices)
            if packed
            else (None, None, None)
        )
        batched = packed or x.dim() == 3
        if not batched:
            x = x.unsqueeze(0 if self.batch_first else 1)
        n = int(sizes[0]) if packed else x.shape[0 if self.batch_first else 1]
        states = self._states(x, hx, n, batched, order)
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {x.shape[-1]}"
            )
        options = (
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        hidden = tuple(states) if len(states) == 2 else states[0]
        network = _NETWORKS[self.mode]
        if packed:
            out, *last = network(x, sizes, hidden, *options)
            out = PackedSequence(out, sizes, order, back)
        else:
            out, *last = network(x, hidden, *options, self.batch_first)
        if back is not None:
            last = [state.index_select(1, back) for state in last]
        if not batched:
            out = out.squeeze(0 if self.batch_first else 1)
            last = [state.squeeze(1) for state in last]
        return out, tuple(last) if len(last) == 2 else last[0]

    def _states(
        self, x: Tensor, hx: Any, n: int, batched: bool, order: Tensor | None
    ) -> list[Tensor]:
        """The first states, checked, with a batch and in the order of the packed sequences."""
        sizes = [self.proj_size or self.hidden_size, self.hidden_size]
        shapes = [self._state_shape(n, size) for size in sizes[: 2 if self.mode == "LSTM" else 1]]
        if hx is None:
            return [zeros(*shape, dtype=x.dtype, device=x.device) for shape in shapes]
        given = [hx[0], hx[1]] if self.mode == "LSTM" else [hx]
        expected = 3 if batched else 2
        if any(state.dim() != expected for state in given):
            raise RuntimeError(self._wrong_dimensions(given, batched))
        if not batched:
            given = [state.unsqueeze(1) for state in given]
        for index, (state, shape) in enumerate(zip(given, shapes)):
            self._check_state(state, shape, f"hidden[{index}]" if len(given) > 1 else "hidden")
        if order is not None:
            given = [state.index_select(1, order) for state in given]
        return given

    def _wrong_dimensions(self, given: list[Tensor], batched: bool) -> str:
        kind = "batched 3-D" if batched else "unbatched 2-D"
        dims = [f"{state.dim()}-D" for state in given]
        expected = "3-D" if batched else "2-D"
        if len(given) == 2:
            return (
                f"For {kind} input, hx and cx should also be {expected} but got "
                f"({', '.join(dims)}) tensors"
            )
        return f"For {kind} input, hx should also be {expected} but got {dims[0]} tensor"


def _no_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h' = act(W_ih x + b_ih + W_hh h + b_hh) over sequences; `nonlinearity` is "tanh" or "relu".

    Arguments: input_size, hidden_size, num_layers=1, nonlinearity="tanh", and those of `RNNBase`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)


class LSTM(RNNBase):
    """A long short-term memory over sequences: the states are hidden states and cells, two of
    (layers * directions, n, hidden). With `proj_size` hidden states are projected to that size.

    Arguments: input_size, hidden_size, num_layers=1, and those of `RNNBase`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units over sequences.

    Arguments: input_size, hidden_size, num_layers=1, and those of `RNNBase`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


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
            self._register_empty(name, rows if bias else None, device, dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights, then the biases."""
        _draw(self, self.hidden_size)

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
            start = zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)
            hx = start if states == 1 else (start, start)
        elif not batched:
            hx = hx.unsqueeze(0) if states == 1 else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        weights = self._pair(self._parameters, "weight_ih", "weight_hh")
        biases = self._pair(self._parameters, "bias_ih", "bias_hh")
        result = cell(input, hx, *weights, *biases)
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
