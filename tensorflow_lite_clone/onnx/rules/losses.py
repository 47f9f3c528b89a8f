"""Losses."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule
from tensorflow_lite_clone.onnx.rules.pointwise import times


def _reduced(g: Graph, op: Traced, values: str) -> str:
    reduction = op["reduction"]
    if reduction == "none":
        return values
    word = "ReduceMean" if reduction == "mean" else "ReduceSum"
    return g.node(word, values, keepdims=0)


@rule("mse_loss")
def mse_loss(g: Graph, op: Traced) -> Any:
    distance = g.node("Sub", *op.inputs)
    return _reduced(g, op, g.node("Mul", distance, distance))


@rule("l1_loss")
def l1_loss(g: Graph, op: Traced) -> Any:
    return _reduced(g, op, g.node("Abs", g.node("Sub", *op.inputs)))


@rule("smooth_l1_loss", "huber_loss")
def huber_loss(g: Graph, op: Traced) -> Any:
    """A parabola up to a width, a line beyond; the smooth one is the other over that width."""
    like = op.values[0]
    width = op["delta" if op.name == "huber_loss" else "beta"]
    distance = g.node("Sub", *op.inputs)
    size = g.node("Abs", distance)
    parabola = times(g, g.node("Mul", distance, distance), 0.5, like)
    line = times(g, g.node("Sub", size, g.number(0.5 * width, like)), width, like)
    values = g.node("Where", g.node("Less", size, g.number(width, like)), parabola, line)
    if op.name == "smooth_l1_loss" and width:
        values = times(g, values, 1 / width, like)
    elif not width:
        values = size
    return _reduced(g, op, values)


@rule("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(g: Graph, op: Traced) -> Any:
    x, y, weight, pos_weight = op.inputs
    one = g.number(1, op.values[0])
    soft = g.node("Softplus", g.node("Neg", x))
    if pos_weight is not None:
        more = g.node("Mul", g.node("Sub", pos_weight, one), y)
        soft = g.node("Mul", soft, g.node("Add", more, one))
    values = g.node("Add", g.node("Mul", g.node("Sub", one, y), x), soft)
    return _reduced(g, op, values if weight is None else g.node("Mul", values, weight))


@rule("kl_div")
def kl_div(g: Graph, op: Traced) -> Any:
    x, t = op.inputs
    if op["log_target"]:
        return _reduced(g, op, g.node("Mul", g.node("Exp", t), g.node("Sub", t, x)))
    zero = g.number(0, op.values[0])
    entropy = g.node("Mul", t, g.node("Log", t))
    entropy = g.node("Where", g.node("Equal", t, zero), zero, entropy)
    return _reduced(g, op, g.node("Sub", entropy, g.node("Mul", t, x)))


@rule("cross_entropy", "nll_loss")
def cross_entropy(g: Graph, op: Traced) -> Any:
    """Of class indices: the weighted mean over the targets that are not ignored."""
    x, target, weight = op.inputs
    axis, like = op["axis"], op.values[0]
    zero = g.number(0, like)
    if op.name == "cross_entropy":
        x = g.node("LogSoftmax", x, axis=axis)
    ignored = g.node("Equal", target, g.number(op["ignore_index"], op.values[1]))
    label = g.node("Where", ignored, g.number(0, op.values[1]), target)
    index = g.cast(g.unsqueeze(label, [axis]), "int64")
    picked = g.squeeze(g.node("GatherElements", x, index, axis=axis), [axis])
    w = g.number(1, like) if weight is None else g.node("Gather", weight, label)
    w = g.node("Where", ignored, zero, w)
    loss = g.node("Mul", g.node("Neg", picked), w)
    smoothing = op["smoothing"] if op.name == "cross_entropy" else 0
    if smoothing:
        classes = like.shape[axis]
        if weight is not None:
            x = g.node("Mul", x, g.unsqueeze(weight, list(range(1, len(like.shape) - axis))))
        smooth = g.node("Neg", g.reduce("ReduceSum", x, [axis], False))
        smooth = times(g, g.node("Where", ignored, zero, smooth), smoothing / classes, like)
        loss = g.node("Add", times(g, loss, 1 - smoothing, like), smooth)
    if op["reduction"] != "none":
        loss = g.node("ReduceSum", loss, keepdims=0)
    if op["reduction"] == "mean":
        loss = g.node("Div", loss, g.node("ReduceSum", w, keepdims=0))
    return (loss, None) if op.name == "cross_entropy" else loss
