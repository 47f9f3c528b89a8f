"""Manipulation functions: the judge's results, and memory where the standard speaks of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.array_api.judge import (
    ALL,
    DIMENSIONED,
    INTEGERS,
    SHAPES,
    agree,
    axes,
    dtype,
    few,
    hosts,
    mine,
)
from tests.array_api.strategies import xp, xps

#: Dtypes that the standard promotes with each other.
FAMILIES = (
    ("bool",),
    ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"),
    ("uint8", "uint16", "uint32", "uint64"),
    ("float32", "float64", "complex64", "complex128"),
)


@st.composite
def several(draw, shape=SHAPES, joined=None):
    """NumPy arrays whose dtypes promote, of one shape but for the axis `joined` (drawn too)."""
    size = draw(shape)
    names = draw(
        st.sampled_from(FAMILIES).flatmap(
            lambda f: st.lists(st.sampled_from(f), min_size=1, max_size=3)
        )
    )
    axis = draw(st.integers(-len(size), len(size) - 1)) if joined else None
    made = []
    for name in names:
        own = list(size)
        if joined:
            own[axis] = draw(st.integers(0, 3))
        made.append(draw(hosts((name,), tuple(own))))
    return made, axis


@few
@given(several(DIMENSIONED, joined=True))
def test_concat(case) -> None:
    arrays, axis = case
    agree(lambda xp, *x: xp.concat(x, axis=axis), *arrays)
    agree(lambda xp, *x: xp.concat(list(x), axis=None), *arrays)


@few
@given(several())
def test_concat_flat(case) -> None:
    agree(lambda xp, *x: xp.concat(x, axis=None), *case[0])


@few
@given(several(), st.data())
def test_stack(case, data) -> None:
    arrays, _ = case
    ndim = arrays[0].ndim
    axis = data.draw(st.integers(-ndim - 1, ndim))
    agree(lambda xp, *x: xp.stack(x, axis=axis), *arrays)


@few
@given(hosts(), st.data())
def test_expand_dims(x, data) -> None:
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    agree(lambda xp, x: xp.expand_dims(x, axis), x)
    count = data.draw(st.integers(0, 3))
    several = data.draw(xps.valid_tuple_axes(x.ndim + count, min_size=count, max_size=count))
    agree(lambda xp, x: xp.expand_dims(x, axis=several), x)


def test_expand_dims_out_of_range() -> None:
    for axis in (3, -4, (0, 5), (1, 1), (0, -4)):
        with pytest.raises(IndexError):
            xp.expand_dims(xp.zeros((2, 2)), axis)


@few
@given(hosts(), st.data())
def test_flip(x, data) -> None:
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: xp.flip(x, axis=axis), x)


@few
@given(hosts(shape=DIMENSIONED), st.data())
def test_moveaxis(x, data) -> None:
    source = data.draw(xps.valid_tuple_axes(x.ndim))
    places = xps.valid_tuple_axes(x.ndim, min_size=len(source), max_size=len(source))
    destination = data.draw(places)
    agree(lambda xp, x: xp.moveaxis(x, source, destination), x)
    one, other = data.draw(st.tuples(*[st.integers(-x.ndim, x.ndim - 1)] * 2))
    agree(lambda xp, x: xp.moveaxis(x, one, other), x)


@few
@given(hosts(), st.data())
def test_permute_dims(x, data) -> None:
    order = data.draw(st.permutations(range(x.ndim)))
    signs = data.draw(st.lists(st.booleans(), min_size=x.ndim, max_size=x.ndim))
    order = tuple(axis - x.ndim if minus else axis for axis, minus in zip(order, signs))
    agree(lambda xp, x: xp.permute_dims(x, order), x)


@few
@given(hosts(), st.data())
def test_repeat(x, data) -> None:
    axis = data.draw(axes(x.ndim, tuples=False))
    count = data.draw(st.integers(0, 3))
    agree(lambda xp, x: xp.repeat(x, count, axis=axis), x)
    size = x.size if axis is None else x.shape[axis]
    counts = data.draw(hosts(INTEGERS, st.sampled_from([(size,), (1,)]), small=True))
    agree(lambda xp, x, n: xp.repeat(x, n, axis=axis), x, abs(counts))


@few
@given(hosts(), st.data())
def test_reshape(x, data) -> None:
    shapes = [(-1,), x.shape[::-1], (1, *x.shape), (x.size,)] if x.size else [x.shape[::-1], (0, 7)]
    shape = data.draw(st.sampled_from(shapes))
    copy = data.draw(st.sampled_from([None, True]))
    agree(lambda xp, x: xp.reshape(x, shape, copy=copy), x)
    agree(lambda xp, x: xp.reshape(xp.permute_dims(x, tuple(range(x.ndim))[::-1]), shape), x)


def test_reshape_and_memory() -> None:
    x = xp.reshape(xp.arange(6), (2, 3))
    shared, own = xp.reshape(x, (3, 2), copy=False), xp.reshape(x, (3, 2), copy=True)
    either = xp.reshape(x, (6,))
    x[0, 0] = 9
    assert (int(shared[0, 0]), int(own[0, 0]), int(either[0])) == (9, 0, 9)
    with pytest.raises(ValueError, match="view size"):
        xp.reshape(x.mT, (6,), copy=False)


@few
@given(hosts(), st.data())
def test_roll(x, data) -> None:
    shift = data.draw(st.integers(-9, 9))
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: xp.roll(x, shift, axis=axis), x)
    if isinstance(axis, tuple) and axis:
        steps = st.lists(st.integers(-9, 9), min_size=len(axis), max_size=len(axis))
        shifts = tuple(data.draw(steps))
        agree(lambda xp, x: xp.roll(x, shifts, axis=axis), x)


@few
@given(
    hosts(shape=st.lists(st.sampled_from([1, 1, 2, 0]), min_size=1, max_size=4).map(tuple)),
    st.data(),
)
def test_squeeze(x, data) -> None:
    axis = data.draw(axes(x.ndim).filter(lambda axis: axis is not None))
    named = axis if isinstance(axis, tuple) else (axis,)
    if all(x.shape[one] == 1 for one in named):
        agree(lambda xp, x: xp.squeeze(x, axis), x)
    else:
        with pytest.raises(ValueError, match="size one"):
            xp.squeeze(mine(x), axis)


@few
@given(hosts(), st.lists(st.integers(0, 3), max_size=4).map(tuple))
def test_tile(x, repetitions) -> None:
    agree(lambda xp, x: xp.tile(x, repetitions), x)


@few
@given(hosts(shape=DIMENSIONED), st.data())
def test_unstack(x, data) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    agree(lambda xp, x: xp.unstack(x, axis=axis), x)
    agree(lambda xp, x: xp.unstack(x), x)


@few
@given(xps.mutually_broadcastable_shapes(3, max_dims=3, max_side=4), st.data())
def test_broadcasting(shapes, data) -> None:
    arrays = [data.draw(hosts(shape=shape)) for shape in shapes.input_shapes]
    agree(lambda xp, *x: xp.broadcast_arrays(*x), *arrays)
    agree(lambda xp, x: xp.broadcast_to(x, shapes.result_shape), arrays[0])
    assert xp.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape


def test_broadcasting_that_fails() -> None:
    assert xp.broadcast_shapes() == () and xp.broadcast_shapes((3, 1), (1, 4)) == (3, 4)
    with pytest.raises(ValueError, match="must match"):
        xp.broadcast_shapes((2,), (3,))
    for shape in ((-1, 3), (2,), (3, 2), ()):
        with pytest.raises((ValueError, RuntimeError)):
            xp.broadcast_to(xp.zeros(3), shape)


@few
@given(st.sampled_from(ALL), st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["xy", "ij"]))
def test_meshgrid(name, sizes, indexing) -> None:
    vectors = [np.arange(size).astype(name) for size in sizes]
    agree(lambda xp, *x: xp.meshgrid(*x, indexing=indexing), *vectors)
    agree(lambda xp, *x: xp.meshgrid(*x), *vectors)


@few
@given(
    hosts(shape=xps.array_shapes(min_dims=2, max_dims=3, min_side=0, max_side=4)),
    st.integers(-6, 6),
)
def test_triangles(x, k) -> None:
    agree(lambda xp, x: xp.tril(x, k=k), x)
    agree(lambda xp, x: xp.triu(x, k=k), x)


COPIES = {
    "astype": lambda x: xp.astype(x, x.dtype),
    "concat": lambda x: xp.concat([x], axis=None),
    "diff": lambda x: xp.diff(xp.reshape(x, (-1,)), n=0),
    "flip": lambda x: xp.flip(x),
    "flip nothing": lambda x: xp.flip(x, axis=()),
    "index": lambda x: xp.reshape(x, (-1,))[::-1],
    "max": lambda x: xp.max(x, axis=()),
    "prod": lambda x: xp.prod(x, axis=()),
    "repeat": lambda x: xp.repeat(x, 1),
    "roll": lambda x: xp.roll(x, 0),
    "roll nothing": lambda x: xp.roll(x, 1, axis=()),
    "sort": lambda x: xp.sort(xp.reshape(x, (-1,))),
    "stack": lambda x: xp.stack([x]),
    "sum": lambda x: xp.sum(x, axis=()),
    "take": lambda x: xp.take(xp.reshape(x, (-1,)), xp.asarray([0])),
    "tile": lambda x: xp.tile(x, ()),
    "tril": lambda x: xp.tril(xp.broadcast_to(x, (1, 1))),
    "unique": lambda x: xp.unique_values(x),
    "where": lambda x: xp.where(x == x, x, x),
}


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_memory_of_its_own(name: str, shape: tuple) -> None:
    """What is computed is written apart from the input, also where nothing is left to do."""
    x = xp.ones(shape)
    assert not np.shares_memory(COPIES[name](x).numpy(), x.numpy())


@pytest.mark.parametrize("name", ["flip", "roll", "repeat", "concat", "unstack", "permute_dims"])
def test_invalid_axes(name) -> None:
    calls = {
        "flip": lambda x, axis: xp.flip(x, axis=axis),
        "roll": lambda x, axis: xp.roll(x, 1, axis=axis),
        "repeat": lambda x, axis: xp.repeat(x, 2, axis=axis),
        "concat": lambda x, axis: xp.concat([x, x], axis=axis),
        "unstack": lambda x, axis: xp.unstack(x, axis=axis),
        "permute_dims": lambda x, axis: xp.permute_dims(x, (0, axis)),
    }
    for axis in (2, -3):
        with pytest.raises(IndexError):
            calls[name](xp.ones((2, 3)), axis)
    if name != "permute_dims":
        with pytest.raises(IndexError):
            calls[name](xp.ones((), dtype=dtype("int16")), 0)
