"""Recurrent networks over whole sequences: layers and directions of the cells in `recurrent`.

The products with the input are one `linear` per layer and direction, for all steps at once; a step
adds the product with the hidden state. A device may serve all steps of an LSTM as one op. Packed
sequences have the rows of one step after another, of ever fewer sequences.
Sources: those of the cells; Schuster and Paliwal, "Bidirectional recurrent neural networks" (1997);
Sak, Senior and Beaufays, "Long short-term memory based recurrent neural network architectures"
(2014) for projected hidden states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.table import serves
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.linalg.matmul import addmm
from tensorflow_lite_clone.ops.nn.activation import relu
from tensorflow_lite_clone.ops.nn.dropout import dropout
from tensorflow_lite_clone.ops.nn.linear import linear
from tensorflow_lite_clone.ops.nn.recurrent import GruCellStep, LstmCellStep, LstmSequence
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.pointwise.elementary import tanh
from tensorflow_lite_clone.ops.reduce._arguments import expect_tensor
from tensorflow_lite_clone.ops.shape.join import cat, stack
from tensorflow_lite_clone.ops.shape.slices import split_with_sizes
from tensorflow_lite_clone.tensor import Tensor

_PADDED = "input hx params has_biases num_layers dropout train bidirectional batch_first".split()
_PACKED = "data batch_sizes hx params has_biases num_layers dropout train bidirectional".split()

#: A step: the input's part of the gates and the state (a tensor, or hidden state and cell) give
#: the new state.
_Step = Callable[[Tensor, Any], Any]


def _plain_step(activation: Callable[[Tensor], Tensor]) -> Callable[..., _Step]:
    def make(w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> _Step:
        transposed = w_hh.t()
        return lambda gates, h: activation(addmm(gates, h, transposed))

    return make


def _gru_step(w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> _Step:
    return lambda gates, h: apply(GruCellStep, gates, linear(h, w_hh, b_hh), h)


def _lstm_step(w_hh: Tensor, b_hh: Tensor | None, w_hr: Tensor | None) -> _Step:
    transposed = w_hh.t()

    def step(gates: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = apply(LstmCellStep, addmm(gates, state[0], transposed), state[1])
        return (h if w_hr is None else linear(h, w_hr)), c

    return step


def _parts(state: Any, size: int, rest: bool = False) -> Any:
    """The first `size` sequences of a state, or the others."""
    if isinstance(state, tuple):
        return tuple([_parts(part, size, rest) for part in state])
    return state[size:] if rest else state[:size]


def _joined(states: list[Any]) -> Any:
    if isinstance(states[0], tuple):
        return tuple([cat(parts) for parts in zip(*states)])
    return cat(states) if len(states) > 1 else states[0]


def _length(state: Any) -> int:
    return (state[0] if isinstance(state, tuple) else state).shape[0]


def run_direction(step: _Step, steps: Sequence[Tensor], state: Any) -> tuple[list[Tensor], Any]:
    """Outputs of all steps and the last state of every sequence.

    Sequences that are over leave the state; those that begin later (backwards) join it.
    """
    start, outputs = state, []
    over: list[Any] = []
    state = _parts(state, steps[0].shape[0])
    for gates in steps:
        size, have = gates.shape[0], _length(state)
        if size < have:
            over.append(_parts(state, size, rest=True))
            state = _parts(state, size)
        elif size > have:
            state = _joined([state, _parts(_parts(start, size), have, rest=True)])
        state = step(gates, state)
        outputs.append(state[0] if isinstance(state, tuple) else state)
    return outputs, _joined([state, *reversed(over)])


def _at_once(x: Tensor, cell: tuple, *state: Tensor) -> bool:
    """Whether the device has a form of its own for all steps together.

    Sizes that do not fit are left to the products, which say so.
    """
    w_ih, w_hh, *others = cell
    operands = [x, *state, *[parameter for parameter in cell if parameter is not None]]
    first = x._storage
    kind = first.physical.dtype
    rows, size = w_hh.shape
    return (
        serves("lstm_sequence", first.backend)
        and x.dtype.kind == "f"
        and x.dtype.itemsize > 1
        and all([each._storage.physical.dtype == kind for each in operands])
        and all([each._storage.backend is first.backend for each in operands])
        and rows == 4 * size
        and w_ih.shape == (rows, x.shape[2])
        and all([bias is None or bias.shape == (rows,) for bias in others])
        and all([part.shape == (x.shape[1], size) for part in state])
    )


def _sequence(
    make: Callable[..., _Step],
    folds_bias: bool,
    x: Tensor,
    sizes: list[int] | None,
    cell: tuple,
    state: Any,
    backwards: bool,
) -> tuple[Tensor, ...]:
    """One cell over all steps, in one direction: outputs, and the last state (h, or h and c)."""
    w_ih, w_hh, b_ih, b_hh, w_hr = cell
    bias = b_ih + b_hh if folds_bias and b_ih is not None else b_ih
    if make is _lstm_step and sizes is None and w_hr is None and _at_once(x, cell[:4], *state):
        operands = [x, w_ih, w_hh, bias, *state]
        narrow = x.dtype.itemsize == 2  # then states are in float32, and rounded once
        if narrow:
            operands = [each if each is None else cast(each, float32) for each in operands]
        out, last, *_ = apply(LstmSequence, *operands, backwards=backwards)
        if narrow:
            out, last = cast(out, x.dtype), cast(last, x.dtype)
        return out, out[0 if backwards else -1], last
    gates = linear(x, w_ih, bias)
    steps = gates.unbind(0) if sizes is None else split_with_sizes(gates, sizes)
    order = -1 if backwards else 1
    out, state = run_direction(make(w_hh, b_hh, w_hr), steps[::order], state)
    joined = stack(out[::order]) if sizes is None else cat(out[::order])
    return joined, *(state if isinstance(state, tuple) else (state,))


def _layers(
    name: str,
    make: Callable[..., _Step],
    folds_bias: bool,
    x: Tensor,
    sizes: list[int] | None,
    cells: list[tuple],
    states: list[Any],
    directions: int,
    p: float,
) -> tuple[Tensor, list[Any]]:
    """All layers over (steps, n, in), or over packed rows with `sizes`: outputs, last states.

    Cells, and their first states, stand layer after layer, of each the directions. `folds_bias`
    says that both biases are added before the step; `p` is dropout's between layers.
    """
    last: list[Any] = []
    for first in range(0, len(cells), directions):
        outputs = []
        for backwards in range(directions):
            cell, state = cells[first + backwards], states[first + backwards]
            run = partial(_sequence, make, folds_bias, x, sizes, cell, state, bool(backwards))
            if hooks.around_function and sizes is None and cell[-1] is None:
                start = state if isinstance(state, tuple) else (state,)
                where = {"backwards": bool(backwards)}
                out, *end = hooks.run_function(name, run, (x, *cell[:4], *start), where)
            else:
                out, *end = run()
            outputs.append(out)
            last.append(tuple(end) if isinstance(state, tuple) else end[0])
        x = outputs[0] if directions == 1 else cat(outputs, -1)
        if p and first + directions < len(cells):
            x = dropout(x, p, True)
    return x, last


_lstm_layers = autocasts("mkldnn_rnn_layer")(_layers)


def _cells(params: list[Tensor], size: int, has_biases: bool) -> list[tuple]:
    """Of each cell, of `size` parameters: w_ih, w_hh, b_ih, b_hh and w_hr; None what it lacks."""
    cells = []
    for start in range(0, len(params), size):
        w_ih, w_hh, *rest = params[start : start + size]
        b_ih, b_hh, *projection = rest if has_biases else [None, None, *rest]
        cells.append((w_ih, w_hh, b_ih, b_hh, projection[0] if projection else None))
    return cells


def _arguments(name: str, args: tuple, kwargs: dict) -> dict[str, Any]:
    """Arguments by name, of whichever form they have."""
    packed = "batch_sizes" in kwargs or (len(args) > 3 and isinstance(args[3], (tuple, list)))
    names = _PACKED if packed else _PADDED
    given = dict(zip(names, args))
    unexpected = [key for key in kwargs if key not in names or key in given]
    given.update(kwargs)
    if len(args) > len(names) or unexpected or len(given) < len(names):
        raise TypeError(
            f"{name}() received an invalid combination of arguments; expected "
            f"({', '.join(_PADDED)}) or ({', '.join(_PACKED)})"
        )
    return given


def _recurrent(
    name: str, make: Callable[..., _Step], states: int, folds_bias: bool, args: tuple, kwargs: dict
) -> tuple[Tensor, ...]:
    given = _arguments(name, args, kwargs)
    hx = given["hx"]
    if isinstance(hx, Tensor) is (states == 2):
        expected = "a tuple of Tensors" if states == 2 else "a Tensor"
        raise TypeError(f"{name}(): argument 'hx' must be {expected}, not {type(hx).__name__}")
    if states == 2 and len(hx) != 2:
        raise RuntimeError(f"{name} expects two hidden states")
    packed = "data" in given
    x, batch_first = (given["data"], False) if packed else (given["input"], given["batch_first"])
    sizes = given["batch_sizes"].tolist() if packed else None
    if batch_first:
        x = x.transpose(0, 1)
    if not packed and x.ndim != 3:
        raise IndexError(f"{name}(): expected an input of 3 dimensions, but got {x.ndim}")
    if not (sizes if packed else x.shape[0]):
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    directions = 2 if given["bidirectional"] else 1
    count = given["num_layers"] * directions
    projected = states == 2 and hx[0].shape[-1] != hx[1].shape[-1]
    per_cell = (4 if given["has_biases"] else 2) + projected
    params = list(given["params"])[: count * per_cell]
    if len(params) < count * per_cell:
        raise RuntimeError(
            f"{name}(): expected {count * per_cell} parameters for {count} layers and directions, "
            f"but got {len(params)}"
        )
    starts = [part.unbind(0) for part in (hx if states == 2 else (hx,))]
    if any([len(part) != count for part in starts]):
        raise RuntimeError("Expected more hidden states in stacked_rnn")
    n = sizes[0] if sizes else x.shape[1]
    for part in starts:
        if part[0].shape[0] != n:
            raise RuntimeError(
                f"{name}(): expected states of {n} sequences, but got {part[0].shape[0]}"
            )
    cells = _cells(params, per_cell, given["has_biases"])
    first = list(zip(*starts)) if states == 2 else list(starts[0])
    p = given["dropout"] if given["train"] else 0.0
    # PyTorch runs whole LSTMs in one call of its library for CPUs.
    layers = _lstm_layers if states == 2 and not (projected or packed) else _layers
    out, last = layers(name, make, folds_bias, x, sizes, cells, first, directions, p)
    if batch_first:
        out = out.transpose(0, 1)
    return out, *([stack(part) for part in zip(*last)] if states == 2 else [stack(last)])


def _public(name: str, make: Callable[..., _Step], states: int, folds_bias: bool) -> Any:
    def network(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        expect_tensor(name, args[0] if args else kwargs.get("input", kwargs.get("data")))
        return _recurrent(name, make, states, folds_bias, args, kwargs)

    state = "hx a tuple of two" if states == 2 else "hx"
    network.__name__ = network.__qualname__ = name
    network.__doc__ = f"""Layers of `{name}_cell` over a sequence, in one direction or in both.

    ``{name}({", ".join(_PADDED)})`` takes (steps, n, in), or (n, steps, in) with `batch_first`, and
    {state} of (layers * directions, n, hidden). ``{name}({", ".join(_PACKED)})`` takes the rows of
    a `PackedSequence`. `params` are the cells' weights, layer after layer, of each the directions.
    Returns the last layer's outputs and the last states. Raises RuntimeError when sizes do not fit.
    """
    return public("torch")(autocasts("_cudnn_rnn")(network))


lstm = _public("lstm", _lstm_step, 2, True)
gru = _public("gru", _gru_step, 1, False)
rnn_tanh = _public("rnn_tanh", _plain_step(tanh), 1, True)
rnn_relu = _public("rnn_relu", _plain_step(relu), 1, True)
