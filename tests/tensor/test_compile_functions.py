"""torch.compile of functions: what is captured and what is not, on the tape device."""

from __future__ import annotations

import copy
import logging
import pickle
import weakref
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tests.tape_backend  # noqa: F401  the device
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.compiler.function import Compiled
from tensorflow_lite_clone.compiler.signature import UnsuitableError, signature
from tensorflow_lite_clone.core.errors import CaptureError
from tests.cuda import programs
from tests.cuda.programs import adam, assert_same, plain, state_of
from tests.tape_backend.backend import TapeBackend

nn, F = tlc.nn, tlc.nn.functional
TAPE: TapeBackend = backends.load("tape")  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def fresh_tape() -> None:
    TAPE.graphs.captured.clear()
    TAPE.generator.manual_seed(0)


def captured() -> int:
    """How many graphs this test has captured."""
    return len(TAPE.graphs.captured)


def tensor(seed: int, *shape: int) -> tlc.Tensor:
    return programs.tensor("tape", seed, *shape)


def labels(seed: int, count: int) -> tlc.Tensor:
    return programs.labels("tape", seed, count)


def network() -> nn.Module:
    return programs.network("tape")


def trained(make: Any, steps: int, compiled: bool, batch: Any = lambda i: 8) -> tuple:
    return programs.trained("tape", make, steps, compiled, batch)


# ---- what is not captured at all


def test_compile_without_captures_runs_eagerly(caplog: pytest.LogCaptureFixture) -> None:
    calls: deque[bool] = deque()  # no list: those are guarded

    @tlc.compile
    def halves() -> tlc.Tensor:
        calls.append(True)
        return tlc.full((2,), 0.5)

    with caplog.at_level(logging.DEBUG, "tensorflow_lite_clone.compile"):
        for _ in range(3):
            assert halves().tolist() == [0.5, 0.5]
    assert len(calls) == 3
    assert halves.__name__ == "halves"
    assert [record.levelname for record in caplog.records] == ["DEBUG"]


def test_debug_says_what_runs_eagerly(tmp_path: Path) -> None:
    folder = tmp_path / "one" / "two"
    halves = tlc.compile(lambda: tlc.full((2,), 0.5), debug=folder)
    assert list(folder.iterdir()) == []
    halves()
    (said,) = (folder / "eager.txt").read_text().splitlines()
    assert said.endswith("<lambda>' runs eagerly: it works on no device that captures")
    tlc.compile(nn.Linear(2, 3), disable=True, debug=str(folder))
    _, said = (folder / "eager.txt").read_text().splitlines()
    assert said.startswith("'Linear' runs eagerly: with these arguments")


def test_a_module_is_shown_through() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    compiled = tlc.compile(model)
    assert isinstance(compiled, nn.Module)
    assert compiled._orig_mod is model
    assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert [name for name, _ in compiled.named_parameters()][0] == "_orig_mod.0.weight"
    assert compiled[0] is model[0] and len(compiled) == 2
    x = tlc.ones(1, 2)
    assert compiled(x).tolist() == model(x).tolist()
    compiled.eval()
    assert not model.training and not compiled.training
    compiled.note = 5
    assert model.note == 5 and compiled.note == 5
    del compiled.note
    assert not hasattr(model, "note")
    compiled.load_state_dict(copy.deepcopy(compiled.state_dict()))
    with pytest.raises(AttributeError, match="nothing"):
        _ = compiled.nothing


def test_a_compiled_method_is_bound() -> None:
    class Scale:
        factor = 3

        @tlc.compile(dynamic=False)
        def scale(self, x: tlc.Tensor) -> tlc.Tensor:
            return x * self.factor

    assert Scale().scale(tlc.ones(1)).item() == 3


def test_arguments_are_checked() -> None:
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        tlc.compile(abs, mode="fast")
    with pytest.raises(RuntimeError, match="Either mode or options"):
        tlc.compile(abs, mode="default", options={})
    with pytest.raises(RuntimeError, match="Invalid backend"):
        tlc.compile(abs, backend="none")
    with pytest.raises(TypeError, match="callable"):
        tlc.compile(3)
    assert tlc.compile(abs, disable=True) is abs
    assert tlc.compiler.list_backends() == ["cudagraphs", "inductor"]
    assert tlc.compiler.compile(abs)._function is abs


def test_a_compiled_function_is_copied_and_pickled_as_what_it_was() -> None:
    compiled = tlc.compile(network)
    assert copy.deepcopy(compiled) is network
    assert pickle.loads(pickle.dumps(compiled)) is network


