"""Searching functions: argmax, argmin, count_nonzero, nonzero, searchsorted, where."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.judge import (
    COMPLEX,
    DIMENSIONED,
    FLOATS,
    INTEGERS,
    NONEMPTY,
    REALS,
    agree,
    axes,
    elements,
    few,
    hosts,
    mine,
    name_of,
)
from tests.array_api.strategies import xp, xps


@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("small", [True, False])
@few
@given(st.data(), st.booleans())
def test_places(name, small, data, keepdims) -> None:
    x = data.draw(hosts(REALS, NONEMPTY | st.just(()), small=small))
    axis = data.draw(axes(x.ndim, tuples=False))
    agree(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), x)


@few
@given(hosts(), st.booleans(), st.data())
def test_count_nonzero(x, keepdims, data) -> None:
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: xp.count_nonzero(x, axis=axis, keepdims=keepdims), x)


@few
@given(hosts(shape=DIMENSIONED))
def test_nonzero(x) -> None:
    agree(lambda xp, x: xp.nonzero(x), x)


def test_no_places_without_dimensions() -> None:
    with pytest.raises(ValueError, match="zero-dimensional"):
        xp.nonzero(xp.asarray(1))


@few
@given(st.sampled_from(REALS), st.sampled_from(["left", "right"]), st.data())
def test_searchsorted(name, side, data) -> None:
    small = data.draw(st.booleans())
    row = data.draw(
        hosts((name,), xps.array_shapes(max_dims=1, min_side=0), small=small, nan=False)
    )
    values = data.draw(hosts((name,), small=small, nan=False))
    agree(lambda xp, x, y: xp.searchsorted(x, y, side=side), np.sort(row), values)
    order = np.argsort(row)
    agree(lambda xp, x, y, s: xp.searchsorted(x, y, side=side, sorter=s), row, values, order)
    number = data.draw(elements(name, small, nan=False))
    agree(lambda xp, x: xp.searchsorted(x, number, side=side), np.sort(row))


def test_searchsorted_promotes() -> None:
    x, y = xp.asarray([1, 3, 200], dtype=xp.uint16), xp.asarray([-1, 3, 120], dtype=xp.int8)
    assert xp.searchsorted(x, y).tolist() == [0, 1, 2]
    assert xp.searchsorted(xp.astype(x, xp.uint64), xp.astype(x, xp.uint8)).tolist() == [0, 1, 2]


def test_searchsorted_wants_a_line() -> None:
    with pytest.raises(ValueError, match="one dimension"):
        xp.searchsorted(xp.zeros((2, 2)), xp.zeros(2))


@few
@given(
    st.sampled_from([INTEGERS[:4], INTEGERS[4:], INTEGERS[:7], (*FLOATS, *COMPLEX), ("bool",)]),
    xps.mutually_broadcastable_shapes(3, max_dims=3, max_side=3),
    st.data(),
)
def test_where(family, shapes, data) -> None:
    first, second, third = shapes.input_shapes
    condition = data.draw(hosts(("bool",), first))
    if "int64" in family and "uint64" in family:
        family = family[:-1]
    x, y = data.draw(hosts(family, second)), data.draw(hosts(family, third))
    agree(lambda xp, c, x, y: xp.where(c, x, y), condition, x, y)
    number = data.draw(elements(x.dtype.name, small=True))
    number = abs(number) if x.dtype.kind == "u" else number
    if x.dtype.kind != "f" or not np.isnan(number):
        agree(lambda xp, c, x: xp.where(c, x, number), condition, x)
        agree(lambda xp, c, x: xp.where(c, number, x), condition, x)


def test_where_with_numbers() -> None:
    """A number takes the array's dtype, and a complex one makes it complex."""
    x = xp.asarray([1.0, 2.0])
    condition = xp.asarray([True, False])
    for dtype in (xp.float32, xp.float64):
        assert xp.where(condition, xp.astype(x, dtype), 1).dtype is dtype
        assert xp.where(condition, 2.5, xp.astype(x, dtype)).dtype is dtype
    assert xp.where(condition, xp.astype(x, xp.float64), 1j).dtype is xp.complex128
    assert xp.where(condition, xp.asarray(1.0, dtype=xp.float64), x).dtype is xp.float64


def test_where_has_gradients() -> None:
    x = tlc.tensor([1.0, 2.0], dtype=tlc.float64, requires_grad=True)
    condition = tlc.tensor([True, False])
    for function in (lambda x: xp.where(condition, x, 3), lambda x: xp.where(condition, 3.0, x)):
        assert tlc.autograd.gradcheck(function, x)


@pytest.mark.parametrize("name", ["argmax", "argmin", "count_nonzero"])
def test_invalid_axes(name: str) -> None:
    for x, axis in ((xp.ones((2, 3)), 2), (xp.ones((2, 3)), -3), (xp.ones(()), 0)):
        with pytest.raises(IndexError):
            getattr(xp, name)(x, axis=axis)


def test_dtype_of_indices() -> None:
    x = mine(np.arange(6, dtype="uint16").reshape(2, 3))
    found = [xp.argmax(x), xp.count_nonzero(x), *xp.nonzero(x), xp.searchsorted(x[0, :], x)]
    assert {name_of(one) for one in found} == {"int64"}
