"""Usual calls take short ways: what must not change on them, and which calls must not take them."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy.backend import NumpyBackend
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.dispatch.op import TABLE, Op


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int32", "bool"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_reductions_of_every_dtype(name: str, dtype: str, shape: tuple) -> None:
    def found(lib):
        x = (lib.arange(float(prod(shape))) - 2).reshape(shape).to(getattr(lib, dtype))
        try:
            result = getattr(x, name)()
        except (RuntimeError, IndexError) as error:
            return type(error)
        return str(result.dtype), tuple(result.shape), str(result.item())

    assert found(tlc) == found(torch)


def test_arguments_of_reductions() -> None:
    x = tlc.arange(6.0).reshape(2, 3)
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [12]]
    assert tlc.sum(x=x, dim=0).tolist() == [3, 5, 7]
    assert x.mean((0, 1)).item() == 2.5 and x.max(1)[1].tolist() == [2, 2]
    assert x.sum(0, dtype=tlc.float64).dtype is tlc.float64
    with pytest.raises(TypeError, match="multiple values"):
        x.sum(0, axis=1)
    with pytest.raises(TypeError, match="input"):
        tlc.sum()
    with pytest.raises(TypeError, match="must be Tensor"):
        tlc.sum([1.0])
    with pytest.raises(TypeError, match="unexpected"):
        x.sum(other=1)


def test_overrides_that_never_decline() -> None:
    class Twice(Op):
        def forward(F, x):
            return x + x

    cpu = NumpyBackend()
    key = ("twice", "numpy")
    try:
        table.override("twice", backend="numpy")(lambda F, x: NotImplemented)
        assert table.run(Twice, cpu, (3,), {}) == 6
        assert (table.served[key], table.declined[key]) == (0, 1)
        table.override("twice", backend="numpy", declines=False)(lambda F, x: -x)
        assert table.run(Twice, cpu, (3,), {}) == -3
        assert (table.served[key], table.declined[key]) == (0, 1)
        table.override("twice", backend="numpy")(lambda F, x: 5 * x)
        assert table.run(Twice, cpu, (3,), {}) == 15
        assert table.served.copy()[key] == 1
    finally:
        table.overrides.pop(key, None)
        table.total.discard(key)
        del TABLE["twice"]


def test_overrides_for_many_elements_are_not_asked_about_few(monkeypatch) -> None:
    asked: list[str] = []

    class Thrice(Op):
        def forward(F, x):
            return "generic"

    def noting(layer: str):
        def special(F, x):
            asked.append(layer)
            return NotImplemented

        return special

    cpu = NumpyBackend()
    monkeypatch.setattr(cpu, "accelerators", ("fast",), raising=False)
    keys = ("thrice", "numpy"), ("thrice", "fast")
    try:
        table.override("thrice", backend="numpy", least=3)(noting("numpy"))
        table.override("thrice", backend="fast", least=5)(noting("fast"))
        ones = cpu.F.ones
        calls = [(ones(2), []), (ones(4), ["numpy"]), (ones(6), ["fast", "numpy"])]
        calls += [([x, x[:0]], layers) for x, layers in calls] + [([ones(2), ones(1)], ["numpy"])]
        for x, layers in calls:
            assert table.run(Thrice, cpu, (x,), {}) == "generic"
            assert asked == layers
            asked.clear()
        assert table.declined["thrice", "fast"] == 2
        table.override("thrice", backend="numpy")(noting("for all"))
        table.run(Thrice, cpu, (ones(2),), {})
        assert asked == ["for all"]
    finally:
        for key in keys:
            table.overrides.pop(key, None)
            table.min_sizes.pop(key, None)
        del TABLE["thrice"]


def test_gradients_of_no_input_are_refused() -> None:
    with pytest.raises(
        TypeError, match="'backward_z' of the op 'misnamed' names no input: .* x, y"
    ):

        class Misnamed(Op):
            def forward(F, x, y):
                return x * y

            def backward_z(F, g):
                return g

    assert "misnamed" not in TABLE


def test_views_that_may_not_be_used_are_left_alone_without_gradients() -> None:
    """Products look at the graph only where they are recorded."""
    base = tlc.ones(4, 4, requires_grad=True) * 1
    part = base.split(2)[0]
    with tlc.no_grad():
        base.mul_(2)
        assert (part @ base)[0, 0].item() == 16
    with pytest.raises(RuntimeError, match="view"):
        part @ base


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_the_gradient_of_softmax_is_a_function(dtype):
    found = []
    for library in (torch, tlc):
        kind = getattr(library, dtype)
        y = library.arange(128).double().reshape(2, 64).sin().to(kind).softmax(1).requires_grad_()
        g = library.arange(128).double().reshape(2, 64).cos().to(kind)
        result = library._softmax_backward_data(g, y, -1, kind)
        result.sum().backward()
        values = [result.detach().double().numpy(), y.grad.double().numpy()]
        with pytest.raises(RuntimeError) as caught:
            library._softmax_backward_data(g[:1], y, 1, kind)
        found.append((*values, str(caught.value)))
    (expected, gradient, message), (result, own_gradient, own_message) = found
    assert message == own_message
    rounding = 1e-14 if dtype == "float64" else 0
    np.testing.assert_allclose(result, expected, rtol=0, atol=rounding)
    if rounding:
        np.testing.assert_allclose(own_gradient, gradient, rtol=0, atol=rounding)
