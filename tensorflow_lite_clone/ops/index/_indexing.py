"""The ops behind indexing with tensors: reads and writes at index arrays and masks.

Several index tensors are broadcast and stacked into one array of shape (k, ...), which says where
to look along the k dimensions `places`; in between lie whole dimensions.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import together
from tensorflow_lite_clone.autograd.sparse import sparse_gradient
from tensorflow_lite_clone.core.shape import contiguous_strides
from tensorflow_lite_clone.core.strides import ordered_strides
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.dispatch.result_layout import like_first

_ALL = slice(None)


def assembled(index: Any, places: tuple) -> Any:
    """The index that looks up the stacked `index` along the dimensions `places`."""
    if places == (0,):
        return index[0, ...]
    items: list = [_ALL] * (places[-1] + 1)
    for number, place in enumerate(places):
        items[place] = index[number, ...]
    return tuple(items)


def result_shape(shape: tuple, index_shape: tuple, places: tuple) -> tuple:
    """The shape of what an index array of shape (k, ...) finds."""
    first, last = places[0], places[-1]
    rest = tuple([size for dim, size in enumerate(shape) if dim not in places])
    if last - first + 1 == len(places):  # index dimensions stay where they are side by side ...
        return rest[:first] + index_shape + rest[first:]
    return index_shape + rest  # ... else they come first


def _layout(shape: tuple, operands: tuple, parameters: dict) -> tuple:
    """How what an index array finds lies: dimensions that it does not name as they do in x."""
    (own, steps), (index, _) = operands
    places, ndim = parameters["places"], len(index) - 1
    first = places[0] if places[-1] - places[0] + 1 == len(places) else 0
    return _around(
        shape, [step for dim, step in enumerate(steps) if dim not in places], first, ndim
    )


def _around(shape: tuple, rest: list, first: int, ndim: int) -> tuple:
    """Dense strides for `ndim` row-major dimensions from `first` on among others with strides."""
    found = contiguous_strides(shape[first : first + ndim])
    before, after = (0,) * first, (0,) * (len(rest) - first)
    steps = (*rest[:first], *(0,) * ndim, *rest[first:])
    return ordered_strides(shape, (steps, (*before, *found, *after)))


class Index(Op):
    """``x[..., index, ...]``; `shape` is that of x."""

    cost = costs.lookup
    layout = _layout

    def forward(F, x, index, *, places, shape):
        if len(places) == 1:
            return F.take(x, index[0, ...], axis=places[0])
        return F.getitem(x, assembled(index, places))

    def backward_x(F, g, index, *, places, shape):
        zeros = F.zeros(shape, dtype=g.dtype)
        return F.index_put(zeros, index, g, places=places, accumulate=True)


class IndexAlong(Op):
    """``x[..., index]`` for one index tensor, one-dimensional unless `axis` is 0."""

    cost = costs.lookup
    label = "Index"

    def layout(shape, operands, parameters):
        (_, steps), (index, _) = operands
        axis = parameters["axis"]
        return _around(shape, [*steps[:axis], *steps[axis + 1 :]], axis, len(index))

    def forward(F, x, index, *, axis, shape):
        return F.take(x, index, axis=axis)

    def backward_x(F, g, index, *, axis, shape):
        return F.index_select_backward(g, index, axis=axis, shape=shape)


class IndexPut(Op):
    """A copy of x with `value` written, or added with `accumulate`, at the index."""

    allows_overlapping_writes = True

    def forward(F, x, index, value, *, places, accumulate):
        out = F.copy(x)
        IndexPut.write(F, out, index, value, places=places, accumulate=accumulate)
        return out

    def write(F, x, index, value, *, places, accumulate):
        if accumulate:
            F.add_at(x, assembled(index, places), value)
        else:
            F.write_at(x, assembled(index, places), value)

    def backward_x(F, g, index, *, places, accumulate):
        if accumulate:
            return g
        zero = F.zeros((), dtype=g.dtype)
        return F.index_put(g, index, zero, places=places, accumulate=False)

    def backward_value(F, g, index, *, places, accumulate):
        return F.index(g, index, places=places, shape=g.shape)


class Flip(Op):
    """Elements in reversed order along axes."""

    primitive = "flip"
    layout = like_first

    def forward(F, x, *, axis):
        return F.flip(x, axis=axis)

    def backward_x(F, g, *, axis):
        return F.flip(g, axis=axis)


class IndexMask(Op):
    """``x[mask]``, a mask of x's leading dimensions; `shape` is that of x."""

    cost = costs.Cost(reads="as returned")
    label = "Index"

    def layout(shape, operands, parameters):
        (_, steps), (mask, _) = operands
        return _around(shape, list(steps[len(mask) :]), 0, 1)

    def forward(F, x, mask, *, shape):
        if not F.backend.has_values:  # a mask that was written at, see `_put`
            return F.zeros((0, *x.shape[mask.ndim :]), dtype=x.dtype)
        return F.getitem(x, mask)

    def backward_x(F, g, mask, *, shape):
        return F.mask_put(F.zeros(shape, dtype=g.dtype), mask, g)


