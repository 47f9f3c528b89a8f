"""Element-wise functions against array-api-strict: dtypes, shapes, values, promotion, numbers."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.strategies import xp, xps

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
strict.set_array_api_strict_flags(api_version="2025.12")

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGER = SIGNED + UNSIGNED
REAL = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
FLOATING = REAL + COMPLEX
NUMERIC = INTEGER + FLOATING
ALL = BOOL + NUMERIC

#: The dtypes for which the standard defines each function.
UNARY = {
    **dict.fromkeys(
        "abs conj negative positive isfinite isinf isnan round sign square".split(), NUMERIC
    ),
    **dict.fromkeys("ceil floor trunc".split(), INTEGER + REAL),
    **dict.fromkeys(
        "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 reciprocal sin "
        "sinh sqrt tan tanh".split(), FLOATING
    ),
    "bitwise_invert": BOOL + INTEGER, "imag": COMPLEX, "logical_not": BOOL, "real": NUMERIC,
    "signbit": REAL,
}  # fmt: skip
BINARY = {
    **dict.fromkeys("add subtract multiply pow".split(), NUMERIC),
    **dict.fromkeys("floor_divide remainder maximum minimum".split(), INTEGER + REAL),
    **dict.fromkeys("atan2 copysign hypot logaddexp nextafter".split(), REAL),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor".split(), BOOL + INTEGER),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), INTEGER),
    **dict.fromkeys("equal not_equal".split(), ALL),
    **dict.fromkeys("greater greater_equal less less_equal".split(), INTEGER + REAL),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), BOOL),
    "divide": FLOATING,
}  # fmt: skip
SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
#: Where array-api-strict, which is NumPy, has other special cases than the standard prefers.
FINITE = ("floor_divide", "expm1", "sign", "pow", "reciprocal", "divide", "multiply", "square")
few = settings(max_examples=25, deadline=None)


def strictly(x: Any) -> Any:
    """The same numbers in array-api-strict."""
    return strict.asarray(np.asarray(x)) if isinstance(x, tlc.Tensor) else x


def same(found: Any, wanted: Any) -> None:
    """Assert that an array has array-api-strict's dtype, shape and, nearly, values."""
    assert isinstance(found, tlc.Tensor)
    assert found.shape == wanted.shape
    assert str(found.dtype).endswith("." + str(wanted.dtype).rpartition(".")[2])
    rtol = {"float32": 1e-5, "complex64": 1e-5}.get(wanted.dtype._np_dtype.name, 1e-12)
    values = np.asarray(wanted._array)
    np.testing.assert_allclose(np.asarray(found), values, rtol=rtol, atol=rtol * 1e-3)


def compare(name: str, *operands: Any) -> None:
    function = getattr(strict, name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = function(*[strictly(x) for x in operands])
    same(getattr(xp, name)(*operands), wanted)


def numbers(dtype: str, name: str, second: bool = False) -> st.SearchStrategy[Any]:
    """Numbers of a dtype for which `name` is defined, and without large rounding errors."""
    anything = name not in FINITE
    if dtype in INTEGER:
        info = np.iinfo(dtype)
        low, high = max(info.min, -(2**40)), min(info.max, 2**40)
        if name == "pow":
            low, high = 0, 5 if second else 9
        elif name in SHIFTS and second:
            low, high = 0, 7
        elif name in ("floor_divide", "remainder") and second:
            low = 1
        return st.integers(low, high)
    if dtype in REAL:
        width = 32 if dtype == "float32" else 64
        if anything:
            return st.floats(width=width)
        bound = 4.0 if name == "pow" else 2.0**20
        return st.floats(0.0 if name == "pow" and not second else -bound, bound, width=width)
    if dtype in COMPLEX:
        return st.complex_numbers(
            width=64 if dtype == "complex64" else 128,
            min_magnitude=0.5,
            max_magnitude=None if anything else 4.0,
            **({} if anything else {"allow_nan": False, "allow_infinity": False}),
        )
    return st.booleans()


def arrays(dtype: str, name: str, shape: Any, second: bool = False) -> st.SearchStrategy[Any]:
    return xps.arrays(getattr(xp, dtype), shape, elements=numbers(dtype, name, second))


SHAPES = xps.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data())
@few
def test_unary(name: str, data: Any) -> None:
    dtype = data.draw(st.sampled_from(UNARY[name]))
    compare(name, data.draw(arrays(dtype, name, SHAPES)))


def promotable(a: str, b: str) -> bool:
    try:
        strict.result_type(getattr(strict, a), getattr(strict, b))
    except TypeError:
        return False
    return True


PAIRS = [(a, b) for a in ALL for b in ALL if promotable(a, b)]


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
@few
def test_binary(name: str, data: Any) -> None:
    """Shapes broadcast and dtypes are promoted, those of arrays without dimensions as well."""
    allowed = [(a, b) for a, b in PAIRS if a in BINARY[name] and b in BINARY[name]]
    if name == "nextafter":
        allowed = [(a, b) for a, b in allowed if a == b]
    first, second = data.draw(st.sampled_from(allowed))
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3)).input_shapes
    x1 = data.draw(arrays(first, name, shapes[0]))
    x2 = data.draw(arrays(second, name, shapes[1], True))
    compare(name, x1, x2)