# ---- what cannot be captured


def test_reading_back_falls_back_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    def reading(model: nn.Module, optimizer: Any) -> Any:
        inner = plain(model, optimizer)

        def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
            loss = inner(x, y)
            return loss if loss.item() > -1 else -loss

        return step

    losses, state, _, _ = trained(reading, 6, False)
    model = network()
    step = tlc.compile(reading(model, adam(model)))
    TAPE.generator.manual_seed(1)
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        found = [step(tensor(i, 8, 6), labels(i, 8)).item() for i in range(6)]
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    assert_same(state_of(model), state)
    (record,) = caplog.records
    assert "'item'" in record.message and "reads a value back" in record.message
    assert captured() == 0


def test_fullgraph_raises() -> None:
    @tlc.compile(fullgraph=True)
    def reads(x: tlc.Tensor) -> tlc.Tensor:
        return x * x.sum().item()

    x = tlc.ones(2).to("tape")
    reads(x)
    with pytest.raises(RuntimeError, match="cannot be captured") as caught:
        reads(x)
    assert isinstance(caught.value.__cause__, CaptureError)


def test_an_exception_of_the_function_itself_comes_through() -> None:
    @tlc.compile
    def broken(x: tlc.Tensor, fail: list) -> tlc.Tensor:
        if fail:
            raise KeyError("mine")
        return x + 1

    with pytest.raises(KeyError, match="mine"):
        broken(tlc.ones(2).to("tape"), [1])
    for _ in range(3):
        assert broken(tlc.ones(2).to("tape"), []).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("what", ["module", "closure", "step"])
def test_changes_of_host_state_are_not_captured(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: tlc.Tensor) -> tlc.Tensor:
            self.calls += 1
            return x * self.calls

    count = 0
    model = Counting()
    weight = nn.Parameter(tlc.ones(1).to("tape"))
    optimizer = tlc.optim.SGD([weight], lr=1.0)

    def function(x: tlc.Tensor) -> tlc.Tensor:
        nonlocal count
        if what == "module":
            return model(x)
        if what == "closure":
            count += 1
            return x * count
        optimizer.param_groups[0]["lr"] += 1.0
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return weight.detach()

    expected = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0]
    if what == "step":
        expected = [1.0 - sum(range(2, i + 2)) for i in range(1, 13)]
    compiled = tlc.compile(function)
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        found = [compiled(tlc.ones(1).to("tape")).item() for _ in expected]
    assert found == expected
    assert caplog.records


def test_the_number_of_forms_is_limited(caplog: pytest.LogCaptureFixture) -> None:
    @tlc.compile(recompile_limit=3)
    def double(x: tlc.Tensor, scale: float) -> tlc.Tensor:
        return x * scale

    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        for scale in (1.0, 2.0, 3.0, 4.0, 5.0):
            for _ in range(3):
                assert double(tlc.ones(1).to("tape"), scale).item() == scale
    assert captured() == 3
    assert len(caplog.records) == 1 and "recompile_limit" in caplog.records[0].message
    tlc.compiler.reset()
    for _ in range(2):
        double(tlc.ones(1).to("tape"), 4.0)
    assert captured() == 4


def test_disable_and_is_compiling() -> None:
    seen: deque[bool] = deque()  # no list: those are guarded

    @tlc.compiler.disable(reason="it logs")
    def outside(x: tlc.Tensor) -> tlc.Tensor:
        return x

    @tlc.compile
    def function(x: tlc.Tensor, with_it: bool) -> tlc.Tensor:
        seen.append(tlc.compiler.is_compiling())
        return outside(x) + 1 if with_it else x + 1

    for with_it in (True, False):
        for _ in range(3):
            assert function(tlc.ones(1).to("tape"), with_it).item() == 2.0
    assert captured() == 1
    assert list(seen) == [True, False, False, True, True]
    assert not tlc.compiler.is_compiling()
    tlc.compiler.cudagraph_mark_step_begin()


def test_a_compiled_function_inside_another_is_part_of_it() -> None:
    inner = tlc.compile(lambda x: x * 2)
    outer = tlc.compile(lambda x: inner(x) + 1)
    for i in range(4):
        assert outer(i * tlc.ones(1).to("tape")).item() == 2 * i + 1
    assert captured() == 1