class MaskPut(Op):
    """A copy of x with ``x[mask] = value``."""

    label = "IndexPut"
    allows_overlapping_writes = True

    def forward(F, x, mask, value):
        out = F.copy(x)
        F.write_at(out, mask, value)
        return out

    def write(F, x, mask, value):
        F.write_at(x, mask, value)

    def backward_x(F, g, mask):
        return F.mask_put(g, mask, F.zeros((), dtype=g.dtype))

    def backward_value(F, g, mask):
        return F.index_mask(g, mask, shape=g.shape)


class MaskedFill(Op):
    """A copy of x with the one `value` wherever the mask, broadcast, is true."""

    allows_overlapping_writes = True

    def forward(F, x, mask, value):
        out = F.copy(x)
        MaskedFill.write(F, out, mask, value)
        return out

    def write(F, x, mask, value):
        if mask.shape != x.shape:
            mask = F.broadcast_to(mask, x.shape)
        F.write_at(x, mask, value)

    def backward_x(F, g, mask):
        return F.masked_fill(g, mask, F.zeros((), dtype=g.dtype))

    def backward_value(F, g, mask):
        return F.sum(F.masked_fill(g, ~mask, F.zeros((), dtype=g.dtype)))


def along(F: Any, index: Any, axis: int, shape: tuple) -> Any:
    """Where ``x[..., index, ...]`` along `axis` lies in the row-major order of x's `shape`.

    In the other dimensions each index looks at its own place.
    """
    strides = contiguous_strides(shape)
    ndim = len(shape)
    other: Any = None
    for dim, size in enumerate(index.shape):
        if dim != axis and size > 1:
            offsets = F.reshape(F.arange(size) * strides[dim], (size,) + (1,) * (ndim - dim - 1))
            other = offsets if other is None else other + offsets
    positions = index * strides[axis]
    return positions if other is None else positions + other


def _flat(F: Any, x: Any) -> Any:
    return F.reshape(x, (-1,))


def _scatter(F: Any, x: Any, change: Any) -> None:
    """Let ``change(flat)`` write into the elements of `x` in row-major order."""
    if F.backend.is_contiguous(x):
        change(_flat(F, x))
    else:
        out = F.copy(x)
        change(_flat(F, out))
        F.backend.write(x, out)


class Gather(Op):
    """``out[i, j] = x[i, index[i, j]]`` for axis 1, and so on; `shape` is that of x.

    With `checks` it raises IndexError when an index is negative or too large.
    """

    cost = costs.lookup

    def forward(F, x, index, *, axis, shape, checks=False):
        if checks:
            F.check_index(index, shape[axis], axis)
        return F.getitem(_flat(F, x), along(F, index, axis, shape))

    def backward_x(F, g, index, *, axis, shape):
        return F.gather_backward(g, index, axis=axis, shape=shape)


