"""Recurrent layers and cells with quantized weights."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from tensorflow_lite_clone.ao.nn.quantized.dynamic.modules._weights import (
    expect_biases,
    weight_packing,
)
from tensorflow_lite_clone.core.dtypes import DType, qint8
from tensorflow_lite_clone.nn.modules import rnn
from tensorflow_lite_clone.nn.modules.container import ModuleList
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils.rnn import PackedSequence
from tensorflow_lite_clone.ops.create.constructors import empty, zeros
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.quantized.linear import PackedLinear
from tensorflow_lite_clone.quantized.quantize import quantize_per_tensor
from tensorflow_lite_clone.quantized.recurrent import (
    CellParameters,
    gru_step,
    lstm_step,
    relu_step,
    run_layers,
    tanh_step,
)
from tensorflow_lite_clone.tensor import Tensor


def _random(rows: int, columns: int, scale: float, dtype: DType) -> PackedLinear:
    """A map of random numbers, for a module whose weights follow."""
    weight: Any = empty(rows, columns).normal_()
    if dtype is qint8:
        weight = quantize_per_tensor(weight, scale, 0, qint8)
    return PackedLinear(weight, empty(rows).normal_())


class PackedParameter(Module):
    """The two maps of a layer and direction, as a module that saves and loads them."""

    def __init__(self, param: CellParameters) -> None:
        super().__init__()
        self.param = param

    def _apply(self, fn: Any, recurse: bool = True) -> PackedParameter:
        """Move to another device with the module that this is a part of."""
        cell, device = self.param, fn(zeros(0)).device
        if device != cell.ih.weight.device:
            self.param = CellParameters(cell.ih.to(device), cell.hh.to(device), cell.reduce_range)
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}param"] = self.param

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self.param = state_dict.pop(f"{prefix}param")
        super()._load_from_state_dict(state_dict, prefix, *args)


class RNNBase(Module):
    """Layers of LSTM or GRU cells, `mode`, over a sequence; the arguments are those of torch.nn's.

    `dtype` is qint8 or float16. Inputs and states are of float32, and there are no gradients.
    """

    _version = 2
    _gates: ClassVar[dict[str, int]] = {"LSTM": 4, "GRU": 3}

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
        dtype: DType = qint8,
    ) -> None:
        super().__init__()
        if mode not in self._gates:
            raise ValueError(f"Unrecognized RNN mode: {mode}")
        self.mode = mode
        self.input_size, self.hidden_size = input_size, hidden_size
        self.num_layers, self.bias = num_layers, bias
        self.batch_first, self.dropout = batch_first, float(dropout)
        self.bidirectional, self.dtype = bidirectional, dtype
        self.version: int | None = self._version
        self.training = False
        rows, directions = self._gates[mode] * hidden_size, 2 if bidirectional else 1
        cells = []
        for layer in range(num_layers):
            size = hidden_size * directions if layer else input_size
            for _ in range(directions):
                maps = _random(rows, size, 0.1, dtype), _random(rows, hidden_size, 0.1, dtype)
                cells.append(PackedParameter(CellParameters(*maps)))
        self._all_weight_values = ModuleList(cells)

    def _get_name(self) -> str:
        return f"DynamicQuantized{self.mode}"

    extra_repr: Any = rnn.RNNBase.extra_repr
    proj_size = 0  # which `extra_repr` looks at

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs of the last layer, and the last states, as of `torch.nn.LSTM` and `GRU`.

        `input` is (steps, n, in), (n, steps, in) with `batch_first`, or a `PackedSequence`.
        """
        packed = isinstance(input, PackedSequence)
        parts: tuple[Any, ...] = input if packed else (input, None, None, None)
        x, sizes, order, back = parts
        self._check_input(x, packed)
        if self.batch_first and not packed:
            x = x.transpose(0, 1)
        lengths: Any = sizes.tolist() if packed else None
        n = lengths[0] if packed else x.shape[1]
        states = self._states(x, hx, n, order)
        p = self.dropout if self.training else 0.0
        cells = [module.param for module in self._all_weight_values]
        per_cell = [state.unbind(0) for state in states]
        is_lstm = self.mode == "LSTM"
        starts = list(zip(*per_cell, strict=True)) if is_lstm else list(per_cell[0])
        directions = 2 if self.bidirectional else 1
        step = lstm_step if is_lstm else gru_step
        out, ends = run_layers(step, x, lengths, starts, cells, directions, p)
        last = [stack(part) for part in (zip(*ends, strict=True) if is_lstm else [ends])]
        if packed:
            out = PackedSequence(out, sizes, order, back)
        elif self.batch_first:
            out = out.transpose(0, 1)
        if back is not None:
            last = [state.index_select(1, back) for state in last]
        return out, tuple(last) if is_lstm else last[0]

    def _check_input(self, x: Tensor, packed: bool) -> None:
        dimensions = 2 if packed else 3
        if x.dim() != dimensions:
            raise RuntimeError(f"input must have {dimensions} dimensions, got {x.dim()}")
        if x.shape[-1] != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. Expected "
                f"{self.input_size}, got {x.shape[-1]}"
            )

    def _states(self, x: Tensor, hx: Any, n: int, order: Tensor | None) -> list[Tensor]:
        """The first states, checked and in the order of packed sequences."""
        shape = len(self._all_weight_values), n, self.hidden_size
        is_lstm = self.mode == "LSTM"
        if hx is None:
            return [zeros(*shape, dtype=x.dtype, device=x.device)] * (2 if is_lstm else 1)
        states = list(hx) if is_lstm else [hx]
        for index, state in enumerate(states):
            if state.shape != shape:
                name = f"hidden[{index}]" if is_lstm else "hidden"
                raise RuntimeError(f"Expected {name} size {shape}, got {list(state.shape)}")
        return states if order is None else [state.index_select(1, order) for state in states]

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, *args: Any
    ) -> None:
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)

    def _weight_bias(self) -> dict[str, dict[str, Any]]:
        """The weights and the biases, under the names that they have in torch.nn's modules."""
        found: dict[str, dict[str, Any]] = {"weight": {}, "bias": {}}
        for index, module in enumerate(self._all_weight_values):
            layer, backwards = divmod(index, 2) if self.bidirectional else (index, 0)
            for kind in ("ih", "hh"):
                name = f"{kind}_l{layer}{'_reverse' if backwards else ''}"
                packed = getattr(module.param, kind)
                found["weight"][f"weight_{name}"] = packed.weight
                found["bias"][f"bias_{name}"] = packed.bias
        return found

    def get_weight(self) -> dict[str, Tensor]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Tensor]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Self:
        """The quantized form of a `torch.nn.LSTM` or `GRU` that has a `qconfig`.

        AssertionError for other modules, dtypes other than qint8 and float16, and without biases;
        NotImplementedError for projected states.
        """
        dtype, pack = weight_packing(mod, (rnn.LSTM, rnn.GRU))
        expect_biases(mod)
        if mod.proj_size:
            raise NotImplementedError("an LSTM with proj_size is not quantized")
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            dtype=dtype,
        )
        cells = [
            CellParameters(pack(w_ih, b_ih), pack(w_hh, b_hh))
            for w_ih, w_hh, b_ih, b_hh in mod.all_weights
        ]
        made._all_weight_values = ModuleList([PackedParameter(cell) for cell in cells])
        return made


