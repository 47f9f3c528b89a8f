"""Formulas as graphs of symbols, on targets of all devices; nothing here needs a GPU."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np
import pytest

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy.formulas import CpuTarget
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.fuse.formula import Unchanged, trace
from tensorflow_lite_clone.fuse.namespace import Namespace
from tensorflow_lite_clone.fuse.symbol import NotPointwise, Symbol, in_order, operands_of, rebuilt
from tensorflow_lite_clone.fuse.target import Target

CPU = CpuTarget(backends.load("cpu").F)
TARGETS: dict[str, Target] = {"cpu": CPU}
if find_spec("cupy"):
    from tensorflow_lite_clone.backends.cupy.fusion.target import CUDA

    TARGETS["cuda"] = CUDA

KINDS = [np.dtype(k) for k in ("f4", "f8", "f2", "bool", "i1", "u1", "i2", "i4", "i8", "u4")]
F32 = np.dtype(np.float32)


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    return TARGETS[request.param]


def traced(target: Target, body: Callable[..., Any], *kinds: Any, **parameters: Any) -> Any:
    shapes = ((4,),) * len(kinds)
    return trace(body, Namespace(target), kinds, shapes, parameters, widened=target.widens)


def calculated(symbol: Symbol, arrays: list[Any]) -> Any:
    """What the CPU's functions make of arrays, symbol by symbol."""
    values: dict[int, Any] = {}
    for each in in_order((symbol,)):
        if each.name == "operand":
            values[id(each)] = arrays[each.value]
        elif each.name == "number":
            values[id(each)] = each.value
        else:
            operands = [values[id(operand)] for operand in each.operands]
            values[id(each)] = CPU.function(each)(*operands)
            assert values[id(each)].dtype == each.dtype, each.name
    return values[id(symbol)]


FORMULAS: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda F, x, y: (x + y) * 0.5 - x / (y * y + 1),
    "choice": lambda F, x, y: F.where(x > y, F.exp(x), F.sqrt(F.abs(y))),
    "square": lambda F, x, y: x**2 + y,
    "functions": lambda F, x, y: F.tanh(x) * F.log1p(F.abs(y)) + F.pi,
    "casts": lambda F, x, y: F.astype(x, F.float64) * y,
    "one bound": lambda F, x, y: F.clip(x, 0.1) + F.clip(y, None, 0.2),
    "several": lambda F, x, y: (x + y, x - y),
    "in place": lambda F, x, y: _added(x * y, y),
    "an op": lambda F, x, y: F.rsqrt(F.abs(x) + 1) * y,
}


def _added(z: Any, y: Any) -> Any:
    z += y
    return z


@pytest.mark.parametrize("name", FORMULAS)
def test_targets_accept_the_same_formulas(name: str, target: Target) -> None:
    made = traced(target, FORMULAS[name], F32, F32)
    assert made.names == ("x", "y") and len(made.operands) == 2
    assert made.literal and not made.by_shape
    x, y = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    expected = FORMULAS[name](CPU.arrays, x.copy(), y)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for symbol, array in zip(made.results, expected, strict=True):
        assert symbol.dtype == array.dtype
        if target is CPU:
            np.testing.assert_array_equal(calculated(symbol, [x, y]), array)


@pytest.mark.parametrize(
    "body",
    [
        lambda F, x: F.sum(x, axis=0),
        lambda F, x: x[0],
        lambda F, x: F.reshape(x, (2, 2)),
        lambda F, x: x if x > 0 else -x,
        lambda F, x: [y for y in x],
        lambda F, x: float(x),
        lambda F, x: np.asarray(x),
        lambda F, x: F.backend.generator,
        lambda F, x: F.matmul(x, x),
        lambda F, x: x @ x,
        lambda F, x: np.add.reduce(x),
        lambda F, x: x + 1j,
        lambda F, x: F.where(True, x, x),
        lambda F, x: _added(x, 1),  # an operand
    ],
)
def test_targets_refuse_what_is_not_pointwise(body: Any, target: Target) -> None:
    with pytest.raises(NotPointwise):
        traced(target, body, F32)


def test_an_operand_is_no_result(target: Target) -> None:
    with pytest.raises(Unchanged) as found:
        traced(target, lambda F, x: (x, F.conj(x)), F32)
    assert found.value.whole
    with pytest.raises(Unchanged) as found:
        traced(target, lambda F, x: (x, x + 1), F32)
    assert not found.value.whole