class GatherSparse(Op):
    """`Gather` whose gradient is a sparse tensor: the elements of g, where each was found."""

    label = "Gather"

    def forward(F, x, index, *, axis, shape, checks=False):
        return F.gather(x, index, axis=axis, shape=shape, checks=checks)

    def backward_x(F, g, index, *, axis, shape):
        if F.backend.batched:
            return F.gather_backward(g, index, axis=axis, shape=shape)
        rows = []
        for dim, size in enumerate(g.shape):
            row = index
            if dim != axis:
                row = F.reshape(F.arange(size), (size,) + (1,) * (g.ndim - dim - 1))
            rows.append(F.reshape(F.broadcast_to(row, g.shape), (-1,)))
        return sparse_gradient(F, F.stack(rows), F.reshape(g, (-1,)), shape)


@composite
def gather_backward(F, g, index, *, axis, shape):
    """The elements of g added up where `Gather` found theirs."""
    return F.scatter_add(F.zeros(shape, dtype=g.dtype), index, g, axis=axis)


class Scatter(Op):
    """A copy of x with ``out[i, index[i, j]] = src[i, j]`` for axis 1, and so on."""

    def forward(F, x, index, src, *, axis):
        out = F.copy(x)
        Scatter.write(F, out, index, src, axis=axis)
        return out

    def write(F, x, index, src, *, axis):
        positions = along(F, index, axis, x.shape)
        _scatter(F, x, lambda flat: F.write_at(flat, positions, src))

    def backward_x(F, g, index, *, axis):
        return F.scatter(g, index, F.zeros((), dtype=g.dtype), axis=axis)

    def backward_src(F, g, index, *, axis):
        return F.gather(g, index, axis=axis, shape=g.shape)


class ScatterAdd(Op):
    """As `Scatter`, but `src` is added to what is there; `checks` as `Gather` does."""

    def forward(F, x, index, src, *, axis, checks=False):
        if checks:
            F.check_index(index, x.shape[axis], axis)
        out = F.copy(x)
        ScatterAdd.write(F, out, index, src, axis=axis)
        return out

    def write(F, x, index, src, *, axis):
        F.scatter_add_to(x, index, src, axis=axis)

    def backward_x(F, g, *, axis):
        return g

    def backward_src(F, g, index, *, axis):
        return F.gather(g, index, axis=axis, shape=g.shape)


@composite
def scatter_add_to(F, x, index, src, *, axis):
    """`ScatterAdd` in the memory of x, on arrays alone."""
    positions = along(F, index, axis, x.shape)
    _scatter(F, x, lambda flat: F.add_at(flat, positions, src))


