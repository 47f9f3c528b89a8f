"""Shapes: views, parts, joins, padding, and writes into parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.onnx._graph import Graph, Traced, rule
from tensorflow_lite_clone.onnx._sizes import Varying, varies
from tensorflow_lite_clone.onnx._trace import Region
from tensorflow_lite_clone.onnx.errors import UnsupportedOperatorError

_LAST, _FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


@rule("view", "unsafe_view")
def view(g: Graph, op: Traced) -> Any:
    return g.reshape(op.inputs[0], op.sizes("shape"), op)


@rule("permute", "transpose")
def permute(g: Graph, op: Traced) -> Any:
    ndim = len(op.values[0].shape)
    return g.permute(op.inputs[0], [axis % ndim for axis in op["axes"]])


@rule("squeeze")
def squeeze(g: Graph, op: Traced) -> Any:
    axis = op["axis"]
    axes = [axis] if isinstance(axis, int) else list(axis)
    return g.squeeze(op.inputs[0], axes)


@rule("unsqueeze")
def unsqueeze(g: Graph, op: Traced) -> Any:
    return g.unsqueeze(op.inputs[0], [op["axis"]])


@rule("expand")
def expand(g: Graph, op: Traced) -> Any:
    return g.node("Expand", op.inputs[0], g.shape_of(op.sizes("shape"), op))


@rule("select", "slice", "basic_index")
def basic_index(g: Graph, op: Traced) -> Any:
    """Integers, slices, None and an Ellipsis: slices first, then integers, then None."""
    x, shape = op.inputs[0], g.twins.shape(op.values[0])
    index = op.sizes("index")
    items = list(index) if type(index) is tuple else [index]
    named = sum(item is not None and item is not Ellipsis for item in items)
    place = items.index(Ellipsis) if Ellipsis in items else len(items)
    items[place : place + 1] = [slice(None)] * (len(shape) - named)
    slices, picked, added = [], [], []
    axis = result = 0
    for item in items:
        if item is None:
            added.append(result)
            result += 1
        elif isinstance(item, slice):
            if item != slice(None):
                slices.append((axis, item))
            axis, result = axis + 1, result + 1
        else:
            picked.append((axis, item))
            axis += 1
    if slices:
        axes = [axis for axis, _ in slices]
        starts = [0 if item.start is None else item.start for _, item in slices]
        stops = [_LAST if item.stop is None else item.stop for _, item in slices]
        steps = [1 if item.step is None else item.step for _, item in slices]
        x = g.node(
            "Slice", x, g.shape_of(starts, op), g.shape_of(stops, op), g.integers(axes),
            g.integers(steps),
        )  # fmt: skip
    for axis, number in reversed(picked):
        at = (
            g.squeeze(g.size(number, op), [0])
            if isinstance(number, Varying)
            else g.constant(number, np.int64)
        )
        x = g.node("Gather", x, at, axis=axis)
    return g.unsqueeze(x, added)


@rule("split")
def split(g: Graph, op: Traced) -> Any:
    sizes = op.sizes("sizes")
    if len(sizes) == 1:
        return (op.inputs[0],)
    return g.node("Split", op.inputs[0], g.shape_of(sizes, op), outputs=len(sizes), axis=op["axis"])


@rule("unbind")
def unbind(g: Graph, op: Traced) -> Any:
    axis, count = op["axis"], len(op.outputs)
    if count == 1:
        return (g.squeeze(op.inputs[0], [axis]),)
    parts = g.node("Split", op.inputs[0], outputs=count, axis=axis, num_outputs=count)
    return tuple([g.squeeze(part, [axis]) for part in parts])


@rule("cat")
def cat(g: Graph, op: Traced) -> Any:
    return g.node("Concat", *op.inputs, axis=op["axis"])


@rule("stack")
def stack(g: Graph, op: Traced) -> Any:
    axis = op["axis"] % (len(op.values[0].shape) + 1)
    parts = [g.unsqueeze(x, [axis]) for x in op.inputs if x is not None]
    return g.node("Concat", *parts, axis=axis)


@rule("repeat")
def repeat(g: Graph, op: Traced) -> Any:
    repeats = op.sizes("repeats")
    more = len(repeats) - len(op.values[0].shape)
    x = g.unsqueeze(op.inputs[0], list(range(more)))
    return g.node("Tile", x, g.shape_of(repeats, op))


@rule("repeat_interleave")
def repeat_interleave(g: Graph, op: Traced) -> Any:
    count, axis = op["repeats"], op["axis"]
    if not isinstance(count, int):
        raise UnsupportedOperatorError("'repeat_interleave' with several numbers of repetitions")
    repeats = [1] * (len(op.values[0].shape) + 1)
    repeats[axis + 1] = count
    x = g.unsqueeze(op.inputs[0], [axis + 1])
    x = g.node("Tile", x, g.integers(repeats))
    return g.reshape(x, g.twins.shape(op.outputs[0]), op)


@rule("flip")
def flip(g: Graph, op: Traced) -> Any:
    axis, ndim = op["axis"], len(op.values[0].shape)
    axes = [axis] if isinstance(axis, int) else list(range(ndim) if axis is None else axis)
    if not axes:
        return op.inputs[0]
    back = [-1] * len(axes)
    return g.node(
        "Slice", op.inputs[0], g.integers(back), g.integers([_FIRST] * len(axes)),
        g.integers(axes), g.integers(back),
    )  # fmt: skip


@rule("roll")
def roll(g: Graph, op: Traced) -> Any:
    shift, axis = op["shift"], op["axis"]
    x, shape = op.inputs[0], g.twins.shape(op.values[0])
    if axis is None:
        x = g.reshape(x, [-1])
        line = [math.prod(shape)] if not varies(shape) else []
        return g.reshape(_rolled(g, x, shift, 0, line), shape, op)
    shifts, axes = [(v,) if isinstance(v, int) else v for v in (shift, axis)]
    for step, d in zip(shifts, axes):
        x = _rolled(g, x, step, d, shape)
    return x


def _rolled(g: Graph, x: str, step: int, axis: int, shape: Any) -> str:
    size = shape[axis] if len(shape) > axis and not isinstance(shape[axis], Varying) else None
    start = -step if size is None else -step % size if size else 0
    if not start:
        return x
    cut, axes = g.integers([start]), g.integers([axis])
    tail = g.node("Slice", x, cut, g.integers([_LAST]), axes)
    head = g.node("Slice", x, g.integers([0]), cut, axes)
    return g.node("Concat", tail, head, axis=axis)


@rule("tril", "triu")
def triangle(g: Graph, op: Traced) -> Any:
    x, boolean = op.inputs[0], op.values[0].dtype.kind == "b"
    if boolean:
        x = g.cast(x, "int32")
    k = g.constant(op["k"], np.int64)
    x = g.node("Trilu", x, k, upper=int(op.name == "triu"))
    return g.cast(x, "bool") if boolean else x


@rule("constant_pad")
def constant_pad(g: Graph, op: Traced) -> Any:
    pads = op["pads"]
    if not pads:
        return op.inputs[0]
    widths = [before for before, _ in pads] + [after for _, after in pads]
    value = g.number(op["value"], op.values[0])
    return g.node("Pad", op.inputs[0], g.integers(widths), value)


@rule("unfold")
def unfold(g: Graph, op: Traced) -> Any:
    """Windows along an axis: taken by their places; the windows' elements come last."""
    axis, size, step = op["axis"], op["size"], op["step"]
    shape = g.twins.shape(op.values[0])
    if not shape or isinstance(shape[axis], Varying):
        raise UnsupportedOperatorError("'unfold' along a dynamic dimension, or of no dimension")
    count = (shape[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    x = g.node("Gather", op.inputs[0], g.constant(places, np.int64), axis=axis)
    ndim = len(shape) + 1
    return g.permute(x, [*(d for d in range(ndim) if d != axis + 1), axis + 1])


def places_of(shape: tuple, views: Any) -> Any:
    """Of a tensor whose elements are numbered, the part that (view op, parameters) show."""
    part = np.arange(math.prod(shape)).reshape(shape)
    for view, parameters in views:
        part = view.forward(backends.load("cpu").F, part, **parameters)
    return part


def _fixed_shape(g: Graph, op: Traced, value: Any) -> tuple:
    shape = g.twins.shape(value)
    if varies(shape):
        raise UnsupportedOperatorError(f"'{op.name}' of dynamic sizes")
    return shape


@rule("diagonal")
def diagonal(g: Graph, op: Traced) -> Any:
    shape = _fixed_shape(g, op, op.values[0])
    parameters = {name: op[name] for name in ("offset", "dim1", "dim2", "shape")}
    places = places_of(shape, [(TABLE["diagonal"], parameters)])
    flat = g.reshape(op.inputs[0], [-1])
    return g.node("Gather", flat, g.constant(places, np.int64), axis=0)


def _scattered(g: Graph, old: str, new: str, places: Any, shape: tuple) -> str:
    """`old` with the elements of `new` at numbered places."""
    flat, source = g.reshape(old, [-1]), g.reshape(new, [-1])
    line = g.constant(np.ravel(places), np.int64)
    return g.reshape(g.node("ScatterElements", flat, line, source, axis=0), shape)


@rule("embed")
def embed(g: Graph, op: Traced) -> Any:
    """A part among zeros, where a view would show it."""
    shape = op["shape"]
    places = places_of(shape, [(op["view"], op["parameters"])])
    zeros = g.constant(np.zeros(shape), op.values[0].dtype)
    return _scattered(g, zeros, op.inputs[0], places, shape)


@rule("view_scatter")
def view_scatter(g: Graph, op: Traced) -> Any:
    base, part = op.inputs
    shape = _fixed_shape(g, op, op.values[0])
    places = places_of(shape, [(view, parameters) for view, parameters, _ in op["chain"]])
    return _scattered(g, base, part, places, shape)


def expanded(g: Graph, op: Traced, name: str, like: Any) -> str:
    """A value with the shape of another one, to which it broadcasts."""
    return g.node("Expand", name, g.shape_of(g.twins.shape(like), op))


@rule("copy_into")
def copy_into(g: Graph, op: Traced) -> Any:
    x, y = op.values
    source = op.inputs[1]
    if y.dtype != x.dtype:
        source = g.cast(source, x.dtype)
    if g.twins.shape(y) != g.twins.shape(x):
        shape = g.twins.shape(x)
        source = g.squeeze(source, list(range(len(y.shape) - len(shape))))
        source = expanded(g, op, source, x)
    return source


@rule("fill", "zero")
def fill(g: Graph, op: Traced) -> Any:
    number = op["value"] if op.name == "fill" else 0
    return expanded(g, op, g.number(number, op.values[0]), op.values[0])


@rule("write_region")
def write_region(g: Graph, op: Traced) -> Any:
    """The memory's owner with a part replaced: along each dimension the part is taken apart to
    where its elements belong, and a mask says which those are."""
    old, new = op.inputs
    root, part = op.values
    shape = g.twins.shape(root)
    if "places" in op:
        return _scattered(g, old, new, op["places"], op["shape"])
    regions: tuple[Region, ...] | None = op.sizes("regions")
    if regions is None:
        return g.reshape(new, shape, op)
    mapped = [region.axis for region in regions if region.axis is not None]
    dropped = [d for d in range(len(part.shape)) if d not in mapped]
    new = g.squeeze(new, dropped)
    order = sorted(mapped)
    new = g.permute(new, [order.index(axis) for axis in mapped])
    new = g.unsqueeze(new, [d for d, region in enumerate(regions) if region.axis is None])
    keep = None
    for d, region in enumerate(regions):
        size = shape[d]
        if region.size == size and region.start == 0 and region.step == 1:
            continue
        if isinstance(size, Varying):
            raise UnsupportedOperatorError("a write into a part of a dynamic dimension")
        at = [region.start + i * region.step for i in range(region.size)]
        if region.axis is not None:
            places = np.zeros(size, np.int64)
            places[at] = np.arange(region.size)
            new = g.node("Gather", new, g.constant(places), axis=d)
        if size > 1:
            mask = np.zeros((size, *(1,) * (len(shape) - d - 1)), bool)
            mask[at] = True
            name = g.constant(mask)
            keep = name if keep is None else g.node("And", keep, name)
    return new if keep is None else g.node("Where", keep, new, old)
