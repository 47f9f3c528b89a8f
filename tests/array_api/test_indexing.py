"""``x[...]`` and ``x[...] = value`` as the standard has them, take, take_along_axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tensorflow_lite_clone as tlc
from tests.array_api.judge import (
    ALL,
    DIMENSIONED,
    INTEGERS,
    NONEMPTY,
    SHAPES,
    SIGNED,
    agree,
    elements,
    few,
    hosts,
    mine,
    same,
    theirs,
)
from tests.array_api.strategies import xp, xps


def check_write(x: np.ndarray, key, value, judge_key=None) -> None:
    """Assert that writing gives what it gives in NumPy; `value` is an array or a number."""
    wanted, found = x.copy(), mine(x)
    wanted[key if judge_key is None else judge_key] = value
    found[key] = mine(value) if isinstance(value, np.ndarray) else value
    same(found, theirs(wanted))


@few
@given(hosts(), st.data())
def test_read(x, data) -> None:
    key = data.draw(xps.indices(x.shape, allow_newaxis=True))
    agree(lambda xp, x: x[key], x)


@few
@given(hosts(), st.data())
def test_write(x, data) -> None:
    key = data.draw(xps.indices(x.shape))
    name = x.dtype.name
    check_write(x, key, data.draw(elements(name)))
    part = x[key]
    whole = data.draw(hosts((name,), np.shape(part)))
    check_write(x, key, whole)
    check_write(x, key, data.draw(hosts((name,), ())))
    if whole.ndim:
        check_write(x, key, whole[:1] if whole.shape[0] == 1 else whole[..., None][..., 0])


@few
@given(hosts(shape=DIMENSIONED), st.data())
def test_read_backwards(x, data) -> None:
    """Steps below zero in several dimensions at once, with integers and new axes among them."""
    steps = st.sampled_from([-1, -2, -3, 1, 2])
    items = st.builds(slice, st.none(), st.none(), steps)
    key = data.draw(st.lists(items, min_size=1, max_size=x.ndim))
    if data.draw(st.booleans()):
        key.insert(data.draw(st.integers(0, len(key))), None)
    same(mine(x)[tuple(key)], theirs(x[tuple(key)]))
    places = data.draw(st.lists(st.integers(-4, 4), min_size=2, max_size=2))
    same(mine(x)[places[0] : places[1] : -1], theirs(x[places[0] : places[1] : -1]))


def test_backwards_with_an_index_array() -> None:
    x = np.arange(12).reshape(3, 4)
    places = np.array([0, 2])
    same(mine(x)[::-1, mine(places)], theirs(x[::-1, places]))
    check_write(x, (slice(None, None, -2), mine(places)), np.arange(4).reshape(2, 2),
                (slice(None, None, -2), places))  # fmt: skip


def test_backwards_has_gradients() -> None:
    x = tlc.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=tlc.float64, requires_grad=True)
    assert tlc.autograd.gradcheck(lambda x: x[::-2, ::-1] * x[0], x)

    def written(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        x = x * 1
        x[::-2] = y
        return x * x

    assert tlc.autograd.gradcheck(written, (x, (x[0] * 2).detach().requires_grad_()))


@few
@given(hosts(), st.data())
def test_masks(x, data) -> None:
    """A mask covers leading dimensions; where one of its sizes is 0 it finds nothing."""
    covered = data.draw(st.integers(0, x.ndim))
    cut = data.draw(
        st.lists(st.sampled_from([True, True, False]), min_size=covered, max_size=covered)
    )
    shape = tuple(size if keep else 0 for size, keep in zip(x.shape, cut))
    mask = data.draw(hosts(("bool",), shape))
    agree(lambda xp, x, mask: x[mask], x, mask)
    name = x.dtype.name
    value = data.draw(elements(name))
    wanted, found = x.copy(), mine(x)
    wanted[mask], found[mine(mask)] = value, value
    same(found, theirs(wanted))
    values = data.draw(hosts((name,), x[mask].shape))
    wanted, found = x.copy(), mine(x)
    wanted[mask], found[mine(mask)] = values, mine(values)
    same(found, theirs(wanted))


@few
@given(hosts(), SHAPES)
def test_masks_that_do_not_fit(x, shape) -> None:
    fits = len(shape) <= x.ndim and all(m in (n, 0) for m, n in zip(shape, x.shape))
    if fits:
        assert mine(x)[xp.zeros(shape, dtype=xp.bool)].shape == (0, *x.shape[len(shape) :])
    else:
        with pytest.raises(IndexError):
            mine(x)[xp.zeros(shape, dtype=xp.bool)]


@few
@given(hosts(shape=NONEMPTY), xps.broadcastable_shapes((2, 3), max_dims=2), st.data())
def test_integer_arrays(x, shape, data) -> None:
    """Arrays of places, among them integers, broadcast and name one element each."""
    key = []
    for size in x.shape:
        if data.draw(st.booleans()):
            key.append(data.draw(st.integers(-size, size - 1)))
        else:
            own = data.draw(st.sampled_from([shape, (2, 3), (), (1,)]))
            dtype = data.draw(
                st.sampled_from(["int64", "int64", "int32", "int8", "uint16", "uint64"])
            )
            low = 0 if dtype.startswith("u") else -size
            key.append(data.draw(nps.arrays(dtype, own, elements=st.integers(low, size - 1))))
    wanted = x[tuple(key)]
    own = tuple([mine(item) if isinstance(item, np.ndarray) else item for item in key])
    same(mine(x)[own], theirs(np.asarray(wanted)))
    value = data.draw(elements(x.dtype.name))
    check_write(x, own, value, tuple(key))


@few
@given(hosts(shape=NONEMPTY), st.sampled_from(INTEGERS), st.data())
def test_take(x, name, data) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size = x.shape[axis]
    places = st.integers(-size if name in SIGNED else 0, size - 1)
    indices = data.draw(nps.arrays(name, st.integers(0, 4), elements=places))
    # NumPy casts no uint64 to its own indices
    judge = indices.astype("int64")
    wanted = theirs(np.take(x, judge, axis=axis))
    same(xp.take(mine(x), mine(indices), axis=axis), wanted)
    if x.ndim == 1:
        same(xp.take(mine(x), mine(indices)), wanted)
    else:
        with pytest.raises(ValueError, match="axis"):
            xp.take(mine(x), mine(indices))


@few
@given(hosts(shape=NONEMPTY), st.sampled_from(INTEGERS), st.data())
def test_take_along_axis(x, name, data) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    size, shape = x.shape[axis], list(x.shape)
    shape = [data.draw(st.sampled_from([1, n])) for n in shape]
    shape[axis] = data.draw(st.integers(0, 4))
    places = st.integers(-size if name in SIGNED else 0, size - 1)
    indices = data.draw(nps.arrays(name, tuple(shape), elements=places))
    wanted = np.take_along_axis(x, indices.astype("int64"), axis=axis)
    same(xp.take_along_axis(mine(x), mine(indices), axis=axis), theirs(wanted))
    narrow = x[
        tuple(slice(0, 1) if n % x.ndim != axis % x.ndim else slice(None) for n in range(x.ndim))
    ]
    wanted = np.take_along_axis(narrow, indices.astype("int64"), axis=axis)
    same(xp.take_along_axis(mine(narrow), mine(indices), axis=axis), theirs(wanted))


@pytest.mark.parametrize("name", ALL)
def test_single_elements_are_arrays(name: str) -> None:
    x = xp.ones((2, 3), dtype=getattr(xp, name))
    assert x[1, 2].shape == () and x[1, 2].dtype is x.dtype
    assert x[1, 2][()].shape == x[1, 2][...].shape == ()


def test_errors() -> None:
    x = xp.zeros((2, 3))
    for key in ((0, 0, 0), 2, (0, -4), (..., 0, 0, 0), 1.5):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(IndexError):
        x[xp.asarray([0, 5])]
    with pytest.raises(IndexError):
        x[xp.asarray([0, 1]), xp.asarray([0, 1, 2])]


def test_slices_are_clipped() -> None:
    """The standard leaves them open; they are Python's."""
    x = xp.arange(3)
    assert x[-9:9].tolist() == [0, 1, 2] and x[5:].shape == (0,) and x[9::-2].tolist() == [2, 0]


def test_values_are_promoted() -> None:
    x = xp.zeros(3, dtype=xp.float64)
    x[:2] = xp.asarray([1.0, 2.0], dtype=xp.float32)
    x[xp.asarray([False, False, True])] = xp.asarray([3.0], dtype=xp.float32)
    assert x.tolist() == [1, 2, 3] and x.dtype is xp.float64
    y = xp.zeros(3, dtype=xp.uint32)
    y[xp.asarray([True, False, True])] = xp.asarray([3, 4], dtype=xp.uint8)
    assert y.tolist() == [3, 0, 4]
