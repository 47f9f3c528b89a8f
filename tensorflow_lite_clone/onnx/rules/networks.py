"""Convolutions, pooling, normalisation, resampling."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule
from tensorflow_lite_clone.onnx._sizes import Varying, varies
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError
from tensorflow_lite_clone.ops.nn._resample import windows


def _windows(op: Traced) -> dict[str, Any]:
    """The attributes of a convolution or a maximum over windows."""
    padding = list(op["padding"])
    return {
        "strides": list(op["stride"]),
        "dilations": list(op["dilation"]),
        "pads": padding + padding,
    }


@rule("conv")
def conv(g: Graph, op: Traced) -> Any:
    return g.node("Conv", *op.inputs, group=op["groups"], **_windows(op))


@rule("conv_transpose")
def conv_transpose(g: Graph, op: Traced) -> Any:
    """What the result has beyond the least size is the `output_padding`."""
    more = [
        size - ((count - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1)
        for size, count, kernel, stride, padding, dilation in zip(
            op.outputs[0].shape[2:], op.values[0].shape[2:], op.values[1].shape[2:],
            op["stride"], op["padding"], op["dilation"],
        )
    ]  # fmt: skip
    return g.node(
        "ConvTranspose", *op.inputs, group=op["groups"], output_padding=more, **_windows(op)
    )


def _reach(op: Traced, places: Any) -> dict[str, Any]:
    """Padding at the end that makes the last of `places` windows fit.

    Where `ceil_mode` adds one, PyTorch asks that it begins inside, and ONNX's shapes do not.
    """
    attributes = _windows(op)
    ends = [
        max((count - 1) * stride + dilation * (kernel - 1) + 1 - size - padding, padding)
        for count, size, kernel, stride, padding, dilation in zip(
            places, op.values[0].shape[2:], op["kernel"], op["stride"], op["padding"],
            op["dilation"],
        )
    ]  # fmt: skip
    return attributes | {"pads": list(op["padding"]) + ends, "kernel_shape": list(op["kernel"])}


@rule("max_pool")
def max_pool(g: Graph, op: Traced) -> Any:
    if varies(g.twins.shape(op.values[0])[2:]):
        attributes = _windows(op) | {"ceil_mode": int(op["ceil_mode"])}
        return g.node("MaxPool", op.inputs[0], kernel_shape=list(op["kernel"]), **attributes), None
    return g.node("MaxPool", op.inputs[0], **_reach(op, op.outputs[0].shape[2:])), None


@rule("max_pool_indices")
def max_pool_indices(g: Graph, op: Traced) -> Any:
    """ONNX counts places through samples and channels, PyTorch within a channel."""
    x = op.inputs[0]
    _, places = g.node("MaxPool", x, outputs=2, **_reach(op, op.values[1].shape[2:]))
    space = g.reduce("ReduceProd", g.node("Shape", x, start=2), [0], False)
    return g.node("Mod", places, space)


@rule("avg_pool")
def avg_pool(g: Graph, op: Traced) -> Any:
    if math.prod(op.outputs[0].shape[2:]) == 1 and varies(op.sizes("kernel")):
        return g.node("GlobalAveragePool", op.inputs[0])
    kernel, divisor = op["kernel"], op["divisor"]
    if divisor is not None and op["ceil_mode"]:
        raise UnsupportedOperatorError("'avg_pool' with ceil_mode and a divisor")
    padding = list(op["padding"])
    y = g.node(
        "AveragePool", op.inputs[0], kernel_shape=list(kernel), strides=list(op["stride"]),
        pads=padding + padding, ceil_mode=int(op["ceil_mode"]),
        count_include_pad=int(op["include"] or divisor is not None),
    )  # fmt: skip
    if divisor is None:
        return y
    return g.node("Mul", y, g.number(math.prod(kernel) / divisor, op.values[0]))


@rule("resample")
def resample(g: Graph, op: Traced) -> Any:
    """Sums of elements along an axis, with fixed places and weights."""
    axis, taps, like = op["axis"], op["taps"], op.values[0]
    if isinstance(g.twins.shape(like)[axis], Varying):
        raise UnsupportedOperatorError("resampling along a dynamic dimension")
    if not taps.weighted:
        places = g.integers([row[0][0] for row in taps.rows])
        return g.node("Gather", op.inputs[0], places, axis=axis)
    weights = np.zeros((taps.size, len(taps.rows)), like.dtype)
    for number, row in enumerate(taps.rows):
        for place, weight in row:
            weights[place, number] += weight
    ndim = len(like.shape)
    order = [*(d for d in range(ndim) if d != axis), axis]
    y = g.node("MatMul", g.permute(op.inputs[0], order), g.constant(weights))
    return g.permute(y, sorted(range(ndim), key=order.__getitem__))


def _or_constant(g: Graph, name: str | None, value: float, shape: tuple, like: Any) -> str:
    """A weight, or the number that changes nothing where there is none."""
    return g.constant(np.full(shape, value), like.dtype) if name is None else name


@rule("batch_norm_eval")
def batch_norm_eval(g: Graph, op: Traced) -> Any:
    x, w, b, mean, variance = op.inputs
    like, channels = op.values[0], op.values[0].shape[1:2]
    w, b = _or_constant(g, w, 1, channels, like), _or_constant(g, b, 0, channels, like)
    return g.node("BatchNormalization", x, w, b, mean, variance, epsilon=float(op["eps"]))


@rule("batch_norm")
def batch_norm(g: Graph, op: Traced) -> Any:
    """With the statistics of the batch itself."""
    x, w, b, *_ = op.inputs
    ndim = len(op.values[0].shape)
    axes = [d for d in range(ndim) if d != 1]
    y = _normalized(g, op, g.node("Sub", x, g.reduce("ReduceMean", x, axes)), axes)
    y = _scaled(g, y, w, b, range(1, ndim - 1))
    return (y, *[None] * (len(op.outputs) - 1)) if len(op.outputs) > 1 else y


def _normalized(g: Graph, op: Traced, x: Any, axes: list[int]) -> str:
    """x / sqrt(mean(x^2) + eps)."""
    square = g.reduce("ReduceMean", g.node("Mul", x, x), axes)
    root = g.node("Sqrt", g.node("Add", square, g.number(op["eps"], op.values[0])))
    return g.node("Div", x, root)


def _scaled(g: Graph, y: str, w: str | None, b: str | None, more: Any) -> str:
    """Per channel times w, plus b, which get dimensions `more`."""
    if w is not None:
        y = g.node("Mul", y, g.unsqueeze(w, list(more)))
    return y if b is None else g.node("Add", y, g.unsqueeze(b, list(more)))


@rule("layer_norm")
def layer_norm(g: Graph, op: Traced) -> Any:
    x, w, b = op.inputs
    like = op.values[0]
    shape = g.twins.shape(like)[len(like.shape) - op["ndim"] :]
    if w is None and varies(shape):
        raise UnsupportedOperatorError("'layer_norm' without weight over a dynamic dimension")
    w = _or_constant(g, w, 1, like.shape[len(like.shape) - op["ndim"] :], like)
    y = g.node("LayerNormalization", x, w, b, axis=-op["ndim"], epsilon=float(op["eps"]))
    return y, None, None


@rule("rms_norm")
def rms_norm(g: Graph, op: Traced) -> Any:
    x, w = op.inputs
    ndim = len(op.values[0].shape)
    y = _normalized(g, op, x, list(range(ndim - op["ndim"], ndim)))
    return (y if w is None else g.node("Mul", y, w)), None


@rule("group_norm")
def group_norm(g: Graph, op: Traced) -> Any:
    x, w, b = op.inputs
    like, groups = op.values[0], op["groups"]
    rows = g.node("Reshape", x, g.integers([0, groups, -1]))  # 0 keeps the number of samples
    one, zero = [g.constant(np.full(groups, value), like.dtype) for value in (1, 0)]
    y = g.node("InstanceNormalization", rows, one, zero, epsilon=float(op["eps"]))
    y = g.node("Reshape", y, g.node("Shape", x))
    return _scaled(g, y, w, b, range(1, len(like.shape) - 1)), None, None


@rule("adaptive_max_indices")
def adaptive_max_indices(g: Graph, op: Traced) -> Any:
    """Every window's places in the flat space, of which the largest element is looked for."""
    shape = g.twins.shape(op.values[0])
    if varies(shape[2:]):
        raise UnsupportedOperatorError("'adaptive_max_pool' of a dynamic size")
    space = np.arange(math.prod(op.values[0].shape[2:])).reshape(op.values[0].shape[2:])
    axes = [windows(size, count) for size, count in zip(space.shape, op["counts"])]
    places = [space[np.ix_(*window)].ravel() for window in itertools.product(*axes)]
    longest = max(map(len, places))
    table = np.array([np.pad(line, (0, longest - len(line)), "edge") for line in places])
    flat = g.node("Reshape", op.inputs[0], g.integers([0, 0, -1]))
    seen = g.node("Gather", flat, g.constant(table, np.int64), axis=2)
    best = g.node("ArgMax", seen, axis=3, keepdims=0)
    rows = g.constant(np.arange(len(table)) * longest, np.int64)
    found = g.node("Gather", g.constant(table.ravel(), np.int64), g.node("Add", best, rows), axis=0)
    return g.reshape(found, [*shape[:2], *op["counts"]], op)
