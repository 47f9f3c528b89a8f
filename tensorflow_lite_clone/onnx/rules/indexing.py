"""Reads and writes at indices and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule
from tensorflow_lite_clone.onnx._sizes import Varying
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError
from tensorflow_lite_clone.onnx.rules.shapes import expanded

_REDUCTIONS = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


@rule("embedding")
def embedding(g: Graph, op: Traced) -> Any:
    return g.node("Gather", *op.inputs, axis=0)


@rule("index_select", "index_along")
def index_select(g: Graph, op: Traced) -> Any:
    return g.node("Gather", *op.inputs, axis=op["axis"])


@rule("gather", "gather_sparse")
def gather(g: Graph, op: Traced) -> Any:
    return g.node("GatherElements", *op.inputs, axis=op["axis"])


@rule("one_hot")
def one_hot(g: Graph, op: Traced) -> Any:
    places = g.constant(np.arange(op["classes"]), op.values[0].dtype)
    rows = g.unsqueeze(op.inputs[0], [len(op.values[0].shape)])
    return g.cast(g.node("Equal", rows, places), "int64")


def _places_first(op: Traced, places: tuple) -> list[int]:
    """The order of dimensions that brings `places` to the front."""
    return [*places, *(d for d in range(len(op.values[0].shape)) if d not in places)]


def _rows_of(g: Graph, op: Traced) -> str:
    """The stacked index (k, ...) as (..., k)."""
    ndim = len(op.values[1].shape)
    return g.permute(op.inputs[1], [*range(1, ndim), 0])


def _found_first(op: Traced, places: tuple) -> list[int]:
    """The order of dimensions that brings those of the index, which stay where the places are
    side by side, to the front of what is found."""
    width = len(op.values[1].shape) - 1
    rest = len(op.values[0].shape) - len(places)
    at = places[0] if places[-1] - places[0] + 1 == len(places) else 0
    return [*range(at, at + width), *range(at), *range(at + width, width + rest)]


def _inverse(order: list[int]) -> list[int]:
    return sorted(range(len(order)), key=order.__getitem__)


@rule("index")
def index(g: Graph, op: Traced) -> Any:
    places = op["places"]
    if len(places) == 1:
        return g.node(
            "Gather",
            op.inputs[0],
            g.squeeze(op.inputs[1], [0]),
            axis=places[0],
        )
    x = g.permute(op.inputs[0], _places_first(op, places))
    found = g.node("GatherND", x, _rows_of(g, op))
    return g.permute(found, _inverse(_found_first(op, places)))


@rule("index_put")
def index_put(g: Graph, op: Traced) -> Any:
    places = op["places"]
    shape, among = g.twins.shape(op.values[0]), g.twins.shape(op.values[1])[1:]
    order = _places_first(op, places)
    rest = tuple([shape[d] for d in order[len(places) :]])
    first = _found_first(op, places)
    found = [(*among, *rest)[d] for d in _inverse(first)]
    value = g.node("Expand", op.inputs[2], g.shape_of(found, op))
    return _written(
        g, op, order, _rows_of(g, op), g.permute(value, first),
        "add" if op["accumulate"] else None,
    )  # fmt: skip


def _written(
    g: Graph, op: Traced, order: list[int], rows: str, value: str, reduction: str | None
) -> str:
    x = g.permute(op.inputs[0], order)
    x = g.node("ScatterND", x, rows, value, reduction=reduction)
    return g.permute(x, _inverse(order))


@rule("index_add")
def index_add(g: Graph, op: Traced) -> Any:
    axis = op["axis"]
    order = _places_first(op, (axis,))
    rows = g.unsqueeze(op.inputs[1], [1])
    value = g.permute(op.inputs[2], order)
    return _written(g, op, order, rows, value, "add")


@rule("index_mask")
def index_mask(g: Graph, op: Traced) -> Any:
    rows = g.permute(g.node("NonZero", op.inputs[1]), (1, 0))
    return g.node("GatherND", op.inputs[0], rows)


def _reaching(g: Graph, op: Traced) -> str:
    """The mask of the leading dimensions, with all of them."""
    ndim = len(op.values[1].shape)
    more = list(range(ndim, len(op.values[0].shape)))
    return g.unsqueeze(op.inputs[1], more)


@rule("mask_put")
def mask_put(g: Graph, op: Traced) -> Any:
    x, mask, value = op.inputs
    found = 1 + len(op.values[0].shape) - len(op.values[1].shape)
    if not op.values[2].shape:
        return g.node("Where", _reaching(g, op), value, x)
    if len(op.values[2].shape) != found:
        raise UnsupportedOperatorError("'mask_put' of a value that is broadcast to what is found")
    return g.node("ScatterND", x, g.permute(g.node("NonZero", mask), (1, 0)), value)


@rule("masked_fill")
def masked_fill(g: Graph, op: Traced) -> Any:
    x, mask, value = op.inputs
    return g.node("Where", mask, value, x)


@rule("scatter", "scatter_add", "scatter_reduce")
def scatter(g: Graph, op: Traced) -> Any:
    x, places, source = op.inputs
    reduction = "add" if op.name == "scatter_add" else None
    if op.name == "scatter_reduce":
        reduction = _REDUCTIONS.get(op["how"])
        if reduction is None or not op["include_self"]:
            raise UnsupportedOperatorError(
                "'scatter_reduce' with include_self=False, or of means, has no form in ONNX"
            )
    if not op.values[2].shape:
        source = expanded(g, op, source, op.values[1])
    return g.node("ScatterElements", x, places, source, axis=op["axis"], reduction=reduction)


@rule("col2im")
def col2im(g: Graph, op: Traced) -> Any:
    pads = list(op["padding"])
    return g.node(
        "Col2Im", op.inputs[0], g.integers(op["size"]), g.integers(op["kernel"]),
        dilations=list(op["dilation"]), pads=pads + pads, strides=list(op["stride"]),
    )  # fmt: skip


@rule("im2col")
def im2col(g: Graph, op: Traced) -> Any:
    """Windows by their places, one axis after the other."""
    shape = g.twins.shape(op.values[0])
    if any(isinstance(size, Varying) for size in shape[2:]):
        raise UnsupportedOperatorError("'im2col' of dynamic sizes")
    pads = [0, 0, *op["padding"]]
    x = g.node("Pad", op.inputs[0], g.integers(pads + pads))
    for axis, (size, kernel, stride, padding, dilation) in enumerate(
        zip(shape[2:], op["kernel"], op["stride"], op["padding"], op["dilation"])
    ):
        count = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        places = np.arange(kernel)[:, None] * dilation + np.arange(count) * stride
        x = g.node("Gather", x, g.constant(places, np.int64), axis=2 + 2 * axis)
    x = g.permute(x, [0, 1, 2, 4, 3, 5])  # (n, c, *kernel, *count)
    return g.reshape(x, g.twins.shape(op.outputs[0]), op)


@rule("search_sorted")
def search_sorted(g: Graph, op: Traced) -> Any:
    """How many of the sorted rows lie before each value."""
    rows, values, sorter = op.inputs
    if sorter is not None:
        raise UnsupportedOperatorError("'searchsorted' with a sorter")
    ndim = len(op.values[0].shape)
    last = len(op.values[1].shape)
    rows = rows if ndim == 1 else g.unsqueeze(rows, [ndim - 1])
    word = "Less" if op["side"] == "left" else "LessOrEqual"
    before = g.node(word, rows, g.unsqueeze(values, [last]))
    return g.reduce("ReduceSum", g.cast(before, "int64"), [last], False)


@rule("is_in")
def is_in(g: Graph, op: Traced) -> Any:
    x, y = g.unsqueeze(op.inputs[0], [len(op.values[0].shape)]), g.reshape(op.inputs[1], [-1])
    found = g.cast(g.node("Equal", x, y), "int32")
    return g.cast(g.reduce("ReduceSum", found, [len(op.values[0].shape)], False), "bool")
