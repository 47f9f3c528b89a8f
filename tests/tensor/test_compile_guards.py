"""What a compiled function reads besides its arguments: changes to any of it are noticed."""

from __future__ import annotations

import logging
import sys
import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
import tests.tape_backend  # noqa: F401  the device
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.cuda.graphs import Numbers
from tests.cuda import programs
from tests.cuda.programs import adam, host, plain
from tests.tape_backend.backend import TapeBackend

nn, F = tlc.nn, tlc.nn.functional
TAPE: TapeBackend = backends.load("tape")  # type: ignore[assignment]
factor = 1.0


class Settings:
    """A class whose attribute is read."""

    scale = 1.0


class Scaled(nn.Module):
    """A module that reads all kinds of attributes."""

    offset = 0.0

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(tensor(0, 3))
        self.mask, self.extra, self.sizes = tensor(1, 3), None, (1, 2)
        self.config = types.SimpleNamespace(power=1.0)
        self.last: Any = None

    def forward(self, x: tlc.Tensor) -> tlc.Tensor:
        y = x * self.weight * self.mask * self.config.power + self.offset + sum(self.sizes)
        self.last = y.detach()
        return y if self.extra is None else y + self.extra


def tensor(seed: int, *shape: int) -> tlc.Tensor:
    return programs.tensor("tape", seed, *shape)


def check(program: Callable[[Callable], list], replays: int = 1) -> None:
    """Assert that `program` gives the same with and without capture, and that there were graphs.

    It is given `torch.compile` or something that does nothing.
    """
    found = []
    for compiled in (lambda function: function, tlc.compile):
        TAPE.graphs.captured.clear()
        tlc.manual_seed(0)
        TAPE.generator.manual_seed(0)
        found.append(program(compiled))
    for i, (expected, value) in enumerate(zip(*found, strict=True)):
        assert (expected is None) == (value is None), i
        if value is not None:
            np.testing.assert_allclose(host(value), host(expected), rtol=2e-4, atol=2e-6)
    assert sum([graph.launches for graph in TAPE.graphs.captured]) >= replays


def calls(function: Callable, changes: list[Callable[[], Any]], shape: tuple = (3,)) -> list:
    """What some calls return, before and after every change."""
    results = []
    for change in (lambda: None, *changes):
        change()
        results += [function(tensor(i, *shape)).clone() for i in range(3)]
    return results


def test_lists_dicts_and_attributes_that_are_named() -> None:
    def program(compiled: Callable) -> list:
        weights, config = [tensor(0, 3)], {"scale": 1.0}
        box = types.SimpleNamespace(shift=0.0)
        Settings.scale = 1.0
        function = compiled(
            lambda x: (x * weights[0] * config["scale"] + box.shift) * Settings.scale
        )
        return calls(
            function,
            [
                lambda: weights.__setitem__(0, tensor(9, 3)),
                lambda: config.update(scale=3.0),
                lambda: setattr(box, "shift", 1.0),
                lambda: setattr(Settings, "scale", 2.0),
            ],
        )

    check(program, 10)


def helper(x: tlc.Tensor) -> tlc.Tensor:
    return x * factor


def test_compile_guards_globals_of_called_functions() -> None:
    def set_factor(value: float) -> None:
        global factor
        factor = value

    def program(compiled: Callable) -> list:
        set_factor(1.0)
        shift = 0.0

        def argument(x: tlc.Tensor) -> tlc.Tensor:
            return x + shift

        function = compiled(lambda x, f: f(helper(x)) + [y * factor for y in (x,)][0])
        results = calls(lambda x: function(x, argument), [lambda: set_factor(2.0)])
        shift = 5.0
        return results + calls(lambda x: function(x, argument), [])

    check(program, 6)


class Power:
    """An object whose method calls another one."""

    def __init__(self) -> None:
        self.power = 1.0

    def inner(self, x: tlc.Tensor) -> tlc.Tensor:
        return x * self.power

    def outer(self, x: tlc.Tensor) -> tlc.Tensor:
        return self.inner(x)


