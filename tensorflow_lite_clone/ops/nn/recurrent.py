"""Cells of recurrent networks: one step of an LSTM, a GRU or a plain network.

The matrix products are `linear` and `addmm`; what follows them is one op with one gradient, which
a device may fuse. Two-byte floats are computed in float32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.dtypes import float32, uncastable
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dim
from tensorflow_lite_clone.core.strides import dense_strides
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops.linalg._products import expect_tensors
from tensorflow_lite_clone.ops.linalg.matmul import addmm
from tensorflow_lite_clone.ops.nn.activation import relu
from tensorflow_lite_clone.ops.nn.linear import linear
from tensorflow_lite_clone.ops.pointwise.elementary import tanh
from tensorflow_lite_clone.tensor import Tensor


def _wide(F: Any, *arrays: Any) -> Any:
    return [F.astype(x, float32) if x.dtype.itemsize == 2 else x for x in arrays]


def _parts(x: Any, count: int) -> list[Any]:
    """`count` equal parts along the last axis."""
    size = x.shape[-1] // count
    return [x[..., i * size : (i + 1) * size] for i in range(count)]


class LstmCellStep(Op):
    """h = o tanh(c'), c' = f c + i g, from the gates before their activation.

    (n, 4 hidden), in the order i, f, g, o, and (n, hidden) give h and c'.
    Source: Hochreiter and Schmidhuber, "Long short-term memory" (1997); Gers et al. (2000).
    """

    def forward(F, gates, c):
        dtype = c.dtype
        gates, c = _wide(F, gates, c)
        i, f, g, o = _parts(gates, 4)
        c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
        return F.astype(F.sigmoid(o) * F.tanh(c), dtype), F.astype(c, dtype)

    def backward(F, g, gates, c, out1):
        return F.lstm_cell_step_backward(*g, gates, c, out1)


@composite
def lstm_cell_step_backward(F, gh, gc, gates, c, c_new):
    """With t = tanh(c') and s = gc + gh o (1 - t^2), the gradient of c':

    gi = s g i (1 - i), gf = s c f (1 - f), gg = s i (1 - g^2), go = gh t o (1 - o), gc = s f.
    """
    dtype = gates.dtype
    gh, gc, gates, c, c_new = _wide(F, gh, gc, gates, c, c_new)
    i, f, g, o = _parts(gates, 4)
    i, f, g, o, t = F.sigmoid(i), F.sigmoid(f), F.tanh(g), F.sigmoid(o), F.tanh(c_new)
    s = gc + F.tanh_backward(gh * o, t)
    ggates = [
        F.sigmoid_backward(s * g, i),
        F.sigmoid_backward(s * c, f),
        F.tanh_backward(s * i, g),
        F.sigmoid_backward(gh * t, o),
    ]
    return F.astype(F.concat(ggates, axis=-1), dtype), F.astype(s * f, dtype)


def _sequence_flops(shapes, x, w_ih, w_hh, *others, **parameters):
    """All gates of all steps from the inputs and from the hidden states."""
    steps, n, features = x.shape
    gates, size = w_hh.shape
    return 2 * steps * n * gates * (features + size)


def _sequence_gradient_flops(needs, g, x, w_ih, w_hh, *others, **parameters):
    """Each product's two gradients; the hidden state's leads back to the first step if wanted."""
    steps, n, features = x.shape
    gates, size = w_hh.shape
    inputs = steps * features * (needs[0] + needs[1])
    return 2 * n * gates * (inputs + size * (steps * needs[2] + steps - 1 + needs[4]))


class LstmSequence(Op):
    """`LstmCellStep` over all steps of float32 or float64, the last one first if `backwards`.

    x is (steps, n, in), w_ih (4 hidden, in), w_hh (4 hidden, hidden), bias (4 hidden,) or None,
    h and c are (n, hidden). Gives all hidden states, (steps, n, hidden), the cell at the end,
    (n, hidden), and what a device's own form keeps for the gradient.
    """

    cost = costs.Cost(_sequence_flops, _sequence_gradient_flops, product=True)
    nondifferentiable = (2, 3)
    auxiliary_outputs = (2, 3)

    def forward(F, x, w_ih, w_hh, bias, h, c, *, backwards):
        steps = _lstm_steps(F, x, w_ih, w_hh, bias, h, c, backwards)
        states = [h for *_, h in steps]
        out = F.stack(states[::-1] if backwards else states)
        nothing = F.zeros((0,), dtype=x.dtype)
        return out, steps[-1][3], nothing, nothing

    def backward(F, g, x, w_ih, w_hh, bias, h, c, out2, out3, *, backwards, needs):
        found = F.lstm_sequence_backward(
            *g, x, w_ih, w_hh, bias, h, c, out2, out3, backwards=backwards, needs=needs
        )
        return tuple([each if need else None for each, need in zip(found, needs, strict=True)])


@composite
def lstm_sequence_backward(
    F, gh, gc, x, w_ih, w_hh, bias, h, c, columns, kept, *, backwards, needs
):
    """`lstm_cell_step_backward` from the last step to the first one.

    The gradients of weights are one product each over all steps. The steps are calculated again, so
    that this has derivatives.
    """
    steps = _lstm_steps(F, x, w_ih, w_hh, bias, h, c, backwards)
    found = {}
    to_h = None
    order = _order(x, backwards)
    for step, (gates, _, before, after, _) in zip(order[::-1], steps[::-1], strict=True):
        to_h = gh[step, ...] if to_h is None else gh[step, ...] + to_h
        found[step], gc = F.lstm_cell_step_backward(to_h, gc, gates, before, after)
        to_h = F.matmul(found[step], w_hh)
    ggates = F.stack([found[step] for step in sorted(found)])
    states = [state for _, state, *_ in steps]
    rows, inputs, states = [
        F.reshape(part, (-1, part.shape[-1]))
        for part in (ggates, x, F.stack(states[::-1] if backwards else states))
    ]
    columns = F.matrix_transpose(rows)
    return (
        F.matmul(ggates, w_ih) if needs[0] else None,
        F.matmul(columns, inputs),
        F.matmul(columns, states),
        None if bias is None else F.sum(rows, axis=0),
        to_h,
        gc,
    )


def _lstm_steps(
    F: Any, x: Any, w_ih: Any, w_hh: Any, bias: Any, h: Any, c: Any, backwards: bool
) -> list[tuple]:
    """Of each step, in their order: gates, h and c before it, c and h after it."""
    inputs = F.matmul(x, F.matrix_transpose(w_ih))
    if bias is not None:
        inputs = inputs + bias
    transposed = F.matrix_transpose(w_hh)
    found = []
    for step in _order(x, backwards):
        gates = inputs[step, ...] + F.matmul(h, transposed)
        before = h, c
        h, c = F.lstm_cell_step(gates, c)
        found.append((gates, *before, c, h))
    return found


def _order(x: Any, backwards: bool) -> range:
    steps = range(x.shape[0])
    return steps[::-1] if backwards else steps


class GruCellStep(Op):
    """h' = (1 - z) n + z h with n = tanh(x_n + r h_n), from the gates before their activation.

    (n, 3 hidden) from the input and from h, in the order r, z, n, and (n, hidden) give h'.
    Source: Cho et al., "Learning phrase representations using RNN encoder-decoder" (2014); h_n
    inside of r as in cuDNN.
    """

    def layout(shape, operands, parameters):
        return dense_strides(*operands[2])

    def forward(F, x_gates, h_gates, h):
        dtype = h.dtype
        x_gates, h_gates, h = _wide(F, x_gates, h_gates, h)
        _, z, n, _ = _gru_gates(F, x_gates, h_gates)
        return F.astype(n + z * (h - n), dtype)

    def backward(F, g, x_gates, h_gates, h):
        return F.gru_cell_step_backward(g, x_gates, h_gates, h)


@composite
def gru_cell_step_backward(F, g, x_gates, h_gates, h):
    """gz = g (h - n) z (1 - z), gn = g (1 - z) (1 - n^2), gr = gn h_n r (1 - r), gh = g z.

    The gates' gradients are (gr, gz, gn) towards the input and (gr, gz, gn r) towards h.
    """
    dtype = h.dtype
    g, x_gates, h_gates, h = _wide(F, g, x_gates, h_gates, h)
    r, z, n, h_n = _gru_gates(F, x_gates, h_gates)
    gz = F.sigmoid_backward(g * (h - n), z)
    gn = F.tanh_backward(g * (1 - z), n)
    gr = F.sigmoid_backward(gn * h_n, r)
    return (
        F.astype(F.concat([gr, gz, gn], axis=-1), dtype),
        F.astype(F.concat([gr, gz, gn * r], axis=-1), dtype),
        F.astype(g * z, dtype),
    )


def _gru_gates(F: Any, x_gates: Any, h_gates: Any) -> tuple[Any, Any, Any, Any]:
    """r, z, n, and h's part of n before it is reset."""
    x_r, x_z, x_n = _parts(x_gates, 3)
    h_r, h_z, h_n = _parts(h_gates, 3)
    r = F.sigmoid(x_r + h_r)
    return r, F.sigmoid(x_z + h_z), F.tanh(x_n + r * h_n), h_n


def _expect_floating(input: Tensor) -> None:
    if input.dtype.kind in "iu":
        raise uncastable(float32, input.dtype)


def _size(x: Tensor, axis: int) -> int:
    return x.shape[normalize_dim(axis, x.ndim)]


def _check(x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, gates: int) -> None:
    """Raise torch's errors for sizes that do not fit."""
    if _size(x, 1) != _size(w_ih, 1):
        raise RuntimeError(
            f"input has inconsistent input_size: got {x.shape[1]} expected {w_ih.shape[1]}"
        )
    size = _size(w_hh, 1)
    _check_hidden(x, h, size, 0)
    if w_ih.shape[0] != gates * size:
        raise RuntimeError(
            f"weight_ih first dim must be {gates} * hidden_size = {gates * size}, but got "
            f"{w_ih.shape[0]}"
        )


def _check_hidden(x: Tensor, h: Tensor, size: int, number: int) -> None:
    if x.shape[0] != _size(h, 0):
        raise RuntimeError(
            f"Input batch size {x.shape[0]} doesn't match hidden{number} batch size {h.shape[0]}"
        )
    if _size(h, 1) != size:
        raise RuntimeError(
            f"hidden{number} has inconsistent hidden_size: got {h.shape[1]}, expected {size}"
        )


def _sum_of_products(
    x: Tensor, h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None, b_hh: Tensor | None
) -> Tensor:
    """``x @ w_ih.T + h @ w_hh.T + b_ih + b_hh``, the second product added to the first."""
    bias = b_hh if b_ih is None else b_ih if b_hh is None else b_ih + b_hh
    return addmm(linear(x, w_ih, bias), h, w_hh.t())


@public("torch")
def lstm_cell(
    input: Tensor,
    hx: tuple[Tensor, Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: (n, in), two of (n, hidden), (4 hidden, in), (4 hidden, hidden) and
    biases (4 hidden,) give the hidden state and the cell, (n, hidden). Gates: i, f, g, o.

    Raises RuntimeError when sizes or dtypes do not fit.
    """
    if not isinstance(hx, (tuple, list)):
        raise TypeError(
            "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not "
            f"{type(hx).__name__}"
        )
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = hx
    expect_tensors("lstm_cell", input, h, w_ih, w_hh, b_ih, b_hh)
    _expect_floating(input)
    _check(input, h, w_ih, w_hh, 4)
    _check_hidden(input, c, w_hh.shape[1], 1)
    return apply(LstmCellStep, _sum_of_products(input, h, w_ih, w_hh, b_ih, b_hh), c)


@public("torch")
def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of a GRU: (n, in), (n, hidden), (3 hidden, in), (3 hidden, hidden) and biases
    (3 hidden,) give the hidden state, (n, hidden). Gates: r, z, n.

    Raises RuntimeError when sizes or dtypes do not fit.
    """
    _check(input, hx, w_ih, w_hh, 3)
    _expect_floating(input)
    return apply(GruCellStep, linear(input, w_ih, b_ih), linear(hx, w_hh, b_hh), hx)


def _plain_cell(name: str, activation: Callable[[Tensor], Tensor]) -> Any:
    def cell(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        _check(input, hx, w_ih, w_hh, 1)
        return activation(_sum_of_products(input, hx, w_ih, w_hh, b_ih, b_hh))

    word = activation.__name__
    cell.__name__ = cell.__qualname__ = name
    cell.__doc__ = f"""``{word}(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``, (n, hidden)."""
    return public("torch", names=(name,))(cell)


rnn_tanh_cell = _plain_cell("rnn_tanh_cell", tanh)
rnn_relu_cell = _plain_cell("rnn_relu_cell", relu)
