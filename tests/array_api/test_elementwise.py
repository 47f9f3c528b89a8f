"""Element-wise functions against array-api-strict: dtypes, shapes, values, promotion, numbers."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.domains import BINARY, PAIRS, SHAPES, UNARY, arrays, nearly, numbers, strictly
from tests.array_api.judge import ALL, COMPLEX, FLOATS, INTEGERS, few, strict
from tests.array_api.strategies import xp, xps


def compare(name: str, *operands: Any) -> None:
    function = getattr(strict, name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = function(*[strictly(x) for x in operands])
    nearly(getattr(xp, name)(*operands), wanted)


@pytest.mark.parametrize("name", UNARY)
@given(data=st.data())
@few
def test_unary(name: str, data: Any) -> None:
    dtype = data.draw(st.sampled_from(UNARY[name]))
    compare(name, data.draw(arrays(dtype, name, SHAPES)))


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


@pytest.mark.parametrize("dtype", FLOATS)
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
    dtype = data.draw(st.sampled_from(INTEGERS + FLOATS))
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
    nearly(xp.clip(x, low, high), strict.asarray(wanted))
    nearly(xp.clip(x, max=high, min=low), strict.asarray(wanted))


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
        if source in INTEGERS + FLOATS
        else arrays(source, "square", SHAPES)
    )
    found = xp.astype(x, getattr(xp, target), copy=data.draw(st.booleans()))
    nearly(found, strict.astype(strictly(x), getattr(strict, target)))
    assert xp.astype(x, x.dtype, copy=False) is x and xp.astype(x, x.dtype) is not x


@pytest.mark.parametrize("name", BINARY)
def test_operands_are_arrays_or_numbers(name: str) -> None:
    """One of them is an array, but of PyTorch's functions that take two numbers."""
    refused = [(xp.ones(2), "word"), (xp.ones(2), None), ("word", xp.ones(2))]
    if name not in ("add", "subtract", "multiply", "divide"):
        refused.append((1, 2))
    for operands in refused:
        with pytest.raises(TypeError):
            getattr(xp, name)(*operands)


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
