"""The array object: operators, methods, attributes, conversions to Python's numbers."""

from __future__ import annotations

import inspect
import math
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.array_api.domains import BINARY, PAIRS, SHAPES, UNARY, arrays, nearly, numbers, strictly
from tests.array_api.judge import ALL, COMPLEX, FLOATS, INTEGERS, few, strict
from tests.array_api.special_cases import COMPARISONS, OPERATORS
from tests.array_api.strategies import xp, xps

SIGNS = {"abs": "abs", "neg": "negative", "pos": "positive", "invert": "bitwise_invert"}


def python(name: str) -> Any:
    return getattr(operator, f"__{name}__")


def operands(data: Any, function: str, first: str, second: str) -> tuple[Any, Any]:
    """Arrays that broadcast; where their dtypes differ, both or neither have dimensions.

    An operator of tensors is PyTorch's: of two dtypes of a kind, that of the tensor that has
    dimensions counts. `test_elementwise` holds the functions to the standard's rule.
    """
    shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3)).input_shapes
    if first != second and bool(shapes[0]) != bool(shapes[1]):
        shapes = [(), ()]
    x1 = data.draw(arrays(first, function, shapes[0]))
    return x1, data.draw(arrays(second, function, shapes[1], True))


def pairs(function: str) -> list[tuple[str, str]]:
    """Dtypes that the standard promotes."""
    return [(a, b) for a, b in PAIRS if a in BINARY[function] and b in BINARY[function]]


@pytest.mark.parametrize("name", [*OPERATORS, *COMPARISONS])
@given(data=st.data())
@few
def test_binary(name: str, data: Any) -> None:
    function = OPERATORS.get(name) or COMPARISONS[name]
    x1, x2 = operands(data, function, *data.draw(st.sampled_from(pairs(function))))
    with np.errstate(all="ignore"):
        wanted = python(name)(strictly(x1), strictly(x2))
    nearly(python(name)(x1, x2), wanted)


@pytest.mark.parametrize("name", [*OPERATORS, *COMPARISONS])
@given(data=st.data())
@few
def test_numbers(name: str, data: Any) -> None:
    """A number on the right, and, by the reflected operator, on the left."""
    function = OPERATORS.get(name) or COMPARISONS[name]
    dtype = data.draw(st.sampled_from(BINARY[function]))
    x = data.draw(arrays(dtype, function, SHAPES))
    number = data.draw(numbers(dtype, function, True))
    with np.errstate(all="ignore"):
        if not (name == "pow" and dtype in FLOATS and abs(number) == 0.5):  # PyTorch's are roots
            nearly(python(name)(x, number), python(name)(strictly(x), number))
        x = data.draw(arrays(dtype, function, SHAPES, True))
        number = data.draw(numbers(dtype, function))
        nearly(python(name)(number, x), python(name)(number, strictly(x)))


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
@few
def test_in_place(name: str, data: Any) -> None:
    """The array stays the same object, in the same memory, of the same dtype."""
    function = OPERATORS[name]
    dtype = data.draw(st.sampled_from(BINARY[function]))
    x1 = data.draw(arrays(dtype, function, xps.array_shapes(min_dims=0, max_dims=2, max_side=3)))
    x2 = data.draw(
        arrays(dtype, function, st.sampled_from([x1.shape, x1.shape[1:], ()]), True)
        | numbers(dtype, function, True)
    )
    if name == "pow" and dtype in FLOATS and not isinstance(x2, tlc.Tensor) and abs(x2) == 0.5:
        return
    with np.errstate(all="ignore"):
        wanted = python(name)(strictly(x1), strictly(x2))
    place, before = x1.data_ptr(), x1
    x1 = getattr(operator, f"__i{name}__")(x1, x2)
    assert x1 is before and x1.data_ptr() == place
    nearly(x1, wanted)


@pytest.mark.parametrize("name", SIGNS)
@given(data=st.data())
@few
def test_unary(name: str, data: Any) -> None:
    function = SIGNS[name]
    dtype = data.draw(st.sampled_from(UNARY[function]))
    x = data.draw(arrays(dtype, function, SHAPES))
    with np.errstate(all="ignore"):
        nearly(python(name)(x), python(name)(strictly(x)))


@given(data=st.data())
@few
def test_attributes(data: Any) -> None:
    dtype = data.draw(st.sampled_from(ALL))
    x = data.draw(arrays(dtype, "conj", SHAPES))
    assert isinstance(x.shape, tuple) and x.ndim == len(x.shape)
    assert x.size() == x.shape and x.numel() == math.prod(x.shape)  # PyTorch's `size`
    assert x.dtype is getattr(xp, dtype)
    assert x.device == xp.__array_namespace_info__().default_device()
    assert x.to_device(x.device) is x and x.to_device(x.device, stream=None) is x
    assert x.__array_namespace__() is xp and x.__dlpack_device__()[0] == 1
    if x.ndim == 2:
        nearly(x.T, strictly(x).T)
    if x.ndim >= 2:
        nearly(x.mT, strictly(x).mT)
    if x.ndim == 1:
        with pytest.raises(RuntimeError):
            _ = x.mT


