"""Reductions and running sums: the judge's results, dtypes, special cases."""

from __future__ import annotations

import math

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.judge import (
    ALL,
    DIMENSIONED,
    FLOATS,
    INTEGERS,
    NONEMPTY,
    NUMERIC,
    REALS,
    UNSIGNED,
    agree,
    axes,
    dtype,
    few,
    hosts,
    mine,
    name_of,
    same,
    theirs,
)
from tests.array_api.strategies import xp

FLOATING = (*FLOATS, "complex64", "complex128")


@pytest.mark.parametrize("name", ["sum", "prod"])
@few
@given(hosts(NUMERIC, small=True), st.booleans(), st.data())
def test_sums_and_products(name, x, keepdims, data) -> None:
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), x, close=True)


@pytest.mark.parametrize("name", ["sum", "prod"])
@few
@given(hosts(INTEGERS, small=True), st.sampled_from(NUMERIC), st.data())
def test_sums_in_another_dtype(name, x, wanted, data) -> None:
    axis = data.draw(axes(x.ndim))
    function = lambda xp, x: getattr(xp, name)(x, axis=axis, dtype=getattr(xp, wanted))
    agree(function, abs(x) if wanted in UNSIGNED else x, close=True)


@pytest.mark.parametrize("name", ["max", "min"])
@few
@given(hosts(REALS, NONEMPTY), st.booleans(), st.data())
def test_extremes(name, x, keepdims, data) -> None:
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), x)


@few
@given(hosts(FLOATING, small=True), st.booleans(), st.data())
def test_mean(x, keepdims, data) -> None:
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: xp.mean(x, axis=axis, keepdims=keepdims), x, close=True)


@pytest.mark.parametrize("name", ["var", "std"])
@few
@given(hosts(FLOATS, NONEMPTY, small=True), st.booleans(), st.data())
def test_std_and_var_of_drawn_arrays(name, x, keepdims, data) -> None:
    axis = data.draw(axes(x.ndim))
    results = np.zeros(x.shape).sum(axis=axis).size
    correction = data.draw(st.floats(0, 0.99) | st.sampled_from([0, 1, 1.5, 2, 3.5]))
    keywords = {"axis": axis, "correction": correction, "keepdims": keepdims}
    function = lambda xp, x: getattr(xp, name)(x, **keywords)
    if x.size // results > correction:
        agree(function, x, close=True)
    else:  # NumPy has an infinity for what is not 0 / 0
        assert np.isnan(np.asarray(function(xp, mine(x)))).all()


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@few
@given(hosts(NUMERIC, DIMENSIONED, small=True), st.booleans(), st.data())
def test_running(name, x, initial, data) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    if x.ndim == 1:
        axis = data.draw(st.sampled_from([axis, None]))
    wanted = data.draw(st.none() | st.sampled_from(FLOATING))
    wanted = None if x.dtype.kind == "c" else wanted
    agree(
        lambda xp, x: getattr(xp, name)(
            x, axis=axis, include_initial=initial, dtype=wanted and getattr(xp, wanted)
        ),
        x,
        close=True,
    )


@pytest.mark.parametrize("name", ["all", "any"])
@few
@given(hosts(), st.booleans(), st.data())
def test_truth(name, x, keepdims, data) -> None:
    axis = data.draw(axes(x.ndim))
    agree(lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keepdims), x)


@few
@given(hosts(NUMERIC, DIMENSIONED, small=True), st.integers(0, 3), st.data())
def test_diff(x, n, data) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    ends = []
    for _ in range(2):
        shape = list(x.shape)
        shape[axis] = data.draw(st.integers(0, 2))
        ends.append(data.draw(hosts((x.dtype.name,), tuple(shape), small=True)))
    agree(lambda xp, x: xp.diff(x, axis=axis, n=n), x)
    joined = lambda xp, x, a, b: xp.diff(xp.concat([a, x, b], axis=axis), axis=axis, n=n)
    found = xp.diff(mine(x), axis=axis, n=n, prepend=mine(ends[0]), append=mine(ends[1]))
    same(found, joined(strict, theirs(x), *map(theirs, ends)))
    agree(lambda xp, x, a: xp.diff(x, axis=axis, append=a), x, ends[0])


@pytest.mark.parametrize("name", ALL)
def test_dtypes_of_sums(name: str) -> None:
    """Integers become 64 bits wide and stay signed or unsigned; anything else stays what it is."""
    if name == "bool":
        return
    x, y = xp.ones((2, 3), dtype=dtype(name)), strict.ones((2, 3), dtype=getattr(strict, name))
    for word in ("sum", "prod", "cumulative_sum", "cumulative_prod"):
        keywords = {"axis": 1} if word.startswith("cum") else {}
        found, wanted = getattr(xp, word)(x, **keywords), getattr(strict, word)(y, **keywords)
        assert name_of(found) == name_of(wanted)


def test_nothing_to_reduce() -> None:
    x = xp.zeros((0, 3))
    assert float(xp.sum(x)) == 0 and float(xp.prod(x)) == 1
    assert math.isnan(xp.mean(x)) and math.isnan(xp.var(x)) and math.isnan(xp.std(x))
    assert bool(xp.all(x)) and not bool(xp.any(x)) and xp.sum(x, axis=0).shape == (3,)


def test_nan() -> None:
    x = xp.asarray([1.0, math.nan, 2.0])
    for name in ("sum", "prod", "max", "min", "mean", "var", "std"):
        assert math.isnan(getattr(xp, name)(x))
    assert bool(xp.all(x))


def test_integers() -> None:
    """Means of integers have the default dtype, as PyTorch has none to compare with."""
    x = xp.asarray([1, 2, 4], dtype=xp.uint16)
    assert xp.mean(x).dtype is xp.float32 and abs(float(xp.mean(x)) - 7 / 3) < 1e-6
    assert xp.std(x).dtype is xp.float32 and abs(float(xp.var(x)) - 14 / 9) < 1e-6


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "std", "var", "all", "any"])
def test_invalid_axes(name: str) -> None:
    for x, axis in ((xp.ones((2, 3)), 2), (xp.ones((2, 3)), -3), (xp.ones(()), 0)):
        with pytest.raises(IndexError):
            getattr(xp, name)(x, axis=axis)
    with pytest.raises(ValueError, match="twice"):
        getattr(xp, name)(xp.ones((2, 3)), axis=(0, -2))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod", "diff"])
def test_invalid_axes_of_scans(name: str) -> None:
    for axis in (2, -3):
        with pytest.raises(IndexError):
            getattr(xp, name)(xp.ones((2, 3)), axis=axis)
    if name != "diff":
        with pytest.raises(ValueError, match="axis must be given"):
            getattr(xp, name)(xp.ones((2, 3)))


def test_gradients() -> None:
    """What the standard adds to PyTorch's functions is differentiable like the rest."""
    x = tlc.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=tlc.float64, requires_grad=True)
    assert tlc.autograd.gradcheck(lambda x: xp.cumulative_prod(x, axis=0, include_initial=True), x)
    assert tlc.autograd.gradcheck(lambda x: xp.std(x, axis=1, correction=0.5), x)
    assert tlc.autograd.gradcheck(lambda x: xp.diff(x, prepend=x, axis=0), x)
