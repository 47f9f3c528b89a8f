"""Sums, means, extremes, sorting, running sums."""

from __future__ import annotations

import math
from typing import Any

from tensorflow_lite_clone.onnx._graph import RULES, Graph, Traced, rule
from tensorflow_lite_clone.onnx._sizes import Varying
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError


def axes_of(op: Traced) -> list[int]:
    """The dimensions that are reduced: all of them where the argument is None."""
    axis, ndim = op["axis"], len(op.values[0].shape)
    if axis is None:
        return list(range(ndim))
    return [d % ndim for d in ((axis,) if isinstance(axis, int) else axis)] if ndim else []


def _enter(name: str, word: str) -> None:
    RULES[name] = lambda g, op: g.reduce(word, _numbers(g, op), axes_of(op), op["keepdims"])


def _numbers(g: Graph, op: Traced) -> Any:
    """The input in the dtype of the result, which sums of integers widen."""
    dtype = op.outputs[0].dtype
    x = op.inputs[0]
    return x if op.values[0].dtype == dtype else g.cast(x, dtype)


for _name, _word in {"sum": "ReduceSum", "mean": "ReduceMean", "prod": "ReduceProd"}.items():
    _enter(_name, _word)


@rule("nansum")
def nansum(g: Graph, op: Traced) -> Any:
    x = op.inputs[0]
    x = g.node("Where", g.node("IsNaN", x), g.number(0, op.values[0]), x)
    return g.reduce("ReduceSum", x, axes_of(op), op["keepdims"])


@rule("count_nonzero")
def count_nonzero(g: Graph, op: Traced) -> Any:
    counted = g.cast(g.cast(op.inputs[0], "bool"), "int64")
    return g.reduce("ReduceSum", counted, axes_of(op), False)


@rule("any", "all")
def any_or_all(g: Graph, op: Traced) -> Any:
    """Whether any is true; all are if none of their opposites is."""
    x = g.cast(op.inputs[0], "bool")
    if op.name == "all":
        x = g.node("Not", x)
    found = g.cast(g.reduce("ReduceSum", g.cast(x, "int32"), axes_of(op), op["keepdims"]), "bool")
    if op.name == "all":
        found = g.node("Not", found)
    return found if op.outputs[0].dtype.kind == "b" else g.cast(found, op.outputs[0].dtype)


def count_of(g: Graph, op: Traced, axes: list[int]) -> Any:
    """How many elements are reduced to one: a number, or the name of a line of int64."""
    shape = g.twins.shape(op.values[0])
    fixed = math.prod([size for d in axes if not isinstance(size := shape[d], Varying)])
    dynamic = [size for d in axes if isinstance(size := shape[d], Varying)]
    if not dynamic:
        return fixed
    count = g.integers([fixed])
    for size in dynamic:
        count = g.node("Mul", count, g.size(size, op))
    return count


@rule("var", "std")
def var(g: Graph, op: Traced) -> Any:
    x, like = op.inputs[0], op.values[0]
    axes, keepdims = axes_of(op), op["keepdims"]
    distance = g.node("Sub", x, g.reduce("ReduceMean", x, axes))
    total = g.reduce("ReduceSum", g.node("Mul", distance, distance), axes, keepdims)
    count, correction = count_of(g, op, axes), op["correction"]
    if isinstance(count, str):
        count = g.squeeze(g.cast(count, like.dtype), [0])
        degrees = g.node("Sub", count, g.number(correction, like))
        degrees = g.node("Max", degrees, g.number(0, like))
    else:
        degrees = g.number(max(count - correction, 0), like)
    result = g.node("Div", total, degrees)
    return result if op.name == "var" else g.node("Sqrt", result)


@rule("vector_norm")
def vector_norm(g: Graph, op: Traced) -> Any:
    x, like, power = op.inputs[0], op.values[0], op["ord"]
    axes, keepdims = axes_of(op), op["keepdims"]
    if power in (1, 2):
        return g.reduce(f"ReduceL{int(power)}", x, axes, keepdims)
    size = g.node("Abs", x)
    if abs(power) == math.inf:
        return g.reduce("ReduceMax" if power > 0 else "ReduceMin", size, axes, keepdims)
    if power == 0:
        size = g.cast(g.cast(size, "bool"), like.dtype)
        return g.reduce("ReduceSum", size, axes, keepdims)
    total = g.reduce("ReduceSum", g.node("Pow", size, g.number(power, like)), axes, keepdims)
    return g.node("Pow", total, g.number(1 / power, like))


