"""torch.compile on the CPU: what a replay computes is what the function computes, bit for bit."""

from __future__ import annotations

import gc
import logging
import random
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch import hooks, table
from tensorflow_lite_clone.ops.nn.batch_norm import BatchNorm
from tests.cuda import programs
from tests.cuda.programs import adam, host, in_place, network, plain, step_first, zero_last

nn, F = tlc.nn, tlc.nn.functional
CPU = backends.load("cpu")


def tensor(seed: int, *shape: int) -> tlc.Tensor:
    return programs.tensor("cpu", seed, *shape)


def labels(seed: int, count: int, classes: int = 3) -> tlc.Tensor:
    return programs.labels("cpu", seed, count, classes)


def variants(compiled: Any) -> list:
    return [form for site in compiled._entries.values() for form in site.variants]


def text(form: Any) -> str:
    """The program of a captured step."""
    return form._graph.program.text


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- steps


@pytest.mark.parametrize("make", [plain, in_place, zero_last, step_first])
def test_a_step_trains_as_without_capture(make: Any) -> None:
    """With dropout: the same random numbers are drawn either way."""
    losses, state, _, _ = programs.trained("cpu", make, 20, False)
    found, replayed, step, _ = programs.trained("cpu", make, 20, True, fullgraph=make != step_first)
    assert found == losses
    assert_equal(replayed, state)
    assert make is step_first or len(variants(step)) <= 2


def convolutional() -> tuple[nn.Module, Callable[[int], tlc.Tensor]]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.GELU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2),
        nn.Linear(24, 3),
    )  # fmt: skip
    return model, lambda i: tensor(i, 4, 1, 10, 10)


def transformer() -> tuple[nn.Module, Callable[[int], tlc.Tensor]]:
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True)
    encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    return nn.Sequential(encoder, nn.Flatten(), nn.Linear(40, 3)), lambda i: tensor(i, 4, 5, 8)


