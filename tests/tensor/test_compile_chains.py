"""Programs of captured steps on the CPU: chains as one call, and what lies where."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy import tiles
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tensorflow_lite_clone.dispatch import table
from tests.cuda import programs
from tests.cuda.programs import host

F = tlc.nn.functional


def tensor(seed: int, *shape: int) -> tlc.Tensor:
    return programs.tensor("cpu", seed, *shape)


@pytest.fixture(autouse=True, params=[1, 2], ids=["one thread", "two threads"])
def small_tiles(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Tiles of a few hundred elements, so that small arrays have several, in two threads."""
    monkeypatch.setattr(tuning, "chain_elements", 64)
    monkeypatch.setattr(tuning, "chain_work", 64)
    for name in ("tile_shared", "tile_elements", "tile_minimum"):
        monkeypatch.setattr(tuning, name, 100)
    monkeypatch.setattr(tuning, "tile_per_thread", 300)
    monkeypatch.setattr(flags, "threads", request.param)


def program(compiled: Any) -> str:
    (site,) = compiled._entries.values()
    (form,) = site.variants
    text: str = form._graph.program.text
    return text


def chains_of(compiled: Any) -> list[tiles.Chain]:
    (site,) = compiled._entries.values()
    (form,) = site.variants
    return form._graph.program.chains


def gelu(x: tlc.Tensor) -> tlc.Tensor:
    return 0.5 * x * (1 + (0.79788456 * (x + 0.044715 * x**3)).tanh())


