"""Kernels generated from pointwise formulas beside the formulas themselves."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.kernels import gpu
from tests.kernels.gpu import ALL, Laid, needs_gpu, on_device, run_formula

pytestmark = needs_gpu

#: op -> parameters, of formulas whose operands are any floating numbers
ANY: dict[str, dict] = {
    "add": {}, "sub": {}, "mul": {}, "div": {}, "neg": {}, "abs": {}, "square": {}, "sign": {},
    "sgn": {}, "exp": {}, "expm1": {}, "sin": {}, "tanh": {}, "atan": {}, "asinh": {}, "erf": {},
    "floor": {}, "ceil": {}, "trunc": {}, "round": {}, "frac": {}, "remainder": {}, "fmod": {},
    "floor_divide": {}, "div_trunc": {}, "maximum": {}, "minimum": {}, "fmax": {}, "fmin": {},
    "eq": {}, "lt": {}, "isnan": {}, "isfinite": {}, "signbit": {}, "logical_and": {},
    "logical_not": {}, "atan2": {}, "hypot": {}, "logaddexp": {}, "copysign": {}, "lerp": {},
    "sinc": {}, "clamp": {"min": -0.5, "max": None}, "clamp_between": {}, "gelu": {}, "silu": {},
    "mish": {}, "softplus": {"beta": 1.5, "threshold": 20.0}, "prelu": {}, "heaviside": {},
    "pow_scalar": {"exponent": 3}, "addcmul": {"value": 0.5}, "addcdiv": {"value": 2},
    "lerp_scalar": {"weight": 0.25}, "nan_to_num": {"nan": 0.0, "posinf": 9.0, "neginf": -9.0},
}  # fmt: skip
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal pow lgamma xlogy entr".split()
LAYOUTS = ["contiguous", "channels_last", "transposed", "sliced", "offset", "expanded"]


def entry(name: str) -> Any:
    from tensorflow_lite_clone.dispatch.op import TABLE

    return TABLE[name]


def formula(name: str, body: Any) -> Any:
    """The formula as a kernel, and nothing else."""
    from tensorflow_lite_clone.backends.cupy.fusion import formula as formulas

    def refuse(*arrays: Any, **parameters: Any) -> Any:
        raise AssertionError(f"{name} is not taken for a pointwise formula")

    return formulas.formula(name, body, refuse)


def values(count: int, *shape: int, positive: bool = False) -> list[np.ndarray]:
    random = np.random.default_rng(count + sum(shape))
    made = [random.normal(0, 2, shape) for _ in range(count)]
    return [np.abs(x) + 0.1 if positive else x for x in made]


check = partial(gpu.check, run=run_formula)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", [*ANY, *POSITIVE])
def test_formulas(name: str, dtype: str) -> None:
    given = values(len(entry(name).inputs), 4099, positive=name in POSITIVE)
    if name in ("eq", "maximum", "heaviside"):
        given[0][::3] = 0.0
        given[1][::3] = 0.0
    check(name, given, ANY.get(name, {}), (dtype,))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["maximum", "fmin", "clamp_between", "sign", "sgn", "logaddexp"])
def test_nan_and_infinities(name: str, dtype: str) -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5])
    count = len(entry(name).inputs)
    check(name, [x.ravel() for x in np.meshgrid(*[special] * count)], {}, (dtype,))


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize(
    "name", ["add", "mul", "maximum", "lt", "bitwise_xor", "logical_or", "floor_divide", "sign"]
)
def test_whole_numbers(name: str, kind: str) -> None:
    if kind == "bool" and name in ("floor_divide", "sign"):
        pytest.skip("not of booleans")
    random = np.random.default_rng(3)
    count = len(entry(name).inputs)
    given = [random.integers(1, 100, 999).astype(kind) for _ in range(count)]
    if kind.startswith("int"):
        given = [np.where(np.arange(999) % 3, x, -x).astype(kind) for x in given]
    arrays = [on_device(x, None) for x in given]
    body = entry(name).forward
    mine = formula(name, body)(*arrays)
    from tensorflow_lite_clone import backends

    true = body(backends.load("cpu").F, *given)
    assert mine.dtype == true.dtype
    np.testing.assert_array_equal(mine.get(), true)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("other", LAYOUTS)
def test_layouts(layout: str, other: str, dtype: str) -> None:
    x, y = values(2, 4, 6, 8, 16)
    check("sub", [Laid(x, layout), Laid(y, other)], {}, (dtype,))
    if layout == other and layout in ("channels_last", "transposed"):
        given = [on_device(Laid(value, layout), dtype) for value in (x, y)]
        assert run_formula("sub", given, {}).strides == given[0].strides


@pytest.mark.parametrize("shapes", [
    ((8, 6, 5, 12), (6, 1, 1)), ((5, 1, 7), (1, 3, 7)), ((4, 1), (1, 4)), ((2, 3, 4), ()),
    ((1, 1), (1,)), ((0, 3), (1, 3)), ((3, 1, 2, 1, 2, 1, 2), (1, 2, 1, 2, 1, 2, 1)),
])  # fmt: skip
def test_broadcasting(shapes: tuple) -> None:
    left, right = shapes
    check("sub", [values(1, *left)[0], values(1, *right)[0]], {}, ("float32",))
    check("sub", [values(1, *right)[0], values(1, *left)[0]], {}, ("float32",))


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, (1 << 18) + 4097])
@pytest.mark.parametrize("name", ["neg", "add", "lerp", "lt"])
def test_large(name: str, size: int) -> None:
    check(name, values(len(entry(name).inputs), size), {}, ("float32",))
    check(name, values(len(entry(name).inputs), size), {}, ("bfloat16",))


@pytest.mark.parametrize("target", ["float16", "bfloat16", "float32", "float64", "int64", "bool_"])
@pytest.mark.parametrize("dtype", ALL)
def test_casts(dtype: str, target: str) -> None:
    from tensorflow_lite_clone.backends.cupy.native import NATIVE
    from tensorflow_lite_clone.core import dtypes

    if dtype == target:
        pytest.skip("nothing to cast")
    x = on_device(np.linspace(-9, 9, 101), dtype)
    native = NATIVE[getattr(dtypes, target)]
    made = run_formula("cast", [x], {"dtype": getattr(dtypes, target)})
    assert made.dtype == native
    np.testing.assert_array_equal(gpu._host(made), gpu._host(gpu._host(x).astype(native)))


def test_formulas_that_ask_for_shapes() -> None:
    given = [np.array(0.5), *values(2, 6, 7)]
    check("mse_loss_backward", given, {"reduction": "mean"})
    check("huber_loss_backward", given, {"reduction": "mean", "delta": 0.5})


def test_numbers_are_arguments() -> None:
    scaled = formula("mul", lambda F, x, y: x * y)
    x = on_device(np.arange(5.0), "float32")
    for factor in (2.0, -3.0, 0.5):
        assert scaled(x, np.float32(factor)).tolist() == [factor * i for i in range(5)]
    shifted = formula("add", lambda F, x, *, by: x + by)
    for by in (1, 2.5, -0.0):
        assert shifted(x, by=by).tolist() == [by + i for i in range(5)]


def test_in_place() -> None:
    from tensorflow_lite_clone.backends.cupy.fusion.formula import in_place

    add = in_place(formula("add", lambda F, x, y: x + y))
    x, y = [
        on_device(value, "float32") for value in (np.arange(12.0).reshape(3, 4), np.ones((3, 1)))
    ]
    assert add(x, y)
    assert x.tolist() == (np.arange(12.0).reshape(3, 4) + 1).tolist()
    assert add(x[:, 1:3], y)
    assert x[0].tolist() == [1.0, 3.0, 4.0, 4.0]
    assert add(x, x)
    assert not add(x[:, 1:], x[:, :3])  # it would read what it wrote
    assert not add(y, x)  # does not fit
