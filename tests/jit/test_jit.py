"""`torch.jit` beside PyTorch's: the same values, shared parameters, own modes; nothing compiled."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path
from typing import Any, Optional

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.jit import _running

LIBRARIES = (tlc, torch)
pytestmark = pytest.mark.filterwarnings("ignore")


def net(lib: Any) -> Any:
    """A model with a `super()` call, a shared child, dropout and statistics."""

    class Base(lib.nn.Module):
        def forward(self, x):
            return self.norm(self.linear(x))

    class Net(Base):
        def __init__(self):
            super().__init__()
            self.linear = lib.nn.Linear(2, 3)
            self.norm = lib.nn.BatchNorm1d(3)
            self.drop = lib.nn.Dropout(0.5)
            self.layers = lib.nn.ModuleList([self.linear])

        def forward(self, x):
            return self.drop(lib.relu(super().forward(x)))

    lib.manual_seed(0)
    return Net()


def plain_net(lib: Any) -> Any:
    lib.manual_seed(0)
    modules = lib.nn.Linear(2, 3), lib.nn.BatchNorm1d(3), lib.nn.Dropout(0.5)
    return lib.nn.Sequential(*modules, lib.nn.Sequential(lib.nn.ReLU())).double()


def make(lib: Any, way: str, module: Any) -> Any:
    if way == "script":
        return lib.jit.script(module)
    return lib.jit.trace(module, lib.zeros(4, 2).double(), check_trace=False)


@pytest.mark.parametrize("way", ["script", "trace"])
def test_a_module_computes_the_same(way: str) -> None:
    seen = []
    for lib in LIBRARIES:
        module = plain_net(lib)
        made = make(lib, way, module)
        lib.manual_seed(1)
        y = made(lib.tensor([[1.0, 2.0], [-3.0, 1.0], [0.5, 4.0], [2.0, -2.0]]).double())
        (y * y * y).sum().backward()
        tracked = module[1].num_batches_tracked.item()
        values = [*y.flatten().tolist(), *module[0].weight.grad.flatten().tolist()]
        seen.append((values, tracked, list(made.state_dict())))
    assert seen[0][1:] == seen[1][1:]
    assert seen[0][0] == pytest.approx(seen[1][0], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("way", ["script", "trace"])
def test_a_module_shows_and_shares_the_same(way: str) -> None:
    seen = []
    for lib in LIBRARIES:
        module = plain_net(lib)
        made = make(lib, way, module)
        made.eval()
        seen.append(
            (
                repr(made),
                made.original_name,
                isinstance(made, lib.jit.ScriptModule),
                getattr(made, "0").weight is module[0].weight,
                [m.training for m in made.modules()],
                [m.training for m in module.modules()],
                lib.jit.script(made) is made,
                lib.jit.trace(made, lib.ones(4, 2)) is made,
                [name for name, _ in made.named_parameters()],
            )
        )
    assert seen[0] == seen[1]


def test_classes_keep_their_super_calls_and_shared_children() -> None:
    module = net(tlc)
    made = tlc.jit.script(module.eval())
    x = tlc.randn(5, 2)
    assert made.layers[0] is made.linear and made.linear is not module.linear
    assert tlc.equal(made(x), module(x))
    assert isinstance(made, type(module))
    calls = []
    made.register_forward_hook(lambda *_: calls.append(1))
    module(x)
    assert calls == []
    made(x)
    assert calls == [1]


def test_copies_and_pickles() -> None:
    made = tlc.jit.script(net(tlc).eval())
    twin = copy.deepcopy(made)
    x = tlc.randn(3, 2)
    assert twin.linear.weight is not made.linear.weight
    assert tlc.equal(twin(x), made(x))
    with pytest.raises(pickle.PickleError, match="state_dict"):
        pickle.dumps(made)
    assert pickle.loads(pickle.dumps(doubled)) is doubled is copy.deepcopy(doubled)


def test_parameters_follow_the_module() -> None:
    for lib in LIBRARIES:
        module = plain_net(lib)
        made = lib.jit.script(module)
        with lib.no_grad():
            module[0].weight.fill_(7)
        module[0].float()
        weight = getattr(made, "0").weight
        assert weight.dtype == lib.float32 and weight.tolist() == [[7.0] * 2] * 3


def _double(x):
    """Twice `x`."""
    return x * 2


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    doubled = tlc.jit.script(_double)
doubled.__qualname__ = doubled._function.__qualname__ = "doubled"


def test_functions() -> None:
    for lib in LIBRARIES:
        x = lib.ones(2)
        for function in (
            lib.jit.script(_double),
            lib.jit.trace(_double, x),
            lib.jit.trace(_double, [x]),
            lib.jit.trace(_double, example_kwarg_inputs={"x": x}),
        ):
            assert isinstance(function, lib.jit.ScriptFunction)
            assert function(x).tolist() == [2.0, 2.0]
            assert function.name in ("_double", "doubled")
    assert tlc.jit.script(_double).__doc__ == "Twice `x`."


def test_a_scripted_function_is_a_method_of_a_class() -> None:
    class Point:
        @tlc.jit.script
        def twice(self, x):
            return x * 2

    assert Point().twice(4) == 8
    assert isinstance(Point.twice, tlc.jit.ScriptFunction)


class Encoder:
    """Makes a module whose methods are traced one by one."""

    def __new__(cls, lib: Any) -> Any:
        class Module(lib.nn.Module):
            def forward(self, x):
                return x + 1

            def encode(self, x, y):
                return x * y

        return Module()


def test_trace_module() -> None:
    for lib in LIBRARIES:
        x = lib.ones(2)
        made = lib.jit.trace_module(Encoder(lib), {"forward": x, "encode": (x, x)})
        assert made(x).tolist() == [2.0, 2.0]
        assert made.encode(x, x + 2).tolist() == [3.0, 3.0]
        assert lib.jit.trace(Encoder(lib).forward, x)(x).tolist() == [2.0, 2.0]


MISTAKES = {
    "freeze a module": lambda lib: lib.jit.freeze(plain_net(lib)),
    "freeze in training": lambda lib: lib.jit.freeze(lib.jit.script(plain_net(lib))),
    "optimize a module": lambda lib: lib.jit.optimize_for_inference(plain_net(lib)),
    "script a number": lambda lib: lib.jit.script(3),
    "trace nothing": lambda lib: lib.jit.trace(_double),
    "trace_module a function": lambda lib: lib.jit.trace_module(_double, {}),
    "trace_module a tensor": lambda lib: lib.jit.trace_module(plain_net(lib), lib.ones(4, 2)),
    "trace_module another name": lambda lib: lib.jit.trace_module(plain_net(lib), {"no": 1}),
    "wait for a number": lambda lib: lib.jit.wait(3),
    "fork an error": lambda lib: lib.jit.fork(lambda: 1 // 0),
    "ignore a number": lambda lib: lib.jit.ignore(3),
    "an empty optional": lambda lib: lib.jit._unwrap_optional(None),
    "a bare list": lambda lib: lib.jit.isinstance([1], list),
    "an unknown fuser": lambda lib: lib.jit.fuser("x").__enter__(),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_raise_what_torch_raises(name: str) -> None:
    raised = []
    for lib in LIBRARIES:
        with pytest.raises(Exception) as info:  # noqa: PT011  the types are compared below
            MISTAKES[name](lib)
        raised.append(info.type)
    assert raised[0] is raised[1]


VALUES: list[tuple[Any, Any]] = [
    ([1], list[int]),
    ([], list[int]),
    ([1, "a"], list[int]),
    ({1: "a"}, dict[int, str]),
    ({1: 2}, dict[int, str]),
    ((1, "a"), tuple[int, str]),
    ((1, 2), tuple[int, str]),
    (1, (int, float)),
    ("a", (int, float)),
    (None, Optional[int]),  # noqa: UP007, UP045
    (2.0, Optional[int]),  # noqa: UP007, UP045
]


@pytest.mark.parametrize(("value", "kind"), VALUES)
def test_isinstance_looks_into_containers(value: Any, kind: Any) -> None:
    assert tlc.jit.isinstance(value, kind) is torch.jit.isinstance(value, kind)


def test_marks_leave_functions_as_they_are() -> None:
    for lib in LIBRARIES:
        jit = lib.jit
        for mark in (jit.export, jit.unused, jit.ignore, jit.ignore(), jit.ignore(drop=True)):
            assert mark(_double) is _double
        assert jit.script_if_tracing(_double)(2) == 4
        assert jit.annotate(list[int], [1]) == [1]
        assert jit.Attribute(1, int) == (1, int)
        assert not jit.is_scripting() and not jit.is_tracing()
        assert issubclass(jit.TracerWarning, Warning)
        before = jit.set_fusion_strategy([("DYNAMIC", 3)])
        assert before == [("STATIC", 2), ("DYNAMIC", 10)]
        assert jit.set_fusion_strategy(before) == [("DYNAMIC", 3)]
        assert jit.fork(_double, 3).wait() == jit.wait(jit.fork(_double, 3)) == 6


def test_marks_for_types() -> None:
    assert tlc.jit.interface(Encoder) is Encoder
    assert tlc.jit.annotations.BroadcastingList2[int] is None


def test_optimized_modules_are_the_modules() -> None:
    made = tlc.jit.script(plain_net(tlc))
    assert tlc.jit.optimize_for_inference(made) is made and not made.training
    assert tlc.jit.freeze(made) is made


def test_a_class_of_script_methods() -> None:
    class Twice(tlc.jit.ScriptModule):
        @tlc.jit.script_method
        def forward(self, x):
            return x * 2

    module = Twice()
    assert module(tlc.ones(1)).item() == 2
    assert tlc.jit.script(module) is module


def test_archives_are_refused(tmp_path: Path) -> None:
    made = tlc.jit.script(plain_net(tlc))
    for call in (
        lambda: tlc.jit.save(made, tmp_path / "m.pt"),
        lambda: made.save(tmp_path / "m.pt"),
        lambda: doubled.save(tmp_path / "m.pt"),
        lambda: tlc.jit.load(tmp_path / "m.pt"),
    ):
        with pytest.raises(NotImplementedError, match="TorchScript.* state_dict"):
            call()


def test_one_warning_per_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_running, "_warned", False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tlc.jit.script(_double)
        tlc.jit.trace(_double, tlc.ones(1))
        tlc.jit.script(_double)
    assert [w.category for w in caught] == [UserWarning]
    assert "compiles nothing" in str(caught[0].message) and caught[0].filename == __file__