def layer_norm(x: tlc.Tensor, w: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    d = x - x.mean(-1, keepdim=True)
    return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt() * w + b


def arithmetic(a: Any, b: Any, c: Any, d: Any) -> tlc.Tensor:
    return (a * b + c) * d - a / (b * b + 0.5)


def swiglu(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    return a * a.sigmoid() * F.silu(b) + F.gelu(a - b)


def chosen(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    return tlc.where(a > b, a.exp(), b.sqrt()).maximum(a) + tlc.where(b > 0, 0.0, b.abs())


def in_place(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    y = a * b
    y += a
    y.mul_(2).sub_(b)
    return y.relu() + y


def kinds(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    return (a.double() * 3 + b).float() * (a > 0).float() + (10 * b).int().clamp(-3, 3) * a


def along_axes(x: tlc.Tensor, scale: tlc.Tensor, shift: tlc.Tensor) -> tlc.Tensor:
    """As batch norm has them, and a column."""
    return (x * scale[:, None, None] + shift[None, :, None, None]).tanh() * x[..., :1]


def masked(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    """What a loop has in it, when there are compiled ones: choices, and bits of them."""
    y = tlc.where(a > b, a * b - a / b, -b) + (a * a).sqrt()
    return tlc.where(y == y, y.square(), a) * 0.3


def both_true(a: tlc.Tensor, b: tlc.Tensor) -> tlc.Tensor:
    """A sum of booleans is one."""
    return tlc.where(((a * b > 0) + (a > 0)) == (b > 0), a, b) * 2


CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "gelu": (gelu, [(40, 23)]),
    "layer norm": (layer_norm, [(40, 23), (23,), (23,)]),
    "arithmetic": (arithmetic, [(931,)] * 4),
    "gated": (swiglu, [(5, 7, 31)] * 2),
    "chosen": (chosen, [(911,)] * 2),
    "masked": (masked, [(911,)] * 2),
    "both true": (both_true, [(911,)] * 2),
    "in place": (in_place, [(30, 31)] * 2),
    "kinds": (kinds, [(30, 31)] * 2),
    "along axes": (along_axes, [(6, 4, 8, 9), (4,), (4,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_the_eager_step(name: str) -> None:
    function, shapes = CASES[name]
    inputs = [tensor(i, *shape).requires_grad_() for i, shape in enumerate(shapes)]
    with tlc.no_grad():  # rare values among them
        inputs[0].view(-1)[:4] = tlc.tensor([np.nan, np.inf, -np.inf, -0.0])

    def step() -> tlc.Tensor:
        for x in inputs:
            x.grad = None
        y = function(*inputs)
        (y * y).sum().backward()
        return y.detach()

    def run(call: Callable[[], tlc.Tensor]) -> list[np.ndarray]:
        found = [host(call()) for _ in range(4)]
        return [*found, *[host(x.grad) for x in inputs]]

    compiled = tlc.compile(step, fullgraph=True)
    for one, other in zip(run(compiled), run(step), strict=True):
        assert one.tobytes() == other.tobytes()
    assert "Chain_1(" in program(compiled)


@pytest.mark.parametrize("name", ["layer norm", "masked"])
def test_compiled_loops_round_as_numpy_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the signs of NaN, of which NumPy's words and a loop keep one or another's."""
    if "numba" not in backends.load("cpu").accelerators:
        pytest.skip("needs Numba")
    monkeypatch.setattr(tuning, "chain_compiled", 64)
    function, shapes = CASES[name]
    inputs = [tensor(i, *shape) for i, shape in enumerate(shapes)]
    inputs[0].view(-1)[:4] = tlc.tensor([np.nan, np.inf, -np.inf, -0.0])
    call = tlc.compile(lambda *inputs: function(*inputs), fullgraph=True)
    for _ in range(3):
        found = host(call(*inputs))
    expected = host(function(*inputs))
    assert [chain.text for chain in chains_of(call) if "kernel(" in chain.text]
    where = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), where)
    assert found[~where].tobytes() == expected[~where].tobytes()


def test_arrays_that_lie_otherwise_than_at_the_capture() -> None:
    """The same function, of a program whose values come in another layout."""
    compiled = tlc.compile(lambda x, y: (x * y + 1).tanh() * y, fullgraph=True)
    x, y = tensor(0, 20, 30), tensor(1, 20, 30)
    for _ in range(3):
        compiled(x, y)
    (chain,) = chains_of(compiled)
    expected = host((x * y + 1).tanh() * y)
    one, other = host(x).T.copy().T, host(y)[:, ::-1].copy()[:, ::-1]
    (found,) = chain(one, other, np.array(1, np.float32), into=[None])
    np.testing.assert_array_equal(found, expected)


def test_debug_writes_what_is_done_to_a_tile(tmp_path: Path) -> None:
    call = tlc.compile(lambda x: (x * 2 + x).tanh(), debug=tmp_path)
    for i in range(2):
        call(tensor(i, 20, 20))
    program = (tmp_path / "1_lambda" / "program_1.py").read_text()
    assert "Chain_1(" in program and "tanh(t_1, out=y_1)" in program
    compile(program, "program", "exec")


def test_compile_replays_views_of_parameters_without_a_call() -> None:
    """A view of a parameter is no call of a replay, and what is held is written where it lies."""
    weight = tlc.nn.Parameter(tensor(0, 3, 3))
    module = tlc.nn.Module()

    def step(x: tlc.Tensor) -> None:
        module.last = x.exp() + weight.T

    call = tlc.compile(step, fullgraph=True)
    with tlc.no_grad():
        for i in range(3):
            call(tensor(i, 3, 3))
    expected = np.exp(host(tensor(2, 3, 3))) + host(weight).T
    np.testing.assert_array_equal(host(module.last), expected)
    lines = [line.strip() for line in program(call).splitlines()]
    assert lines[1:] == ["v_1 = exp_1(array_1)", "add_1(v_1, array_2, out=array_3)", "del v_1"]


def test_results_that_share_memory_share_it_after_a_replay() -> None:
    @tlc.compile(fullgraph=True)
    def several(x: tlc.Tensor) -> tuple[tlc.Tensor, ...]:
        y = 2 * x
        return y, y[1:], y.T, y.detach(), x.T, y

    for i in range(4):
        x = tensor(i, 3, 2)
        before = host(x)
        y, rows, turned, detached, argument, again = several(x)
        for view in (rows, turned, detached, again):
            assert np.shares_memory(y.numpy(), view.numpy())
        y.zero_()
        assert not host(rows).any() and not host(turned).any() and not host(again).any()
        if i > 1:  # a replay has copied the argument, and what it gives of that is a copy, too
            argument.zero_()
            np.testing.assert_array_equal(host(x), before)


def test_a_result_is_made_where_the_caller_has_it() -> None:
    """Without a copy, and nobody else keeps it."""
    call = tlc.compile(lambda x: x.exp() * x, fullgraph=True)
    results = [call(tensor(i, 20, 20)) for i in range(4)]
    assert "copy" not in program(call)
    made = [weakref.ref(y._storage.array) for y in results]
    assert len({id(array()) for array in made}) == 4
    del results
    assert all([array() is None for array in made])


def test_a_result_that_something_else_holds_is_copied() -> None:
    class Keeping(tlc.nn.Module):
        def forward(self, x: tlc.Tensor) -> tlc.Tensor:
            self.last = 2 * x
            return self.last

    module = Keeping()
    call = tlc.compile(module, fullgraph=True)
    for i in range(4):
        found = call(tensor(i, 4))
        found += 1
    np.testing.assert_array_equal(host(module.last), 2 * host(tensor(3, 4)))


def test_gradients_that_lie_beside_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arrays that a call makes are parts of one: neither is a view of the other."""

    def backward(F: Any, g: Any, x: Any, w: Any, mean: Any, variance: Any, **options: Any) -> Any:
        gx, *others = generic(F, g, x, w, mean, variance, **options)
        return gx, *np.stack(others)

    def run(compiled: bool) -> list[np.ndarray]:
        module = tlc.nn.BatchNorm1d(3)
        call = tlc.compile(module, fullgraph=True) if compiled else module
        for i in range(4):
            module.zero_grad()
            (call(tensor(i, 5, 3)) * tensor(i + 9, 5, 3)).sum().backward()
        return [host(p.grad) for p in module.parameters()]

    generic: Any = table.TABLE["batch_norm_backward"]
    expected = run(False)
    monkeypatch.setitem(table.overrides, ("batch_norm_backward", "numpy"), backward)
    try:
        table._forget()
        for one, other in zip(run(True), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    finally:
        monkeypatch.undo()
        table._forget()