class Last(nn.Module):
    """The last output of an LSTM over embedded words."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.cells = nn.Embedding(7, 4), nn.LSTM(4, 5, 2, batch_first=True)
        self.head = nn.Linear(5, 3)

    def forward(self, x: tlc.Tensor) -> tlc.Tensor:
        return self.head(self.cells(self.words(x))[0][:, -1])


def recurrent() -> tuple[nn.Module, Callable[[int], tlc.Tensor]]:
    return Last(), lambda i: labels(i, 24, 7).reshape(4, 6)


@pytest.mark.parametrize("make", [convolutional, transformer, recurrent])
@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_networks_under_a_schedule(make: Any, name: str) -> None:
    """20 steps of two sizes; rates change without a new capture."""

    def run(compiled: bool) -> tuple[list, dict, Any]:
        tlc.manual_seed(0)
        model, batch = make()
        options = {"momentum": 0.9} if name == "SGD" else {}
        optimizer = getattr(tlc.optim, name)(model.parameters(), lr=0.02, **options)
        schedule = tlc.optim.lr_scheduler.StepLR(optimizer, 3, 0.7)
        step = plain(model, optimizer)
        step = tlc.compile(step, fullgraph=True) if compiled else step
        losses = []
        for i in range(20):
            count = 3 if i % 4 == 1 else 4
            losses.append(step(batch(i)[:count], labels(i, count)).item())
            schedule.step()
        return losses, programs.state_of(model), step

    losses, state, _ = run(False)
    found, replayed, step = run(True)
    assert found == losses
    assert_equal(replayed, state)
    assert len(variants(step)) == 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("ASGD", {"t0": 3, "lambd": 0.01}), ("Adadelta", {}), ("Adafactor", {}), ("Adamax", {}),
        ("NAdam", {}), ("RAdam", {}), ("RMSprop", {"momentum": 0.5}), ("Adagrad", {}),
        ("Rprop", {"lr": 1e-3}), ("Adam", {"amsgrad": True}),
    ],
)  # fmt: skip
def test_steps_of_every_kind_of_optimizer(name: str, options: dict) -> None:
    """What changes from step to step is counted on in replays."""

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

    assert_equal(run(True), run(False))


def test_gradients_accumulate_across_calls() -> None:
    assert_equal(programs.accumulated("cpu", True), programs.accumulated("cpu", False))


def test_a_module_with_loss_and_optimizer_outside() -> None:
    losses, state = programs.called("cpu", False)
    found, replayed = programs.called("cpu", True)
    assert found == losses
    assert_equal(replayed, state)


def test_a_function_inside_a_program_that_is_not_compiled() -> None:
    """Gradients reach its arguments; forward hands to backward what that needs."""

    def run(compiled: bool) -> list[np.ndarray]:
        def inner(x: tlc.Tensor) -> tlc.Tensor:
            return (x.sin() * x).cumsum(0).tanh()

        call = tlc.compile(inner, fullgraph=True) if compiled else inner
        found = []
        for i in range(5):
            x = tensor(i, 3, 4).requires_grad_()
            (call(2 * x) ** 2).sum().backward()
            found.append(host(x.grad))
        return found

    assert_equal(run(True), run(False))


# ---- what is computed


def _index_put(x: tlc.Tensor) -> tlc.Tensor:
    y = x.clone()
    y[y > 0] = 0.25
    y[0] = 5.0
    y.t()[1].mul_(3)
    return y


FUNCTIONS: dict[str, Callable[[tlc.Tensor], Any]] = {
    "views": lambda x: x.t().contiguous().view(2, 6).chunk(2, 1)[1],
    "writes": _index_put,
    "zeros": lambda x: x.new_zeros(3, 4).add_(x),
    "out": lambda x: tlc.add(x, 1, out=tlc.empty(3, 4)),
    "constants": lambda x: x + tlc.tensor(2.0) * tlc.arange(4.0) - tlc.full((3, 4), 0.5),
    "sort": lambda x: x.sort(1).values + x.topk(2, 1).values[:, :1],
    "gather": lambda x: x.gather(1, (3 * x).abs().long() % 3),
    "linear algebra": lambda x: tlc.linalg.qr(x)[1] @ tlc.linalg.pinv(x),
    "drawn": lambda x: x + tlc.rand(3, 4) * tlc.randn_like(x) + tlc.randperm(4),
    "drawn in place": lambda x: tlc.empty(3, 4).uniform_(-1, 1) + x.clone().normal_(),
    "chosen": lambda x: tlc.bernoulli(x.sigmoid()) + tlc.multinomial(x.softmax(1), 1),
    "channels": lambda x: F.dropout2d(x[:, :, None, None], 0.5) + F.alpha_dropout(x, 0.5)[0, 0],
    "gradient": lambda x: tlc.func.grad(lambda r: (r**3).sum())(x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    def run(call: Callable[[tlc.Tensor], tlc.Tensor]) -> list[np.ndarray]:
        tlc.manual_seed(5)
        return [host(call(tensor(i, 3, 4))) for i in range(5)]

    function = FUNCTIONS[name]
    compiled = tlc.compile(lambda x: function(x), fullgraph=True)
    assert_equal(run(compiled), run(function))
    assert len(variants(compiled)) == 1


def test_writes_to_parts_of_a_buffer() -> None:
    """What a capture writes through views is taken back, too."""
    first, second = tlc.zeros(3, 4), tlc.zeros(3, 4)

    def add(buffer: tlc.Tensor, x: tlc.Tensor) -> tlc.Tensor:
        buffer[0] += x[0]
        buffer.t()[1].mul_(2)
        return buffer[0, 0].add_(1) + buffer

    compiled = tlc.compile(lambda x: add(first, x), fullgraph=True)
    for i in range(5):
        assert_equal([host(compiled(tensor(i, 3, 4)))], [host(add(second, tensor(i, 3, 4)))])
    assert len(variants(compiled)) == 1


def test_an_override_may_decline_at_a_replay() -> None:
    """For a label that is out of range, here, where the general form complains."""
    compiled = tlc.compile(lambda x, y: F.cross_entropy(x, y), fullgraph=True)
    for _ in range(3):
        compiled(tlc.zeros(2, 3), tlc.tensor([0, 2]))
    assert len(variants(compiled)) == 1
    with pytest.raises(IndexError):
        compiled(tlc.zeros(2, 3), tlc.tensor([0, 3]))


def test_a_generator_of_ones_own() -> None:
    source = tlc.Generator()
    compiled = tlc.compile(lambda x: x + tlc.rand(3, generator=source), fullgraph=True)
    source.manual_seed(3)
    found = [host(compiled(tlc.zeros(3))) for _ in range(4)]
    source.manual_seed(3)
    assert_equal(found, [host(tlc.rand(3, generator=source)) for _ in range(4)])


def test_results_are_the_callers() -> None:
    @tlc.compile(fullgraph=True)
    def several(x: tlc.Tensor) -> dict[str, Any]:
        return {"twice": 2 * x, "turned": x.T, "same": x}

    results = [several(tensor(i, 2, 3)) for i in range(5)]
    for i, result in enumerate(results):
        expected = host(tensor(i, 2, 3))
        assert_equal(
            [host(value) for value in result.values()], [2 * expected, expected.T, expected]
        )


# ---- what is not captured, and runs as it is


SEEN: dict[str, Callable[[tlc.Tensor], Any]] = {
    "'item'": lambda x: x * x.sum().item(),
    "'__bool__'": lambda x: x if x.sum() > 0 else -x,
    "'tolist'": lambda x: x + tlc.tensor(x.tolist()),
    "'numpy'": lambda x: x + float(x.numpy()[0]),
    "'nonzero'": lambda x: x.gt(0).nonzero(),
    "'__getitem__'": lambda x: x[x > 0],
    "'unique'": lambda x: x.unique(),
    "copies from the host": lambda x: x * tlc.tensor([1.0, 2.0, 3.0]),
    "maps over samples": lambda x: tlc.func.vmap(lambda row: row * 2)(x),
    "random numbers": lambda x: (tlc.manual_seed(0), x + tlc.rand(3))[1],
}


@pytest.mark.parametrize("reason", SEEN)
def test_compile_value_dependent_functions_run_eagerly(
    reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    function = SEEN[reason]
    compiled = tlc.compile(lambda x: function(x))
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        for i in range(4):
            np.testing.assert_array_equal(
                host(compiled(tensor(i, 3))), host(function(tensor(i, 3)))
            )
    assert len(caplog.records) == 1 and reason in caplog.records[0].message
    assert not variants(compiled)


def test_a_capture_that_fails_has_done_nothing() -> None:
    """Statistics, parameters, optimizer state and random numbers are as they were before."""

    def run(compiled: bool) -> tuple[list[float], dict]:
        model = network("cpu")
        inner = plain(model, adam(model))

        def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
            loss = inner(x, y)
            return loss if loss.item() > -1 else -loss

        call = tlc.compile(step) if compiled else step
        tlc.manual_seed(1)
        losses = [call(tensor(i, 8, 6), labels(i, 8)).item() for i in range(6)]
        return losses, programs.state_of(model)

    losses, state = run(False)
    found, same = run(True)
    assert found == losses
    assert_equal(same, state)


def test_a_scaler_on_the_cpu_falls_back() -> None:
    def run(compiled: bool) -> dict:
        model = network("cpu")
        optimizer, scaler = adam(model), tlc.amp.GradScaler("cpu", init_scale=8.0)

        def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss

        call = tlc.compile(step) if compiled else step
        tlc.manual_seed(1)
        for i in range(5):
            call(tensor(i, 8, 6), labels(i, 8))
        return programs.state_of(model)

    assert_equal(run(True), run(False))


def test_a_schedule_inside_is_stepped_once() -> None:
    def run(compiled: bool) -> list[float]:
        weight = nn.Parameter(tlc.ones(1))
        optimizer = tlc.optim.SGD([weight], lr=1.0)
        schedule = tlc.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(x: tlc.Tensor) -> tlc.Tensor:
            optimizer.zero_grad()
            (weight * x).sum().backward()
            optimizer.step()
            schedule.step()
            return weight.detach()

        call = tlc.compile(step) if compiled else step
        return [call(tlc.ones(1)).item() for _ in range(8)]

    assert run(True) == run(False)


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_random_numbers_of_the_host_are_new_at_every_call(draw: Callable[[], float]) -> None:
    scaled = tlc.compile(lambda x: x * draw())
    assert len({scaled(tlc.ones(1)).item() for _ in range(5)}) == 5


def test_hooks_around_ops_see_every_call() -> None:
    seen = []

    def watch(op: Any, backend: Any, call: Any) -> Any:
        def watched(*arrays: Any, **parameters: Any) -> Any:
            seen.append(op.name)
            return call(*arrays, **parameters)

        return watched

    double = tlc.compile(lambda x: x * 2, fullgraph=True)
    for _ in range(3):
        double(tlc.ones(2))
    hooks.add(watch)
    try:
        assert double(tlc.ones(2)).tolist() == [2.0, 2.0]
    finally:
        hooks.remove(watch)
    assert seen == ["mul"]
    double(tlc.ones(2))
    assert seen == ["mul"]


# ---- what a capture leaves behind


def test_statistics_that_an_override_writes_move_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def batch_norm(F: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, **parameters: Any) -> Any:
        *results, mean[...], var[...] = BatchNorm.forward(F, x, w, b, mean, var, **parameters)
        return tuple(results)

    def run(compiled: bool) -> dict:
        model = nn.BatchNorm1d(3)
        call = tlc.compile(lambda x: model(x).detach(), fullgraph=True) if compiled else model
        for i in range(4):
            call(tensor(i, 5, 3))
        return programs.state_of(model)

    expected = run(False)
    monkeypatch.setitem(table.overrides, ("batch_norm", "numpy"), batch_norm)
    try:
        table._forget()
        assert_equal(run(False), expected)
        assert_equal(run(True), expected)
    finally:
        monkeypatch.undo()
        table._forget()


def test_the_backend_is_as_it_was() -> None:
    before = vars(CPU).keys() | {"graphs"}
    step = tlc.compile(lambda x: x.exp().sum(), fullgraph=True)
    for i in range(3):
        step(tensor(i, 3))
    with pytest.raises(RuntimeError, match="cannot be captured"):
        failing = tlc.compile(lambda x: x * x.sum().item(), fullgraph=True)
        failing(tlc.ones(2)), failing(tlc.ones(2))
    assert vars(CPU).keys() <= before
    assert CPU.captures == 0 and not hooks.around_op and not hooks.around_write
    assert CPU.F.exp is np.exp


def test_nothing_is_kept_alive_by_cycles() -> None:
    gc.collect()
    gc.disable()
    try:
        *_, step, model = programs.trained("cpu", plain, 4, True)
        dead = weakref.ref(step), weakref.ref(model)
        del step, model, _
        assert dead[0]() is None and dead[1]() is None
    finally:
        gc.enable()


def test_memory_is_let_go_of_as_without_capture() -> None:
    made: deque[Any] = deque()  # no list: those are guarded

    def through(x: tlc.Tensor) -> tlc.Tensor:
        for _ in range(3):
            x = x.exp().tanh()
            made.append(weakref.ref(x._storage.array))
        return x.sum()

    step = tlc.compile(through, fullgraph=True)
    step(tlc.ones(1000)), step(tlc.ones(1000))
    assert len(made) == 6 and all([array() is None for array in made])


def test_debug_writes_the_program(tmp_path: Path) -> None:
    layer = nn.Linear(3, 2)
    call = tlc.compile(layer, debug=tmp_path)
    for i in range(3):
        call(tensor(i, 4, 3)).sum().backward()
    program = (tmp_path / "1_Linear" / "program_1.py").read_text()
    assert "def run(kept):" in program and "linear_1(" in program
    assert "Linear_backward" in (tmp_path / "1_Linear" / "program_2.py").read_text()


def test_counts_of_steps_may_have_a_dimension() -> None:
    """As optimizers have them whose state is shared between processes."""

    def run(compiled: bool) -> np.ndarray:
        weight = nn.Parameter(tensor(0, 3))
        optimizer = tlc.optim.Adam([weight], lr=0.1)
        zeros = tlc.zeros(3)
        optimizer.state[weight] = {
            "step": tlc.zeros(1), "exp_avg": zeros.clone(), "exp_avg_sq": zeros.clone()
        }  # fmt: skip

        def step(x: tlc.Tensor) -> None:
            optimizer.zero_grad()
            (weight * x).square().sum().backward()
            optimizer.step()

        call = tlc.compile(step, fullgraph=True) if compiled else step
        for i in range(4):
            call(tensor(i, 3))
        return host(weight)

    np.testing.assert_array_equal(run(True), run(False))