class Powered(nn.Module):
    """A module that uses an object in a method of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.power = Power()

    def helped(self, x: tlc.Tensor) -> tlc.Tensor:
        return self.power.outer(x)

    def forward(self, x: tlc.Tensor) -> tlc.Tensor:
        return self.helped(x)


def test_compile_guards_attributes_read_by_methods() -> None:
    def program(compiled: Callable) -> list:
        one, module = Power(), Powered()
        results = []
        for function, held in (
            (one.outer, one),
            (lambda x: one.outer(x), one),
            (module, module.power),
        ):
            changes = [lambda held=held: setattr(held, "power", held.power + 1)]
            results += calls(compiled(function), changes)  # type: ignore[arg-type]
        return results

    check(program, 6)


def test_attributes_parts_and_hooks_of_modules() -> None:
    def program(compiled: Callable) -> list:
        Scaled.offset = 0.0
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to("tape")
        scaled = Scaled().to("tape")
        function = compiled(lambda x: scaled(model(x)).detach())
        return calls(
            function,
            [
                lambda: setattr(scaled, "mask", tensor(5, 3)),
                lambda: setattr(scaled, "extra", tensor(6, 3)),
                lambda: setattr(scaled, "sizes", (4, 5)),
                lambda: setattr(scaled.config, "power", 2.0),
                lambda: setattr(Scaled, "offset", 2.0),
                lambda: model.register_forward_hook(lambda module, args, out: out * 2),
            ],
        )

    def parts(compiled: Callable) -> list:
        tlc.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3)).to("tape")
        made = nn.Linear(3, 3).to("tape")
        changes = [lambda: model.__setitem__(1, made), lambda: model.append(nn.ReLU())]
        return calls(compiled(model), changes, (2, 3))

    check(program, 14)
    check(parts, 3)


def test_a_tensor_that_a_module_keeps_is_that_of_the_last_call() -> None:
    def program(compiled: Callable) -> list:
        scaled = Scaled().to("tape")
        function = compiled(lambda x: scaled(x).detach())
        results = []
        for i in range(5):
            function(tensor(i, 3))
            results.append(scaled.last.clone())
        return results

    check(program, 4)


def test_state_that_python_keeps_is_not_captured(caplog: pytest.LogCaptureFixture) -> None:
    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.state = tensor(0, 3)

        def forward(self, x: tlc.Tensor) -> tlc.Tensor:
            self.state = self.state * 0.5 + x
            return self.state

    def program(compiled: Callable) -> list:
        module, memory, seen = Recurrent(), {"sum": tensor(0, 3)}, []

        def total(x: tlc.Tensor) -> tlc.Tensor:
            memory["sum"] = memory["sum"] + x
            return memory["sum"] * 1

        def note(x: tlc.Tensor) -> tlc.Tensor:
            seen.append(x.sum())
            return x * 2

        results = calls(compiled(module), []) + calls(compiled(total), [])
        return results + calls(compiled(note), []) + seen

    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        check(program, 0)
    assert "changes attributes of a module" in caplog.text
    assert "changes a list or dict" in caplog.text


def test_leaves_that_are_frozen_or_replaced() -> None:
    def program(compiled: Callable) -> list:
        leaf, others = tensor(0, 3).requires_grad_(), [tensor(1, 3).requires_grad_()]
        step = compiled(lambda x: (x * leaf * others[0]).sum().backward())
        results = []
        for i in range(15):
            if i == 4:
                leaf.requires_grad_(False)
            if i == 8:
                others[0].data = tensor(8, 3)
            if i == 12:
                others[0].requires_grad_(False)
                leaf.requires_grad_()
            leaf.grad = others[0].grad = None
            step(tensor(i, 3))
            results += [None if t.grad is None else t.grad.clone() for t in (leaf, others[0])]
        return results

    check(program, 8)


def test_modules_that_are_named_but_not_called() -> None:
    def clipping(compiled: Callable) -> list:
        model = nn.Linear(3, 3).to("tape")
        clip = compiled(lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.1))
        results = []
        for i in range(6):
            model.zero_grad()
            model(tensor(i, 2, 3)).square().sum().backward()
            results += [clip().clone(), model.weight.grad.clone()]
        return results

    def averaging(compiled: Callable) -> list:
        model, average = nn.Linear(3, 3).to("tape"), nn.Linear(3, 3).to("tape")

        def follow(x: tlc.Tensor) -> tlc.Tensor:
            with tlc.no_grad():
                for slow, fast in zip(average.parameters(), model.parameters()):
                    slow.lerp_(fast, 0.1)
            return model(x).detach()

        function = compiled(follow)
        results = []
        for i in range(9):
            if i == 5:
                average.weight.data = average.weight.data * 2
            results += [function(tensor(i, 2, 3)), average.weight.clone()]
        return results

    check(clipping, 3)
    check(averaging, 3)


def test_state_and_hooks_of_an_optimizer() -> None:
    def program(compiled: Callable) -> list:
        model = programs.network("tape").eval()
        optimizer = adam(model)
        weight = model[4].weight
        step = compiled(plain(model, optimizer))
        changes: dict[int, Callable] = {
            4: lambda: optimizer.state.clear(),
            8: lambda: optimizer.state.update({weight: {}}),
            12: lambda: optimizer.state[weight].update(exp_avg=tlc.ones_like(weight)),
            16: lambda: optimizer.register_step_post_hook(lambda *args: None),
        }
        results = []
        for i in range(20):
            changes.get(i, lambda: None)()
            step(tensor(i, 8, 6), programs.labels("tape", i, 8))
            results.append(weight.detach().clone())
        return results

    check(program, 12)


def test_a_scaler_inside() -> None:
    def program(compiled: Callable) -> list:
        model = programs.network("tape").eval()
        optimizer = adam(model)
        scaler = tlc.amp.GradScaler("tape", init_scale=4.0, growth_interval=3)

        def step(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        function, results = compiled(step), []
        for i in range(16):
            if i == 8:
                scaler.set_growth_interval(1)
            if i == 12:
                scaler.load_state_dict({**scaler.state_dict(), "scale": 8.0})
            x = tensor(i, 8, 6) * (float("inf") if i == 6 else 1.0)
            loss = function(x, programs.labels("tape", i, 8))
            results += [tlc.tensor(scaler.get_scale()), model[0].weight.detach().clone()]
            results += [loss] if i != 6 else []
        return results

    check(program, 12)


def test_a_compiled_module_inside_a_compiled_step() -> None:
    def program(compiled: Callable) -> list:
        model = programs.network("tape").eval()
        step = compiled(plain(compiled(model), adam(model)))
        return [step(tensor(i, 8, 6), programs.labels("tape", i, 8)) for i in range(5)]

    check(program, 4)


def test_parameters_that_are_written_before_backward() -> None:
    layer = nn.Linear(3, 3).to("tape")
    compiled = tlc.compile(nn.Sequential(layer, nn.Tanh(), nn.Linear(3, 1).to("tape")))
    for i in range(3):
        compiled(tensor(i, 2, 3)).sum().backward()
    loss = compiled(tensor(0, 2, 3)).sum()
    with tlc.no_grad():
        compiled[2].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    loss = compiled(tensor(0, 2, 3)).sum()
    with tlc.no_grad():
        layer.bias.mul_(2)  # nobody's gradient needs it
    loss.backward()


def test_an_argument_in_a_graph_where_there_was_a_leaf() -> None:
    def run(x: tlc.Tensor) -> None:
        x.sum().backward()

    step = tlc.compile(run)
    for i in range(3):
        step(tensor(i, 3).requires_grad_())
    made = tensor(0, 3).requires_grad_() * tensor(1, 3).requires_grad_()
    step(made)
    with pytest.raises(RuntimeError, match="second time"):
        step(made)


def test_arguments_that_are_always_others(caplog: pytest.LogCaptureFixture) -> None:
    times = tlc.compile(lambda x, i: x * i)
    with caplog.at_level(logging.WARNING, "tensorflow_lite_clone.compile"):
        for i in range(100):
            times(tensor(0, 3), i)
    assert len(times._entries) == 64
    assert "others at nearly every call" in caplog.text
    for _ in range(3):
        times(tensor(0, 3), -1)
    assert any([site.variants for site in times._entries.values()])


def test_threads_share_a_compiled_function() -> None:
    layer = nn.Linear(6, 6).to("tape")
    function = tlc.compile(lambda x, scale: (layer(x) * scale).detach())
    for scale in (1.0, 2.0, 1.0, 2.0):
        function(tensor(0, 8, 6), scale)
    wrong = []

    def work(number: int) -> None:
        for i in range(40):
            x, scale = tensor(100 * number + i, 8, 6), 1.0 + number % 2
            if not np.allclose(host(function(x, scale)), host(layer(x) * scale), atol=1e-5):
                wrong.append(i)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_other_threads_read_plain_numbers_during_a_capture() -> None:
    found: list[Any] = []
    with Numbers(TAPE.graphs) as numbers:
        thread = threading.Thread(target=lambda: found.append(numbers.number(lambda: 2.0)))
        thread.start()
        thread.join()
    assert found == [2.0] and type(found[0]) is float and not numbers.numbers
