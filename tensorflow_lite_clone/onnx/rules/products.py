"""Matrix products and attention."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule
from tensorflow_lite_clone.onnx._sizes import Varying
from tensorflow_lite_clone.onnx.rules.pointwise import times


@rule("mm", "bmm", "mv", "dot")
def matmul(g: Graph, op: Traced) -> Any:
    return g.node("MatMul", *op.inputs)


@rule("addmm", "baddbmm")
def addmm(g: Graph, op: Traced) -> Any:
    x, y, z = op.inputs
    like = op.values[0]
    if len(op.values[1].shape) == len(op.values[2].shape) == 2 and like.dtype.kind == "f":
        return g.node("Gemm", y, z, x, alpha=float(op["alpha"]), beta=float(op["beta"]))
    product = times(g, g.node("MatMul", y, z), op["alpha"], like)
    return product if op["beta"] == 0 else g.node("Add", product, times(g, x, op["beta"], like))


@rule("linear")
def linear(g: Graph, op: Traced) -> Any:
    x, w, b = op.inputs
    if len(op.values[0].shape) == len(op.values[1].shape) == 2 and op.values[0].dtype.kind == "f":
        return g.node("Gemm", x, w, b, transB=1)
    if len(op.values[1].shape) == 2:
        w = g.permute(w, (1, 0))
    y = g.node("MatMul", x, w)
    return y if b is None else g.node("Add", y, b)


@rule("attention")
def attention(g: Graph, op: Traced) -> Any:
    """softmax(q k^T scale + mask) v; rows that keep nothing are 0."""
    q, k, v, mask = op.inputs
    like = op.values[0]
    if op["groups"] > 1:
        k, v = [_repeated(g, op, number) for number in (1, 2)]
    ndim = len(op.values[1].shape)
    transposed = g.permute(k, (*range(ndim - 2), ndim - 1, ndim - 2))
    scores = g.node("MatMul", g.node("Mul", q, g.number(op["scale"], like)), transposed)
    keep = mask if mask is not None and op.values[3].dtype.kind == "b" else None
    if mask is not None and keep is None:
        scores = g.node("Add", scores, mask)
    if op["causal"]:
        lower = _lower_triangle(g, op)
        keep = lower if keep is None else g.node("And", keep, lower)
    if keep is None and mask is None:
        return g.node("MatMul", g.node("Softmax", scores, axis=-1), v), None
    nothing = g.number(-np.inf, like)
    if keep is None:  # a row of a floating mask may also keep nothing
        highest = g.reduce("ReduceMax", scores, [len(op.values[0].shape) - 1])
        keep = g.node("Not", g.node("Equal", highest, nothing))
    else:
        scores = g.node("Where", keep, scores, nothing)
    weights = g.node("Softmax", scores, axis=-1)
    return g.node("MatMul", g.node("Where", keep, weights, g.number(0, like)), v), None


def _lower_triangle(g: Graph, op: Traced) -> str:
    rows, columns = [g.twins.shape(op.values[number])[-2] for number in (0, 1)]
    if not isinstance(rows, Varying) and not isinstance(columns, Varying):
        return g.constant(np.tri(rows, columns, dtype=bool))
    one = g.onnx.numpy_helper.from_array(np.ones(1, np.int32))
    ones = g.node("ConstantOfShape", g.shape_of([rows, columns], op), value=one)
    return g.cast(g.node("Trilu", ones, upper=0), "bool")


def _repeated(g: Graph, op: Traced, number: int) -> str:
    """Keys or values, every head `groups` times."""
    value, groups = op.values[number], op["groups"]
    shape = g.twins.shape(value)
    heads = len(shape) - 3
    expanded = g.unsqueeze(op.inputs[number], [heads + 1])
    repeats = [1] * (len(shape) + 1)
    repeats[heads + 1] = groups
    expanded = g.node("Tile", expanded, g.integers(repeats))
    target: list[Any] = list(shape)
    target[heads] *= groups
    return g.reshape(expanded, target, op)