class ScatterReduce(Op):
    """As `Scatter`, but combined by `how` with what else goes to the same place."""

    def forward(F, x, index, src, *, axis, how, include_self):
        out = F.copy(x)
        ScatterReduce.write(F, out, index, src, axis=axis, how=how, include_self=include_self)
        return out

    def write(F, x, index, src, *, axis, how, include_self):
        positions = along(F, index, axis, x.shape)

        def change(flat):
            if not include_self:  # start with what changes nothing
                start = {"prod": 1, "sum": 0, "mean": 0}.get(how, src)
                F.write_at(flat, positions, start)
            if how in ("sum", "mean"):
                F.add_at(flat, positions, src)
            else:
                word = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}[how]
                F.combine_at(flat, positions, src, how=word)
            if how == "mean":
                counts = F.zeros(flat.shape, dtype=F.int64)
                F.add_at(counts, positions, 1)
                if include_self:
                    counts = counts + 1
                counts = F.where(counts < 1, F.ones((), dtype=F.int64), counts)
                whole = flat.dtype.kind in "iub"
                mean = F.floor_divide(flat, counts) if whole else flat / counts
                F.backend.write(flat, mean)

        _scatter(F, x, change)

    def backward(F, g, x, index, src, out, *, axis, how, include_self, needs):
        zero = F.zeros((), dtype=g.dtype)
        gx = gsrc = None
        if how == "sum":
            gx, gsrc = g, F.gather(g, index, axis=axis, shape=g.shape)
        elif how == "mean":
            start = F.ones(g.shape, dtype=g.dtype) if include_self else F.zeros_like(g)
            counts = F.scatter_add(start, index, F.ones(index.shape, dtype=g.dtype), axis=axis)
            shared = g / F.where(counts < 1, F.ones((), dtype=g.dtype), counts)
            gx, gsrc = shared, F.gather(shared, index, axis=axis, shape=g.shape)
        elif how == "prod":
            gx, gsrc = _product_gradients(F, g, x, index, src, out, axis, include_self)
        else:
            own = F.astype(x == out, g.dtype)
            others = F.astype(src == F.gather(out, index, axis=axis, shape=g.shape), g.dtype)
            shared = g / F.scatter_add(own, index, others, axis=axis)
            gx, gsrc = own * shared, others * F.gather(shared, index, axis=axis, shape=g.shape)
        if not include_self:
            gx = F.scatter(gx, index, zero, axis=axis)
        return gx, None, gsrc


def _product_gradients(
    F: Any, g: Any, x: Any, index: Any, src: Any, out: Any, axis: int, include_self: bool
) -> tuple:
    """Each factor's gradient is the product of the others: by division, or where a factor is
    the only zero by a product without it."""

    def spread(values: Any) -> Any:
        return F.gather(values, index, axis=axis, shape=g.shape)

    def product(start: Any, factors: Any) -> Any:
        return F.scatter_reduce(
            start, index, factors, axis=axis, how="prod", include_self=include_self
        )

    one = F.ones((), dtype=g.dtype)
    without = F.where(x == 0, one, x)
    gx = g * product(without, src) / without
    is_zero = src == 0
    zeros = F.astype(is_zero, g.dtype)
    count = spread(F.scatter_add(F.zeros_like(g), index, zeros, axis=axis))
    single = is_zero & (count == 1)
    routed = spread(g * product(x, F.where(single, one, src)))
    gsrc = F.where(single, routed, spread(g * out) / F.where(is_zero, one, src))
    return gx, gsrc


class IndexSelect(Op):
    """The slices number `index` along an axis; `shape` is that of x."""

    cost = costs.lookup

    def forward(F, x, index, *, axis, shape):
        return F.take(x, index, axis=axis)

    def backward_x(F, g, index, *, axis, shape):
        return F.index_select_backward(g, index, axis=axis, shape=shape)


@composite
def index_select_backward(F, g, index, *, axis, shape):
    """The slices of g added up where those number `index` along an axis were taken from."""
    return F.index_add(F.zeros(shape, dtype=g.dtype), index, g, axis=axis)


class IndexAdd(Op):
    """A copy of x with the slices of `source` added to those number `index` along an axis."""

    def forward(F, x, index, source, *, axis=0):
        out = F.copy(x)
        IndexAdd.write(F, out, index, source, axis=axis)
        return out

    def write(F, x, index, source, *, axis):
        F.add_at(x, (*(_ALL,) * axis, index), source)

    def backward_x(F, g, *, axis):
        return g

    def backward_source(F, g, index, *, axis):
        return F.take(g, index, axis=axis)


def on_one_backend(x: Any, extra: list) -> tuple[list, Any]:
    """The items of an index, as (place, tensor), on x's device and one backend; and that."""
    items = tuple([item.to(x.device) for _, item in extra])
    if len({item._storage.backend for item in items}) > 1:
        items = together(items, IndexPut)
    found = [(place, item) for (place, _), item in zip(extra, items, strict=True)]
    return found, items[0]._storage.backend