@rule("amax", "amin")
def extreme(g: Graph, op: Traced) -> Any:
    word = "ReduceMax" if op.name == "amax" else "ReduceMin"
    x, boolean = op.inputs[0], op.values[0].dtype.kind == "b"
    if boolean:
        x = g.cast(x, "int32")
    found = g.reduce(word, x, axes_of(op), op["keepdims"])
    return g.cast(found, "bool") if boolean else found


@rule("argmax", "argmin")
def place_of_extreme(g: Graph, op: Traced) -> Any:
    return _place(g, op, "ArgMax" if op.name == "argmax" else "ArgMin")


def _place(g: Graph, op: Traced, word: str) -> str:
    x, axis = op.inputs[0], op["axis"]
    ndim = len(op.values[0].shape)
    if not ndim:
        return g.squeeze(g.node(word, g.unsqueeze(x, [0]), axis=0, keepdims=1), [0])
    if axis is not None:
        return g.node(word, x, axis=axis, keepdims=int(op["keepdims"]))
    found = g.node(word, g.reshape(x, [-1]), axis=0, keepdims=0)
    return g.reshape(found, [1] * ndim) if op["keepdims"] else found


@rule("max_with_indices", "min_with_indices")
def extreme_with_place(g: Graph, op: Traced) -> Any:
    word = "Max" if op.name.startswith("max") else "Min"
    axes = axes_of(op)
    found = g.reduce(f"Reduce{word}", op.inputs[0], axes, op["keepdims"])
    return found, _place(g, op, f"Arg{word}")


def _top(g: Graph, op: Traced, k: str, largest: bool) -> Any:
    if not op.values[0].shape:
        raise UnsupportedOperatorError(f"'{op.name}' of a zero-dim tensor")
    return g.node(
        "TopK", op.inputs[0], k, outputs=2, axis=op["axis"], largest=int(largest), sorted=1
    )


@rule("topk")
def topk(g: Graph, op: Traced) -> Any:
    return _top(g, op, g.integers([op["k"]]), op["largest"])


@rule("sort_with_indices")
def sort(g: Graph, op: Traced) -> Any:
    axis = op["axis"]
    return _top(g, op, g.node("Shape", op.inputs[0], start=axis, end=axis + 1), op["descending"])


@rule("kthvalue")
def kthvalue(g: Graph, op: Traced) -> Any:
    return _kth(g, op, op["k"], op["axis"])


def _kth(g: Graph, op: Traced, k: int, axis: int) -> Any:
    last = g.constant(k - 1, "int64")
    picked = [g.node("Gather", x, last, axis=axis) for x in _top(g, op, g.integers([k]), False)]
    return tuple([g.unsqueeze(x, [axis]) for x in picked] if op["keepdims"] else picked)


@rule("median_with_indices")
def median(g: Graph, op: Traced) -> Any:
    """The lower median, by sorting all below it."""
    return _kth(g, op, _half(g, op, op["axis"]), op["axis"])


@rule("median_of_all")
def median_of_all(g: Graph, op: Traced) -> Any:
    """The same of a line."""
    k = _half(g, op, 0)
    values, _ = g.node(
        "TopK", op.inputs[0], g.integers([k]), outputs=2, axis=0, largest=0, sorted=1
    )
    return g.node("Gather", values, g.constant(k - 1, "int64"), axis=0)


def _half(g: Graph, op: Traced, axis: int) -> int:
    size = g.twins.shape(op.values[0])[axis]
    if isinstance(size, Varying):
        raise UnsupportedOperatorError("'median' along a dynamic dimension")
    return (size - 1) // 2 + 1


@rule("cumsum")
def cumsum(g: Graph, op: Traced) -> Any:
    x = op.inputs[0]
    if not op.values[0].shape:
        return x
    return g.node("CumSum", x, g.constant(op["axis"], "int64"))