class LSTM(RNNBase):
    """`torch.nn.LSTM` with quantized weights: its arguments, without `proj_size`, and `dtype`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """`torch.nn.GRU` with quantized weights: its arguments, and `dtype`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """One step of a cell with quantized weights, (n, in) and states of (n, hidden)."""

    _packed_weight_ih: PackedLinear
    _packed_weight_hh: PackedLinear

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        num_chunks: int = 4,
        dtype: DType = qint8,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.bias, self.weight_dtype = bias, dtype
        rows = num_chunks * hidden_size
        self._packed_weight_ih = _random(rows, input_size, 1.0, dtype)
        self._packed_weight_hh = _random(rows, hidden_size, 1.0, dtype)

    def _get_name(self) -> str:
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def _step(self, step: Any, input: Tensor, hx: Any) -> Any:
        """One step from states that were checked, zeros without any."""
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]}, expected "
                f"{self.input_size}"
            )
        n, is_lstm = input.shape[0], step is lstm_step
        if hx is None:
            start = zeros(n, self.hidden_size, dtype=input.dtype, device=input.device)
            hx = (start, start) if is_lstm else start
        for index, state in enumerate(hx if is_lstm else [hx]):
            label = f"[{index}]" if is_lstm else ""
            if state.shape[0] != n:
                raise RuntimeError(
                    f"Input batch size {n} doesn't match hidden{label} batch size {state.shape[0]}"
                )
            if state.shape[1] != self.hidden_size:
                raise RuntimeError(
                    f"hidden{label} has inconsistent hidden_size: got {state.shape[1]}, expected "
                    f"{self.hidden_size}"
                )
        cell = CellParameters(self._packed_weight_ih, self._packed_weight_hh)
        return step(cell, cell.gates_of_input(input), hx)

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        device = fn(zeros(0)).device
        if device != self._packed_weight_ih.weight.device:
            self._packed_weight_ih = self._packed_weight_ih.to(device)
            self._packed_weight_hh = self._packed_weight_hh.to(device)
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}_packed_weight_ih"] = self._packed_weight_ih
        destination[f"{prefix}_packed_weight_hh"] = self._packed_weight_hh

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        self._packed_weight_ih = state_dict.pop(f"{prefix}_packed_weight_ih")
        self._packed_weight_hh = state_dict.pop(f"{prefix}_packed_weight_hh")
        super()._load_from_state_dict(state_dict, prefix, *args)

    def _saved_state(self) -> dict[str, Any]:
        return {**self.__dict__, **self.get_bias()}  # PyTorch's cells ask for them

    def get_weight(self) -> dict[str, Tensor]:
        """The weights by name."""
        return {
            "weight_ih": self._packed_weight_ih.weight,
            "weight_hh": self._packed_weight_hh.weight,
        }

    def get_bias(self) -> dict[str, Tensor | None]:
        """The biases by name."""
        return {"bias_ih": self._packed_weight_ih.bias, "bias_hh": self._packed_weight_hh.bias}

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Self:
        """The quantized form of a cell of torch.nn that has a `qconfig`.

        AssertionError for other modules, dtypes other than qint8 and float16, and without biases.
        """
        kinds = rnn.LSTMCell, rnn.GRUCell, rnn.RNNCell
        dtype, pack = weight_packing(mod, kinds)
        expect_biases(mod)
        options: dict[str, Any] = {}
        if type(mod) is rnn.RNNCell:
            options["nonlinearity"] = mod.nonlinearity
        made = cls(mod.input_size, mod.hidden_size, mod.bias, dtype=dtype, **options)
        made._packed_weight_ih = pack(mod.weight_ih, mod.bias_ih)
        made._packed_weight_hh = pack(mod.weight_hh, mod.bias_hh)
        return made


class RNNCell(RNNCellBase):
    """`torch.nn.RNNCell` with quantized weights; `nonlinearity` is "tanh" or "relu"."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: DType = qint8,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        steps = {"tanh": tanh_step, "relu": relu_step}
        if self.nonlinearity not in steps:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(steps[self.nonlinearity], input, hx)


class LSTMCell(RNNCellBase):
    """`torch.nn.LSTMCell` with quantized weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["num_chunks"] = 4
        super().__init__(*args, **kwargs)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        return self._step(lstm_step, input, hx)


class GRUCell(RNNCellBase):
    """`torch.nn.GRUCell` with quantized weights."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: DType = qint8
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(gru_step, input, hx)