@given(data=st.data())
@few
def test_matmul(data: Any) -> None:
    dtype = data.draw(st.sampled_from(INTEGERS + FLOATS + COMPLEX))
    n = data.draw(st.integers(0, 3))
    lead = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=2, max_side=2)).input_shapes
    left = data.draw(st.sampled_from([(n,), (2, n), (*lead[0], 3, n)]))
    right = data.draw(st.sampled_from([(n,), (n, 2), (*lead[1], n, 1)]))
    x1, x2 = (data.draw(arrays(dtype, "multiply", shape)) for shape in (left, right))
    with np.errstate(all="ignore"):
        wanted = np.asarray(strictly(x1)._array) @ np.asarray(strictly(x2)._array)
    nearly(x1 @ x2, strict.asarray(wanted))
    if len(left) == len(right) == 2 and right[1] == n:
        nearly(operator.imatmul(x1, x2), strict.asarray(wanted))


@given(data=st.data())
@few
def test_python_numbers(data: Any) -> None:
    """bool, int, float and complex of one number; int and operator.index keep integers exact."""
    dtype = data.draw(st.sampled_from(ALL))
    x = data.draw(arrays(dtype, "conj", ()))
    number = x.tolist()
    assert bool(x) is bool(number)
    found = complex(x)
    assert found == complex(number) or found != found
    if dtype in COMPLEX:
        return
    assert float(x) == float(number) or number != number
    if dtype in INTEGERS:
        assert operator.index(x) == number
    elif dtype in FLOATS:
        pytest.raises(TypeError, operator.index, x)
    if number != number:
        pytest.raises(ValueError, int, x)
    elif abs(number) == math.inf:
        pytest.raises(OverflowError, int, x)
    else:
        assert int(x) == int(number)


def test_operators_are_pytorchs_functions_the_standards() -> None:
    """Operators are PyTorch's, functions of the namespace the standard's."""
    x, number = xp.asarray([-math.inf, -0.0]), xp.asarray(1.0, dtype=xp.float64)
    assert (x + number).dtype is xp.float32 and xp.add(x, number).dtype is xp.float64
    assert xp.isnan((x // 2.0)[0]) and xp.floor_divide(x, 2.0)[0] == -math.inf
    assert xp.isnan((x**0.5)[0]) and xp.pow(x, 0.5)[0] == math.inf
    assert tlc.sign(x * 0)[0] == 0 and xp.isnan(xp.sign(x * 0)[0])


@pytest.mark.parametrize("size", [0, 2])
def test_one_number_only(size: int) -> None:
    x = xp.zeros(size)
    for kind in (bool, int, float, complex, operator.index):
        with pytest.raises((RuntimeError, ValueError, TypeError)):
            kind(x)


def test_methods_are_there() -> None:
    """Every method of the standard, with its parameters."""
    names = [
        *(
            "__abs__ __bool__ __complex__ __dlpack__ __dlpack_device__ __float__ __getitem__"
        ).split(),
        *(
            "__index__ __int__ __invert__ __matmul__ __neg__ __pos__ __rmatmul__ __setitem__"
        ).split(),
        *("__array_namespace__ to_device").split(),
        *[f"__{name}__" for name in COMPARISONS],
        *[f"__{prefix}{name}__" for name in OPERATORS for prefix in ("", "r", "i")],
    ]
    array = type(strict.zeros(1))
    for name in names:
        found = inspect.signature(getattr(tlc.Tensor, name)).parameters
        wanted = inspect.signature(getattr(array, name)).parameters
        keywords = [p.name for p in wanted.values() if p.kind is p.KEYWORD_ONLY]
        assert set(keywords) <= set(found), name
        positional = [p for p in found.values() if p.kind is not p.KEYWORD_ONLY]
        assert len(positional) >= len(wanted) - len(keywords) - (name == "to_device"), name
    for name in "dtype device mT ndim shape size T".split():
        assert hasattr(tlc.Tensor, name)


def test_dlpack() -> None:
    x = xp.arange(6.0)
    for options in ({}, {"copy": False}, {"max_version": (1, 0)}, {"dl_device": (1, 0)}):
        lent = np.from_dlpack(Lender(x, options))
        assert np.shares_memory(lent, x.numpy()) and lent.tolist() == x.tolist()
    assert not np.shares_memory(np.from_dlpack(Lender(x, {"copy": True})), x.numpy())
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


class Lender:
    """An array whose `__dlpack__` is called with given options."""

    def __init__(self, x: Any, options: dict[str, Any]) -> None:
        self.x, self.options = x, options

    def __dlpack__(self, **asked: Any) -> Any:
        return self.x.__dlpack__(**{**asked, **self.options})

    def __dlpack_device__(self) -> Any:
        return self.x.__dlpack_device__()