def test_arguments_on_other_devices(caplog: pytest.LogCaptureFixture) -> None:
    @tlc.compile
    def move(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
        return x + y.to("tape")

    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        for i in range(3):
            assert move(tlc.ones(1).to("tape"), i * tlc.ones(1)).item() == i + 1
    assert "another device" in caplog.records[0].message
    assert captured() == 0


def test_no_gradient_mode_is_part_of_the_key() -> None:
    layer = nn.Linear(2, 2).to("tape")
    compiled = tlc.compile(layer)
    x = tlc.ones(1, 2).to("tape")
    for _ in range(3):
        with tlc.no_grad():
            assert not compiled(x).requires_grad
        assert compiled(x).requires_grad
    assert captured() == 3


def test_hooks_of_dispatch_are_gone_afterwards() -> None:
    from tensorflow_lite_clone.core import dynamic_scalar
    from tensorflow_lite_clone.dispatch import hooks

    trained(plain, 3, True)
    assert not (
        hooks.around_op or hooks.on_node or hooks.on_memory_write or dynamic_scalar.recorder
    )


def test_nothing_is_kept_alive_by_cycles() -> None:
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        *_, step, model = trained(plain, 4, True)
        dead = weakref.ref(step), weakref.ref(model)
        del step, model, _
        assert dead[0]() is None and dead[1]() is None
    finally:
        gc.enable()


def test_gradients_of_earlier_calls_are_let_go() -> None:
    model = network()
    step = tlc.compile(plain(model, adam(model)), fullgraph=True)
    earlier: list[Any] = []
    while not (variants := [form for site in step._entries.values() for form in site.variants]):
        grads = [p.grad for p in model.parameters()]
        earlier += [weakref.ref(g) for g in grads if g is not None]
        del grads
        step(tensor(0, 8, 6), labels(0, 8))
    assert earlier and all([reference() is None for reference in earlier])
    assert all([p.grad is not None for p in model.parameters()]) and len(variants) == 1


def test_work_that_must_run_once_on_copies_of_the_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As products do, whose plans go by strides and alignment."""
    seen = set()

    def total(x: tlc.Tensor, log: tlc.Tensor) -> tlc.Tensor:
        strides = x._storage.array.strides
        if backends.load("tape").graphs.is_capturing() and strides not in seen:
            raise NotImplementedError("no plan")
        seen.add(strides)
        log.add_(1)
        return x.sum(1)

    compiled = tlc.compile(total, fullgraph=True)
    log = tlc.zeros(1).to("tape")
    for i in range(5):
        x = tensor(i, 3, 4)
        np.testing.assert_allclose(
            programs.host(compiled(x[:, ::2], log)), programs.host(x)[:, ::2].sum(1), rtol=1e-6
        )
        assert log.item() == i + 1
    assert captured() == 1


# ---- keys


def test_signatures() -> None:
    def key(*args: Any, **kwargs: Any) -> tuple:
        return signature(args, kwargs, [])

    x = tlc.ones(2, 3)
    assert key(x, 1, a="b") == key(tlc.zeros(2, 3), 1, a="b")
    different = [
        key(x), key(x.T), key(x[:1]), key(x.double()), key(tlc.ones(2, 3).requires_grad_()),
        key([x]), key((x,)), key({"x": x}), key(x=x), key(1), key(1.0), key(True), key(0.0),
        key(-0.0), key(None), key("a"), key(tlc.float32), key(tlc.device("cpu")), key(nn.ReLU()),
    ]  # fmt: skip
    assert len(set(different)) == len(different)
    found: list = []
    signature((x, [x.T, {"a": (x,)}]), {"b": x}, found)
    assert len(found) == 4
    with pytest.raises(UnsuitableError, match="ndarray"):
        key(np.ones(2))
    with pytest.raises(UnsuitableError, match="set"):
        key({1})


def test_calls_of_unknown_arguments_run(caplog: pytest.LogCaptureFixture) -> None:
    compiled = Compiled(lambda x, other: x + len(other))
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        assert compiled(tlc.ones(1).to("tape"), {1, 2}).item() == 3.0
    assert "argument of type set" in caplog.records[0].message


def test_transforms_of_a_compiled_function() -> None:
    """They see the function itself."""
    compiled = tlc.compile(lambda x: (x**3).sum(), fullgraph=True)
    x = tensor(0, 4)
    for _ in range(3):
        compiled(x)
    assert captured() == 1
    _, derivative = tlc.func.jvp(compiled, (x,), (tensor(1, 4),))
    found = [tlc.func.grad(compiled)(x), tlc.func.vmap(compiled)(x[None]), derivative]
    wanted = [3 * x**2, compiled(x)[None], (3 * x**2 * tensor(1, 4)).sum()]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one.cpu().numpy(), other.cpu().numpy(), rtol=1e-6)
