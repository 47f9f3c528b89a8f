"""torch.compile of training steps and modules, replayed on the tape device."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tests.tape_backend  # noqa: F401  the device
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.core.dynamic_scalar import dynamic_scalar
from tests.cuda import programs
from tests.cuda.programs import (
    adam,
    assert_same,
    host,
    in_place,
    plain,
    state_of,
    step_first,
    zero_last,
)
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


def launches() -> int:
    """How many launches there were in this test."""
    return sum([graph.launches for graph in TAPE.graphs.captured])


def tensor(seed: int, *shape: int) -> tlc.Tensor:
    return programs.tensor("tape", seed, *shape)


def labels(seed: int, count: int) -> tlc.Tensor:
    return programs.labels("tape", seed, count)


def network() -> nn.Module:
    return programs.network("tape")


def trained(make: Any, steps: int, compiled: bool, batch: Any = lambda i: 8) -> tuple:
    return programs.trained("tape", make, steps, compiled, batch)


# ---- steps


@pytest.mark.parametrize("make", [plain, in_place, zero_last])
def test_a_step_trains_as_without_capture(make: Any) -> None:
    losses, state, _, _ = trained(make, 30, False)
    found, compiled_state, _, _ = trained(make, 30, True)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    assert_same(compiled_state, state)
    assert launches() == 29
    assert captured() <= 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ASGD", {"t0": 3, "lambd": 0.01}),
        ("Adadelta", {}),
        ("Adafactor", {}),
        ("Adamax", {}),
        ("NAdam", {}),
        ("RAdam", {}),
        ("Rprop", {"lr": 1e-3}),
    ],
)
def test_steps_of_every_kind_of_optimizer(name: str, options: dict) -> None:
    """What changes from step to step lies on the device, and goes on in replays."""

    def run(compiled: bool) -> list[np.ndarray]:
        params = [nn.Parameter(tensor(i, 3, 2)) for i in range(2)]
        optimizer = getattr(tlc.optim, name)(params, **options)

        def step(x: tlc.Tensor) -> tlc.Tensor:
            optimizer.zero_grad()
            loss = (((x @ params[0]).exp() - x @ params[1]) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        call = tlc.compile(step, fullgraph=True) if compiled else step
        losses = [call(tensor(9 + i, 4, 3)) for i in range(12)]
        return [host(value) for value in (*losses, *params)]

    for found, expected in zip(run(True), run(False), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert captured() == 1
    assert launches() == 11


def test_a_step_that_uses_the_last_calls_gradients() -> None:
    _, state, _, _ = trained(step_first, 12, False)
    model = network()
    step = tlc.compile(step_first(model, adam(model)))
    TAPE.generator.manual_seed(1)
    for i in range(12):
        step(tensor(i, 8, 6), labels(i, 8))
    assert_same(state_of(model), state)


def test_batches_of_two_sizes() -> None:
    def size(i: int) -> int:
        return 5 if i % 4 == 3 else 8

    losses, state, _, _ = trained(plain, 24, False, size)
    found, compiled_state, _, _ = trained(plain, 24, True, size)
    np.testing.assert_allclose(found, losses, rtol=1e-4)
    assert_same(compiled_state, state)
    assert captured() == 2


def test_gradients_accumulate_across_calls() -> None:
    assert_same(programs.accumulated("tape", True), programs.accumulated("tape", False))
    assert captured() <= 4
    assert launches() > 20


def test_a_learning_rate_that_is_no_live_number_is_captured_anew() -> None:
    def run(compiled: bool) -> dict[str, np.ndarray]:
        model = network()
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        schedule = tlc.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
        step = plain(model, optimizer)
        step = tlc.compile(step) if compiled else step
        TAPE.generator.manual_seed(1)
        for i in range(20):
            step(tensor(i, 8, 6), labels(i, 8))
            schedule.step()
        return state_of(model)

    assert_same(run(True), run(False))


def test_a_live_number_that_is_consumed_is_only_refilled() -> None:
    settings = np.ones(1)  # no list: those are guarded

    def scaled(x: tlc.Tensor) -> tlc.Tensor:
        rate = dynamic_scalar(lambda: float(settings[0]))
        return x * (wrap(rate.device_value, TAPE) if hasattr(rate, "device_value") else rate)

    step = tlc.compile(scaled, fullgraph=True)
    for i in range(6):
        settings[0] = float(i)
        assert step(tlc.ones(1).to("tape")).item() == i
    assert captured() == 1


def test_settings_of_an_optimizer_are_guarded() -> None:
    def run(compiled: bool) -> dict[str, np.ndarray]:
        model = network()
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        step = plain(model, optimizer)
        step = tlc.compile(step) if compiled else step
        TAPE.generator.manual_seed(1)
        for i in range(12):
            if i == 5:
                optimizer.param_groups[0]["weight_decay"] = 0.1
            if i == 8:
                optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
            step(tensor(i, 8, 6), labels(i, 8))
        return state_of(model)

    assert_same(run(True), run(False))


def test_parameters_that_are_replaced_or_frozen_are_noticed() -> None:
    def run(compiled: bool) -> dict[str, np.ndarray]:
        model = network()
        step = plain(model, adam(model))
        step = tlc.compile(step) if compiled else step
        TAPE.generator.manual_seed(1)
        for i in range(16):
            if i == 5:
                model[4].weight.data = model[4].weight.data * 0.5
            if i == 9:
                model[0].requires_grad_(False)
            if i == 12:
                model.eval()
            step(tensor(i, 8, 6), labels(i, 8))
        return state_of(model)

    assert_same(run(True), run(False))


def test_results_are_copies_and_arguments_come_back() -> None:
    @tlc.compile(fullgraph=True)
    def several(x: tlc.Tensor, scale: float) -> dict[str, Any]:
        return {"twice": (2 * x, [x]), "scale": scale, "view": x.T}

    results = [several(tensor(i, 2, 3), 0.5) for i in range(5)]
    for i, result in enumerate(results):
        expected = host(tensor(i, 2, 3))
        np.testing.assert_array_equal(host(result["twice"][0]), 2 * expected)
        np.testing.assert_array_equal(host(result["twice"][1][0]), expected)
        np.testing.assert_array_equal(host(result["view"]), expected.T)
        assert result["scale"] == 0.5
    x = tensor(9, 2, 3)
    assert several(x, 0.5)["twice"][1][0] is x
    assert captured() == 1


def test_an_argument_that_is_written_to() -> None:
    @tlc.compile(fullgraph=True)
    def add_one(x: tlc.Tensor) -> tlc.Tensor:
        return x.add_(1)

    total = tlc.zeros(3).to("tape")
    before = total._version
    for _ in range(5):
        assert add_one(total) is total
    assert total.tolist() == [5.0] * 3
    assert total._version == before + 5
    assert captured() == 1
    other = tlc.zeros(3).to("tape")
    for _ in range(3):
        add_one(other)
    assert other.tolist() == [3.0] * 3 and total.tolist() == [5.0] * 3


def test_the_same_argument_twice_is_worked_on_in_place_until_another_comes() -> None:
    @tlc.compile(fullgraph=True)
    def total(x: tlc.Tensor) -> tlc.Tensor:
        return x.sum()

    x = tlc.ones(3).to("tape")
    assert [total(x).item() for _ in range(4)] == [3.0] * 4
    x.mul_(2)
    assert total(x).item() == 6.0
    assert [total(i * x).item() for i in range(4)] == [0.0, 6.0, 12.0, 18.0]
    assert captured() == 2
    assert len(next(iter(total._entries.values())).variants) == 1


def test_statistics_and_version_counters_move_on() -> None:
    model = network()
    step = tlc.compile(plain(model, adam(model)), fullgraph=True)
    for i in range(3):
        step(tensor(i, 8, 6), labels(i, 8))
    versions = model[0].weight._version, model[1].running_mean._version
    weight = model[0].weight
    saved = (weight * weight).sum()
    step(tensor(3, 8, 6), labels(3, 8))
    assert model[0].weight._version > versions[0]
    assert model[1].running_mean._version > versions[1]
    assert model[1].num_batches_tracked.item() == 4
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.backward()


def test_globals_and_closures_are_guarded() -> None:
    scale = 2.0

    @tlc.compile
    def times(x: tlc.Tensor) -> tlc.Tensor:
        return x * scale

    x = tlc.ones(1).to("tape")
    assert [times(x).item() for _ in range(3)] == [2.0] * 3
    scale = 5.0
    assert [times(x).item() for _ in range(3)] == [5.0] * 3
    scale = 2.0
    assert times(x).item() == 2.0
    assert captured() == 2


def test_gradients_in_shared_memory_survive_other_forms() -> None:
    one, two = nn.Linear(2, 2).to("tape"), nn.Linear(2, 2).to("tape")
    (one(tensor(0, 3, 2)) + two(tensor(0, 3, 2))).sum().backward()

    @tlc.compile(fullgraph=True)
    def step(x: tlc.Tensor, first: bool) -> tlc.Tensor:
        layer = one if first else two
        layer.zero_grad()
        layer(x).sum().backward()
        return x

    for first in (True, True, False, False):
        step(tensor(1, 3, 2), first)
    form = step._last
    assert any(two.weight.grad is g for _, g in form.gradients.left)
    step(tensor(2, 3, 2), True)
    assert not any(two.weight.grad is g for _, g in form.gradients.left)
    np.testing.assert_allclose(
        host(two.weight.grad), np.tile(host(tensor(1, 3, 2)).sum(0), (2, 1)), rtol=1e-6
    )


# ---- functions whose results are in a graph


def test_a_module_without_backward_inside() -> None:
    losses, state = programs.called("tape", False)
    found, compiled_state = programs.called("tape", True)
    np.testing.assert_allclose(found, losses, rtol=1e-4, atol=1e-5)
    assert_same(compiled_state, state)
    assert captured() == 3  # forward, backward, evaluation


def test_other_kinds_of_tensors_may_be_alive() -> None:
    lazy, sparse = nn.LazyLinear(2), tlc.ones(2).to_sparse()
    found, _ = programs.called("tape", True)
    assert captured() == 3 and np.isfinite(found).all()
    assert nn.parameter.is_lazy(lazy.weight) and sparse.is_sparse


def test_gradients_reach_arguments_in_outer_graphs() -> None:
    @tlc.compile(fullgraph=True)
    def product(x: tlc.Tensor, w: tlc.Tensor) -> tuple:
        return (x * w).sum(), x.detach() + 1

    w = tensor(0, 3).requires_grad_()
    for i in range(5):
        x = tensor(i, 3).requires_grad_()
        w.grad = None
        value, other = product(2 * x, w)
        assert value.requires_grad and not other.requires_grad
        (3 * value).backward()
        np.testing.assert_allclose(host(x.grad), 6 * host(w), rtol=1e-6)
        np.testing.assert_allclose(host(w.grad), 6 * host(x), rtol=1e-6)
    assert captured() == 2


def test_a_second_call_before_backward_runs_eagerly() -> None:
    layer = nn.Linear(3, 3).to("tape")
    compiled = tlc.compile(layer)
    for i in range(2):
        compiled(tensor(i, 2, 3)).sum().backward()
    layer.zero_grad()
    one, two = compiled(tensor(1, 2, 3).pow(2)), compiled(tensor(2, 2, 3))
    (one.exp().sum() + two.exp().sum()).backward()
    found = host(layer.weight.grad)
    layer.zero_grad()
    one, two = layer(tensor(1, 2, 3).pow(2)), layer(tensor(2, 2, 3))
    (one.exp().sum() + two.exp().sum()).backward()
    np.testing.assert_allclose(found, host(layer.weight.grad), rtol=1e-5)


def test_a_second_backward_is_refused() -> None:
    layer = nn.Linear(3, 3).to("tape")
    compiled = tlc.compile(layer)
    for i in range(2):
        loss = compiled(tensor(i, 2, 3)).sum()
        loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


def test_a_module_that_is_compiled_in_place() -> None:
    model = network()
    assert model.compile(fullgraph=True) is None
    x = tensor(0, 8, 6)
    for _ in range(3):
        model(x).sum().backward()
    assert captured() == 2
    model.eval()
    values = [host(model(x)) for _ in range(4)]
    for value in values:
        np.testing.assert_array_equal(value, values[0])
    assert captured() == 4
    model.train()
    assert host(model(x)).tolist() != values[0].tolist()
    assert captured() == 4
    twin = copy.deepcopy(model)
    assert list(twin.state_dict()) == list(model.state_dict())
    assert twin.eval()(x).tolist() == model.eval()(x).tolist()


def test_a_gradient_that_cannot_be_captured_at_first() -> None:
    ready = []

    class Odd(tlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: tlc.Tensor) -> tlc.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: tlc.Tensor) -> tlc.Tensor:
            if not ready:
                ready.append(g.sum().item())
            return g * 2

    double = tlc.compile(Odd.apply, fullgraph=True)
    for _ in range(3):
        x = tlc.ones(2).to("tape").requires_grad_()
        outputs = double(x), double(x)  # no backward between the first two calls
        (outputs[0] + outputs[1]).sum().backward()
        assert x.grad.tolist() == [4.0, 4.0]
    assert captured() >= 2


def test_debug_has_a_folder_for_each_form(tmp_path: Path) -> None:
    model = network()
    step = tlc.compile(plain(model, adam(model)), debug=tmp_path)
    for count in (8, 8, 5, 5, 8, 5):
        step(tensor(count, count, 6), labels(count, count))
    call = tlc.compile(nn.Linear(6, 3).to("tape"), debug=tmp_path)
    for _ in range(3):
        call(tensor(0, 2, 6)).sum().backward()
    with pytest.raises(TypeError):
        step(tensor(0, 2, 6), [object()])
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("**/*.*")} == {
        "1_step/kernels.md",
        "2_step/kernels.md",
        "3_Linear/kernels.md",
        "eager.txt",
    }
    text = (tmp_path / "1_step" / "kernels.md").read_text()
    assert text == "What `plain.<locals>.step` was captured as: 1 graphs"
    text = (tmp_path / "3_Linear" / "kernels.md").read_text()
    assert text == "What `Linear` was captured as: 2 graphs"
    assert "an argument of type object" in (tmp_path / "eager.txt").read_text()
