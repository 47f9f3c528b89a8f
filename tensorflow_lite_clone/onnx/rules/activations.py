"""Activation functions, softmax and dropout."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule
from tensorflow_lite_clone.onnx.rules.reductions import axes_of


@rule("hardtanh")
def hardtanh(g: Graph, op: Traced) -> Any:
    low, high = [g.number(limit, op.values[0]) for limit in (op["low"], op["high"])]
    return g.node("Clip", op.inputs[0], low, high)


@rule("leaky_relu")
def leaky_relu(g: Graph, op: Traced) -> Any:
    return g.node("LeakyRelu", op.inputs[0], alpha=float(op["slope"]))


@rule("prelu")
def prelu(g: Graph, op: Traced) -> Any:
    return g.node("PRelu", *op.inputs)


@rule("elu", "celu")
def elu(g: Graph, op: Traced) -> Any:
    x, like = op.inputs[0], op.values[0]
    alpha, scale, rate = float(op["alpha"]), float(op["scale"]), float(op["rate"])
    if rate == 1:
        if scale == 1:
            return g.node("Elu", x, alpha=alpha)
        return g.node("Selu", x, alpha=alpha, gamma=scale)
    zero = g.number(0, like)
    below = g.node("Exp", g.node("Mul", g.node("Min", x, zero), g.number(rate, like)))
    below = g.node("Sub", below, g.number(1, like))
    below = g.node("Mul", below, g.number(scale * alpha, like))
    above = g.node("Mul", x, g.number(scale, like))
    return g.node("Where", g.node("Greater", x, zero), above, below)


@rule("hardsigmoid")
def hardsigmoid(g: Graph, op: Traced) -> Any:
    return g.node("HardSigmoid", op.inputs[0], alpha=1 / 6, beta=0.5)


@rule("hardshrink", "softshrink")
def shrink(g: Graph, op: Traced) -> Any:
    width = float(op["lambd"])
    return g.node(
        "Shrink", op.inputs[0], lambd=width, bias=width if op.name == "softshrink" else 0.0
    )


@rule("gelu")
def gelu(g: Graph, op: Traced) -> Any:
    x, like = op.inputs[0], op.values[0]
    if g.opset >= 20:
        return g.node("Gelu", x)
    y = g.node("Erf", g.node("Mul", x, g.number(math.sqrt(0.5), like)))
    return _half_of_product(g, x, y, like)


@rule("gelu_tanh")
def gelu_tanh(g: Graph, op: Traced) -> Any:
    x, like = op.inputs[0], op.values[0]
    if g.opset >= 20:
        return g.node("Gelu", x, approximate="tanh")
    cubic = g.node("Mul", g.node("Mul", x, x), g.number(0.044715, like))
    y = g.node("Mul", x, g.node("Add", cubic, g.number(1, like)))
    y = g.node("Tanh", g.node("Mul", y, g.number(math.sqrt(2 / math.pi), like)))
    return _half_of_product(g, x, y, like)


def _half_of_product(g: Graph, x: Any, y: str, like: Any) -> str:
    """x (1 + y) / 2."""
    product = g.node("Mul", x, g.node("Add", y, g.number(1, like)))
    return g.node("Mul", product, g.number(0.5, like))


@rule("softplus")
def softplus(g: Graph, op: Traced) -> Any:
    x, like = op.inputs[0], op.values[0]
    beta = op["beta"]
    z = x if beta == 1 else g.node("Mul", x, g.number(beta, like))
    y = g.node("Softplus", z)
    y = y if beta == 1 else g.node("Div", y, g.number(beta, like))
    return g.node("Where", g.node("Greater", z, g.number(op["threshold"], like)), x, y)


@rule("log_sigmoid")
def log_sigmoid(g: Graph, op: Traced) -> Any:
    return g.node("Neg", g.node("Softplus", g.node("Neg", op.inputs[0])))


@rule("glu")
def glu(g: Graph, op: Traced) -> Any:
    a, b = g.node("Split", op.inputs[0], outputs=2, axis=op["axis"], num_outputs=2)
    return g.node("Mul", a, g.node("Sigmoid", b))


@rule("softmax", "log_softmax")
def softmax(g: Graph, op: Traced) -> Any:
    word = "Softmax" if op.name == "softmax" else "LogSoftmax"
    x, zero_dim = op.inputs[0], not op.values[0].shape
    if zero_dim:
        return g.squeeze(g.node(word, g.unsqueeze(x, [0]), axis=0), [0])
    return g.node(word, x, axis=op["axis"])


@rule("logsumexp")
def logsumexp(g: Graph, op: Traced) -> Any:
    axes = axes_of(op)
    return g.reduce("ReduceLogSumExp", op.inputs[0], axes, op["keepdims"])


@rule("dropout")
def dropout(g: Graph, op: Traced) -> Any:
    ratio = g.constant(op["p"], "float32")
    return g.node("Dropout", op.inputs[0], ratio, g.constant(True)), None
