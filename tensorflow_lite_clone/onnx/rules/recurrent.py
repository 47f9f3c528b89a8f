"""Recurrent layers, of which each direction is one node, and their cells."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule

#: Where ONNX's order of gates finds each in PyTorch's: i, f, g, o and r, z, n.
_ORDERS = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _ordered(g: Graph, name: Any, order: tuple[int, ...]) -> str:
    """A weight or bias with its gates in ONNX's order."""
    if len(order) == 1:
        return str(name)
    parts = g.node("Split", name, outputs=len(order), axis=0, num_outputs=len(order))
    return g.node("Concat", *[parts[place] for place in order], axis=0)


@rule("lstm", "gru", "rnn_tanh", "rnn_relu")
def sequence(g: Graph, op: Traced) -> Any:
    """One cell over all steps: outputs (steps, n, hidden) and the last state."""
    x, w, r, w_bias, r_bias, *states = op.inputs
    word, _, activation = op.name.partition("_")
    kind = word.upper()
    weights = [g.unsqueeze(_ordered(g, name, _ORDERS[kind]), [0]) for name in (w, r)]
    bias = None
    if w_bias is not None:
        parts = [_ordered(g, name, _ORDERS[kind]) for name in (w_bias, r_bias)]
        bias = g.unsqueeze(g.node("Concat", *parts, axis=0), [0])
    options: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
    if activation:
        options["activations"] = [activation.capitalize()]
    starts = [g.unsqueeze(state, [0]) for state in states if state is not None]
    out, *ends = g.node(
        kind, x, *weights, bias, None, *starts, outputs=1 + len(states),
        hidden_size=op.values[2].shape[1], direction="reverse" if op["backwards"] else "forward",
        **options,
    )  # fmt: skip
    return g.squeeze(out, [1]), *[g.squeeze(end, [0]) for end in ends]


@rule("lstm_cell_step")
def lstm_cell_step(g: Graph, op: Traced) -> Any:
    gates, c = op.inputs
    i, f, n, o = g.node("Split", gates, outputs=4, axis=-1, num_outputs=4)
    i, f, o = [g.node("Sigmoid", x) for x in (i, f, o)]
    kept, new = g.node("Mul", f, c), g.node("Mul", i, g.node("Tanh", n))
    c = g.node("Add", kept, new)
    return g.node("Mul", o, g.node("Tanh", c)), c


@rule("gru_cell_step")
def gru_cell_step(g: Graph, op: Traced) -> Any:
    x_gates, h_gates, h = op.inputs
    x_r, x_z, x_n = g.node("Split", x_gates, outputs=3, axis=-1, num_outputs=3)
    h_r, h_z, h_n = g.node("Split", h_gates, outputs=3, axis=-1, num_outputs=3)
    r = g.node("Sigmoid", g.node("Add", x_r, h_r))
    z = g.node("Sigmoid", g.node("Add", x_z, h_z))
    n = g.node("Tanh", g.node("Add", x_n, g.node("Mul", r, h_n)))
    return g.node("Add", n, g.node("Mul", z, g.node("Sub", h, n)))
