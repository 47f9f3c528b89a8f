"""Broadcasting, promotion, indexing, views and einsum against torch, on drawn inputs."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.properties import strategies as draws
from tests.properties.strategies import VIEWS, dtype_of, index_for, values

BINARY = ("add", "sub", "mul", "true_divide", "maximum", "eq", "lt", "pow")


def both(function):
    """What `function` gives for both libraries: a value as (dtype, shape, array), or an error."""
    results = []
    for lib in (tlc, torch):
        try:
            results.append(("value", [described(value) for value in function(lib)]))
        except Exception as error:
            results.append(("error", type(error)))
    return results


def described(value):
    if not hasattr(value, "dtype"):
        return value
    array = value.detach().cpu()
    if str(array.dtype) == "torch.bfloat16":
        array = array.float()
    return str(value.dtype), tuple(value.shape), array.numpy().copy()  # as it is now


def assert_same(function, tolerance=0.0):
    (kind, ours), (expected_kind, theirs) = both(function)
    assert kind == expected_kind, (ours, theirs)
    if kind == "error":
        assert issubclass(ours, theirs), (ours, theirs)
        return
    for mine, other in zip(ours, theirs, strict=True):
        if not isinstance(other, tuple):
            assert mine == other
            continue
        assert mine[:2] == other[:2]
        np.testing.assert_allclose(mine[2], other[2], rtol=tolerance, atol=tolerance)


def tensor(lib, shape, dtype="float64", seed=0):
    device = DEVICE if lib is tlc else "cpu"
    return lib.tensor(values(shape, dtype, seed), device=device).to(dtype_of(lib, dtype))


def on_device(lib, index):
    """An index whose tensors lie beside the data."""
    if lib is torch:
        return index
    return tuple(e.to(DEVICE) if isinstance(e, tlc.Tensor) else e for e in index)


@given(draws.broadcastable(), st.sampled_from(BINARY[:6]))
def test_broadcasting(shapes, name):
    """Values, shapes, errors and both gradients of binary functions."""

    def run(lib):
        x, y = tensor(lib, shapes[0], seed=1), tensor(lib, shapes[1], seed=2)
        y = y.abs() + 1
        x.requires_grad_()
        y.requires_grad_()
        z = getattr(lib, name)(x, y)
        yield z
        if z.dtype is not lib.bool:
            (z * tensor(lib, tuple(z.shape), seed=3)).sum().backward()
            yield x.grad
            yield y.grad

    assert_same(run, 1e-12)


@given(draws.dtypes, draws.dtypes, st.sampled_from(("row", "zero", "number")), st.data())
def test_promotion(first, second, kind, data):
    """Result dtypes of every mixture of dtypes, zero-dim tensors and Python numbers."""
    name = data.draw(st.sampled_from(BINARY))

    def run(lib):
        x = tensor(lib, (3,), first, seed=1)
        if kind == "number":
            y = {"b": True, "i": 2, "u": 2, "f": 1.5, "c": 1 + 2j}[_letter(second)]
        else:
            y = tensor(lib, (3,) if kind == "row" else (), second, seed=2)
        if {"float16"} & {first, second} and "c" in (_letter(first), _letter(second)):
            return  # torch may give a complex dtype of halves, which few of its operations know
        yield str(getattr(lib, name)(x, y).dtype)
        yield str(lib.result_type(x, y))

    assert_same(run)


def _letter(dtype):
    return "f" if dtype == "bfloat16" else np.dtype(dtype).kind


@given(draws.shapes, st.data())
def test_basic_indexing(shape, data):
    """Reading and writing through integers, slices, None and ellipsis, with gradients."""
    index = data.draw(draws.basic_index(shape))

    def run(lib):
        x = tensor(lib, shape, seed=1).requires_grad_()
        y = x * 1
        part = y[index]
        yield part
        y[index] = part.detach() * 2 + 1
        yield y
        (y * tensor(lib, shape, seed=2)).sum().backward()
        yield x.grad

    assert_same(run)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.data())
def test_advanced_indexing(shape, data):
    """Integer arrays and masks mixed with basic entries: reading, writing, gradients."""
    index = data.draw(draws.any_index(shape))

    def run(lib):
        x = tensor(lib, shape, seed=1).requires_grad_()
        chosen = on_device(lib, index_for(lib, index))
        part = x[chosen]
        yield part
        (part * tensor(lib, tuple(part.shape), seed=2)).sum().backward()
        yield x.grad
        y = tensor(lib, shape, seed=3)
        y[chosen] = 7
        yield y

    assert_same(run)


@given(draws.shapes, draws.view_chains)
def test_views(shape, chain):
    """Chains of views: values, strides of memory shared with the base, writes and gradients."""

    def run(lib):
        x = tensor(lib, shape, seed=1).requires_grad_()
        base = x * 1
        view = base
        for position, number in chain:
            view = VIEWS[position][1](view, number)
        yield view
        if view.numel():  # the stride of a dimension of one element means nothing
            yield str([s for s, n in zip(view.stride(), view.shape) if n > 1])
        view.mul_(3)
        yield base
        (base * tensor(lib, shape, seed=2)).sum().backward()
        yield x.grad

    assert_same(run)


@given(draws.equations())
def test_einsum(drawn):
    """Contractions with repeated and summed indices, and their gradients."""
    equation, shapes = drawn

    def run(lib):
        operands = [tensor(lib, shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]
        result = lib.einsum(equation, *operands)
        yield result
        (result * tensor(lib, tuple(result.shape), seed=9)).sum().backward()
        yield from (operand.grad for operand in operands)

    assert_same(run, 1e-12)


@given(draws.shapes, st.lists(st.integers(-1, 6), max_size=4).map(tuple))
def test_reshape(shape, target):
    """Any target shape: the same values or the same kind of error."""
    assert_same(lambda lib: [tensor(lib, shape).reshape(target)])
    assert_same(lambda lib: [tensor(lib, shape).flatten()])
