"""sort, argsort, unique_*, isin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.array_api.judge import (
    ALL,
    DIMENSIONED,
    FLOATS,
    INTEGERS,
    REALS,
    agree,
    elements,
    few,
    hosts,
    mine,
    same,
    theirs,
)
from tests.array_api.strategies import xp


@pytest.mark.parametrize("small", [True, False])
@few
@given(st.data(), st.booleans(), st.booleans())
def test_sort(small, data, descending, stable) -> None:
    x = data.draw(hosts(REALS, DIMENSIONED, small=small, nan=False))
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    keywords = {"axis": axis, "descending": descending}
    agree(lambda xp, x: xp.sort(x, **keywords, stable=stable), x)
    agree(lambda xp, x: xp.argsort(x, **keywords, stable=True), x)
    order = xp.argsort(mine(x), **keywords, stable=stable)
    assert (xp.take_along_axis(mine(x), order, axis=axis) == xp.sort(mine(x), **keywords)).all()


def test_nan_is_sorted_to_one_end() -> None:
    x = xp.asarray([2.0, np.nan, 1.0])
    assert np.isnan(np.asarray(xp.sort(x))).tolist() == [False, False, True]
    assert xp.argsort(x, descending=True).tolist() == [1, 0, 2]


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
@few
@given(st.data(), st.booleans())
def test_unique(name, data, small) -> None:
    x = data.draw(hosts(small=small, nan=False))
    x = x + x.dtype.type(0)  # NumPy takes either of the zeros, here there is but one
    agree(lambda xp, x: getattr(xp, name)(x), x)


@few
@given(hosts(("float32", "float64", "complex64"), small=True), st.data())
def test_unique_with_nan(x, data) -> None:
    """Each NaN is distinct and counts once; the other elements are as they are without it."""
    holes = data.draw(hosts(("bool",), x.shape))
    x = np.where(holes, np.asarray(np.nan, x.dtype), x)
    values, indices, inverse, counts = xp.unique_all(mine(x))
    assert [xp.unique_counts(mine(x)).counts.tolist()] == [counts.tolist()]
    number = np.asarray(values)
    missing = np.isnan(number)
    assert missing.sum() == holes.sum() and (np.asarray(counts)[missing] == 1).all()
    same(values[~mine(missing)], theirs(np.unique(x[~holes])))
    np.testing.assert_array_equal(x.reshape(-1)[np.asarray(indices)], number)
    np.testing.assert_array_equal(number[np.asarray(inverse)], x)


def test_names_of_the_results() -> None:
    x = xp.asarray([3, 1, 3])
    assert xp.unique_all(x)._fields == ("values", "indices", "inverse_indices", "counts")
    assert xp.unique_counts(x)._fields == ("values", "counts")
    assert xp.unique_inverse(x)._fields == ("values", "inverse_indices")


@few
@given(st.sampled_from(INTEGERS), st.sampled_from(INTEGERS), st.booleans(), st.data())
def test_isin(one, other, invert, data) -> None:
    if "uint64" in (one, other) and {one, other} & {*INTEGERS[:4]}:
        other = one
    small = data.draw(st.booleans())
    x, y = data.draw(hosts((one,), small=small)), data.draw(hosts((other,), small=small))
    agree(lambda xp, x, y: xp.isin(x, y) ^ xp.asarray(invert), x, y)
    found = xp.isin(mine(x), mine(y), invert=invert)
    np.testing.assert_array_equal(np.asarray(found), np.isin(x, y, invert=invert))
    number = data.draw(elements(one, small))
    agree(lambda xp, x: xp.isin(x, number), x)
    agree(lambda xp, x: xp.isin(number, x), x)


@few
@given(st.sampled_from((*FLOATS, "bool", "complex64")), st.data())
def test_isin_of_other_dtypes(name, data) -> None:
    x, y = data.draw(hosts((name,), small=True)), data.draw(hosts((name,), small=True))
    np.testing.assert_array_equal(np.asarray(xp.isin(mine(x), mine(y))), np.isin(x, y))


def test_isin_needs_an_array() -> None:
    with pytest.raises(TypeError):
        xp.isin(1, 2)


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_invalid_axes(name: str) -> None:
    for x, axis in ((xp.ones((2, 3)), 2), (xp.ones((2, 3)), -3), (xp.ones(()), 0)):
        with pytest.raises(IndexError):
            getattr(xp, name)(x, axis=axis)


@pytest.mark.parametrize("name", ALL)
def test_sets_of_every_dtype(name: str) -> None:
    x = xp.asarray([1, 0, 1, 1], dtype=getattr(xp, name))
    assert xp.unique_counts(x).counts.tolist() == [1, 3]
    assert xp.unique_values(x).dtype is x.dtype