@pytest.mark.parametrize("name", BINARY)
@given(data=st.data())
@few
def test_numbers(name: str, data: Any) -> None:
    """A Python number as either operand takes the array's dtype."""
    dtype = data.draw(st.sampled_from(BINARY[name]))
    if data.draw(st.booleans()):
        x1 = data.draw(arrays(dtype, name, SHAPES))
        x2 = data.draw(numbers(dtype, name, True))
    else:
        x1 = data.draw(numbers(dtype, name))
        x2 = data.draw(arrays(dtype, name, SHAPES, True))
    compare(name, x1, x2)


@pytest.mark.parametrize("dtype", REAL)
@given(data=st.data())
@few
def test_complex_numbers(dtype: str, data: Any) -> None:
    """A complex number makes a real array complex."""
    x = data.draw(arrays(dtype, "multiply", SHAPES))
    number = data.draw(numbers("complex128", "multiply"))
    for name in ("add", "subtract", "multiply"):
        compare(name, x, number)
        compare(name, number, x)


@given(data=st.data())
@few
def test_clip(data: Any) -> None:
    dtype = data.draw(st.sampled_from(INTEGER + REAL))
    shapes = data.draw(xps.mutually_broadcastable_shapes(3, max_dims=2, max_side=3)).input_shapes
    x = data.draw(arrays(dtype, "add", shapes[0]))
    bounds = [
        data.draw(st.none() | arrays(dtype, "multiply", shape) | numbers(dtype, "multiply"))
        for shape in shapes[1:]
    ]
    low, high = bounds
    with np.errstate(all="ignore"):
        wanted = np.asarray(strictly(x)._array)
        host = [bound if bound is None else np.asarray(bound, wanted.dtype) for bound in bounds]
        wanted = wanted if high is None else np.minimum(wanted, host[1])
        wanted = wanted if low is None else np.maximum(wanted, host[0])
        if low is not None and high is not None and np.any(host[0] > host[1]):
            return  # unspecified
    same(xp.clip(x, low, high), strict.asarray(wanted))
    same(xp.clip(x, max=high, min=low), strict.asarray(wanted))


@given(data=st.data())
@few
def test_where(data: Any) -> None:
    first, second = data.draw(st.sampled_from(PAIRS))
    shapes = data.draw(xps.mutually_broadcastable_shapes(3, max_dims=2, max_side=3)).input_shapes
    condition = data.draw(arrays("bool", "where", shapes[0]))
    x1, x2 = (
        data.draw(arrays(first, "where", shapes[1])),
        data.draw(arrays(second, "where", shapes[2])),
    )
    compare("where", condition, x1, x2)
    compare("where", condition, x1, data.draw(numbers(first, "where")))
    compare("where", condition, data.draw(numbers(second, "where")), x2)


@given(data=st.data())
@few
def test_astype(data: Any) -> None:
    source = data.draw(st.sampled_from(ALL))
    target = data.draw(st.sampled_from(ALL if source not in COMPLEX else COMPLEX))
    x = data.draw(
        xps.arrays(getattr(xp, source), SHAPES, elements={"min_value": 0, "max_value": 100})
        if source in INTEGER + REAL
        else arrays(source, "square", SHAPES)
    )
    found = xp.astype(x, getattr(xp, target), copy=data.draw(st.booleans()))
    same(found, strict.astype(strictly(x), getattr(strict, target)))
    assert xp.astype(x, x.dtype, copy=False) is x and xp.astype(x, x.dtype) is not x


def test_names_and_signatures() -> None:
    """Every function of the standard is there, and takes the standard's arguments."""
    for name in [*UNARY, *BINARY, "clip", "where", "astype"]:
        found = inspect.signature(getattr(xp, name)).parameters.values()
        wanted = inspect.signature(getattr(strict, name)).parameters.values()
        assert [(p.name, p.kind) for p in found] == [(p.name, p.kind) for p in wanted], name
        assert [p.default for p in found][2:3] == [p.default for p in wanted][2:3], name
        assert getattr(xp, name).__name__ == name and getattr(xp, name).__doc__


@pytest.mark.parametrize("name", ["exp", "expm1", "round", "sign", "floor_divide", "pow", "hypot"])
def test_gradients(name: str) -> None:
    """The functions are differentiable; in pieces constant ones have the gradient 0."""
    x = tlc.tensor([0.3, 1.7], dtype=tlc.float64, requires_grad=True)
    operands = (x, x * 0.5) if name in BINARY else (x,)
    function = getattr(xp, name)
    function(*operands).sum().backward()
    step = 1e-6
    for i in range(2):
        ends = []
        for sign in (1, -1):
            y = x.detach().clone()
            y[i] += sign * step
            ends.append(float(function(*((y, y * 0.5) if name in BINARY else (y,))).sum()))
        assert math.isclose(float(x.grad[i]), (ends[0] - ends[1]) / (2 * step), abs_tol=1e-6)