def test_a_shape_binds_a_formula(target: Target) -> None:
    assert traced(target, lambda F, x: x * x.shape[0], F32).by_shape
    assert traced(target, lambda F, x: (x + 1) * (x + 1).ndim, F32).by_shape


BINARY = [name for name, record in PRIMITIVES.items() if record.arity == 2 and CPU.kinds(name)]


@pytest.mark.parametrize("name", BINARY)
def test_dtypes_of_the_cpu_are_those_of_numpy(name: str) -> None:
    """Those of intermediate results as well: memory for them is taken before they are computed."""
    values: list[Any] = [*[np.ones(3, kind) for kind in KINDS], 2, 2.5, True, np.float64(2.5)]
    accepted = 0
    for x, y in product(values, values):
        if not any([isinstance(value, np.ndarray) for value in (x, y)]):
            continue
        arrays = [value for value in (x, y) if isinstance(value, np.ndarray)]
        operands = iter(
            [Symbol(CPU, "operand", a.dtype, (), i, a.shape) for i, a in enumerate(arrays)]
        )
        given = [next(operands) if isinstance(value, np.ndarray) else value for value in (x, y)]
        try:
            symbol = CPU.apply(name, *given)
        except NotPointwise:
            continue
        accepted += 1
        calculated(symbol, arrays)
    assert accepted > 20


UNARY = [name for name, record in PRIMITIVES.items() if record.arity == 1 and CPU.kinds(name)]


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_of_functions_are_those_of_numpy(kind: Any) -> None:
    operand = Symbol(CPU, "operand", kind, (), 0, (3,))
    found = {}
    for name in UNARY:
        try:
            symbol = CPU.apply(name, operand)
        except NotPointwise:
            continue
        if kind.kind != "b" or name not in ("positive",):  # which NumPy refuses as well
            found[name] = calculated(symbol, [np.ones(3, kind)])
    assert "logical_not" in found and len(found) > (20 if kind.kind == "f" else 1)


def test_a_form_of_the_cpu_is_one_symbol() -> None:
    made = traced(CPU, lambda F, x: F.silu(x) * 2, F32).results[0]
    silu = made.operands[0]
    assert silu.name == "silu" and [each.name for each in silu.operands] == ["operand"]
    x = np.linspace(-3, 3, 7, dtype=np.float32)
    np.testing.assert_array_equal(calculated(made, [x]), CPU.arrays.silu(x) * 2)


@pytest.mark.skipif("cuda" not in TARGETS, reason="needs CuPy")
def test_a_kernel_of_cuda_is_no_result_of_a_formula() -> None:
    cuda = TARGETS["cuda"]
    with pytest.raises(NotPointwise):
        traced(cuda, lambda F, x: F.softmax(x, axis=0), F32)
    assert traced(cuda, lambda F, x: F.silu(x) * 2, F32).results[0].name == "multiply"


def test_expressions_are_rebuilt_over_other_operands(target: Target) -> None:
    made = traced(target, lambda F, x, y: (x + y) * (x - 1), F32, F32)
    (result,) = made.results
    x, y = made.operands
    other = Symbol(target, "operand", F32, (), 7, (4,))
    again = rebuilt(result, {id(x): other, id(y): other})
    assert operands_of((again,)) == (other,)
    assert [s.name for s in in_order((again,))] == [
        s.name for s in in_order((rebuilt(result, {id(x): other, id(y): y}),)) if s is not y
    ]
    assert operands_of((result,)) == (x, y)


def test_graphs_may_be_deep(target: Target) -> None:
    def body(F: Any, x: Any) -> Any:
        for _ in range(5000):
            x = x + 1
        return x

    assert len(in_order(traced(target, body, F32).results)) == 10001


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "lerp", "softplus"])
def test_ops_of_the_table_are_formulas(name: str, target: Target) -> None:
    entry: Any = TABLE[name]
    parameters = {"softplus": {"beta": 1.0, "threshold": 20.0}}
    try:
        body = entry.forward
        made = traced(target, body, *[F32] * len(entry.inputs), **parameters.get(name, {}))
    except NotPointwise:
        assert target is CPU and name == "gelu"  # NumPy has no erf of its own
        return
    assert made.results[0].dtype == F32
