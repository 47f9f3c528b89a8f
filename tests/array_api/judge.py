"""array-api-strict as the judge: the same numbers in both namespaces, compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tensorflow_lite_clone as tlc
from tests.array_api.strategies import xp, xps

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
strict.set_array_api_strict_flags(api_version="2025.12")

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REALS = (*INTEGERS, *FLOATS)
NUMERIC = (*REALS, *COMPLEX)
ALL = ("bool", *NUMERIC)
#: Of sums and products, and of one rounding each: relative, and absolute for numbers near 0.
SUMS = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-10, "complex128": 1e-10}
ONE_ROUNDING = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}
EXACT: dict[str, float] = {}

few = settings(max_examples=40, deadline=None)
SHAPES = xps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
DIMENSIONED = xps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
NONEMPTY = xps.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4)


def dtype(name: str) -> Any:
    """Our dtype of that name."""
    return getattr(xp, name)


def elements(name: str, small: bool = False, nan: bool = True) -> st.SearchStrategy:
    """Numbers of a dtype; with `small` such that sums and products stay exact enough."""
    if name == "bool":
        return st.booleans()
    if name in INTEGERS:
        info = np.iinfo(name)
        low, high = (max(int(info.min), -9), 9) if small else (int(info.min), int(info.max))
        return st.integers(low, high)
    width = 32 if name in ("float32", "complex64") else 64
    if small:
        parts = st.integers(-64, 64).map(lambda number: number / 8)
    else:
        parts = st.floats(width=width, allow_nan=nan, allow_infinity=nan)
    return parts if name in FLOATS else st.builds(complex, parts, parts)


def hosts(
    names: Iterable[str] = ALL,
    shape: Any = SHAPES,
    *,
    small: bool = False,
    nan: bool = True,
) -> st.SearchStrategy:
    """NumPy arrays of the dtypes `names`, some elements of which repeat."""
    return st.sampled_from(tuple(names)).flatmap(
        lambda name: nps.arrays(name, shape, elements=elements(name, small, nan))
    )


def mine(host: np.ndarray) -> tlc.Tensor:
    """A tensor with the numbers of a NumPy array, which it does not share."""
    return tlc.from_numpy(np.array(host))


def theirs(host: np.ndarray) -> Any:
    """The judge's array with the numbers of a NumPy array."""
    return strict.asarray(np.array(host))


def name_of(array: Any) -> str:
    """The standard's name of an array's dtype."""
    return str(array.dtype).rpartition(".")[2]


def same(found: Any, wanted: Any, tolerance: dict[str, float] = EXACT) -> None:
    """Assert that a tensor, or a tuple of them, has the judge's dtype, shape and values."""
    if isinstance(wanted, tuple):
        assert isinstance(found, tuple) and len(found) == len(wanted)
        for one, other in zip(found, wanted):
            same(one, other, tolerance)
        return
    assert isinstance(found, tlc.Tensor)
    assert name_of(found) == name_of(wanted)
    assert tuple(found.shape) == wanted.shape
    host, judge = np.asarray(found), np.asarray(wanted._array)
    if rtol := tolerance.get(name_of(found)):
        atol = rtol if tolerance is SUMS else rtol * 1e-3
        np.testing.assert_allclose(host, judge, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(host, judge)


def agree(function: Callable[..., Any], *arrays: np.ndarray, close: bool = False) -> None:
    """Assert that ``function(namespace, *arrays)`` is the same in both namespaces."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's mean of nothing
        wanted = function(strict, *[theirs(host) for host in arrays])
    tolerance = SUMS if close else EXACT
    same(function(xp, *[mine(host) for host in arrays]), wanted, tolerance)


def axes(ndim: int, tuples: bool = True) -> st.SearchStrategy:
    """None, an axis or, with `tuples`, several."""
    if not ndim:
        return st.none()
    one = st.integers(-ndim, ndim - 1)
    return st.none() | one | xps.valid_tuple_axes(ndim) if tuples else st.none() | one
