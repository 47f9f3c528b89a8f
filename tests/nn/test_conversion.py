"""Modules that move, change dtype or are loaded: which tensors stay the same objects, and errors.

On the device ``meta``, too, and with the flags of ``torch.__future__``.
"""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nn.against_torch import LIBRARIES, near, raises, same


@pytest.fixture(autouse=True)
def flags() -> Iterator[None]:
    yield
    for lib in LIBRARIES:
        for name in ("overwrite", "swap"):
            flag(lib, name, False)


def flag(lib: Any, name: str, value: bool) -> None:
    future = importlib.import_module(f"{lib.__name__}.__future__")
    getattr(future, f"set_{name}_module_params_on_conversion")(value)
    assert getattr(future, f"get_{name}_module_params_on_conversion")() is value


def norm(lib: Any, **kwargs: Any) -> Any:
    return lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.BatchNorm1d(2, **kwargs))


def with_gradients(lib: Any) -> Any:
    model = norm(lib)
    for parameter in model.parameters():
        parameter.grad = lib.ones(parameter.shape)
    return model


CONVERSIONS = {
    "double": lambda lib, m: m.double(),
    "half": lambda lib, m: m.half(),
    "to dtype": lambda lib, m: m.to(lib.bfloat16),
    "to meta": lambda lib, m: m.to("meta"),
    "to meta and dtype": lambda lib, m: m.to("meta", lib.float64),
    "to cpu": lambda lib, m: m.cpu(),
    "to_empty": lambda lib, m: m.to_empty(device="cpu"),
    "to_empty on meta": lambda lib, m: m.to_empty(device="meta"),
    "to_empty of itself": lambda lib, m: m.to_empty(device="meta", recurse=False),
    "_apply": lambda lib, m: m._apply(lambda t: t.detach().clone()),
    "_apply to itself": lambda lib, m: m._apply(lambda t: t.double(), recurse=False),
    "back from meta": lambda lib, m: m.to("meta").to_empty(device="cpu"),
}


def state(lib: Any, model: Any) -> list:
    return [
        (
            name,
            str(t.dtype),
            list(t.shape),
            t.device.type,
            t.requires_grad,
            t.is_leaf,
            type(t).__name__,
        )
        for name, t in model.state_dict(keep_vars=True).items()
    ]


@pytest.mark.parametrize("mode", ["default", "overwrite", "swap"])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_conversion_keeps_parameters_and_buffers(name: str, mode: str) -> None:
    def script(lib: Any) -> Any:
        model = with_gradients(lib)
        model[0].bias.requires_grad_(False)
        before = dict(model.named_parameters())
        buffers = dict(model.named_buffers())
        grads = {key: p.grad for key, p in before.items()}
        if mode != "default":
            flag(lib, mode, True)
        result = CONVERSIONS[name](lib, model)
        after = dict(model.named_parameters())
        return (
            result is model,
            [after[key] is before[key] for key in before],
            [value is buffers[key] for key, value in model.named_buffers()],
            [after[key].grad is grads[key] for key in before],
            [(str(p.grad.dtype), p.grad.device.type) for p in after.values()],
            state(lib, model),
        )

    same(script)


def test_leaving_meta() -> None:
    def moved(lib: Any) -> Any:
        return lib.nn.Linear(2, 3, device="meta").to("cpu")

    assert "Please use torch.nn.Module.to_empty() instead" in raises(moved)
    for call in (
        lambda lib: norm(lib).to("meta").to("cpu", lib.float64),
        lambda lib: lib.nn.Linear(2, 3, device="meta").cpu(),
        lambda lib: lib.nn.Linear(2, 3, device="meta").weight.to("cpu"),
        lambda lib: lib.nn.Linear(2, 3).to_empty(),
    ):
        raises(call)


def test_swap_says_what_it_cannot() -> None:
    references = []

    def script(lib: Any) -> Any:
        flag(lib, "swap", True)
        model = with_gradients(lib)
        references.append(weakref.ref(model[0].weight, print))
        try:
            return model.double()
        finally:
            assert model[0].weight.grad is not None

    assert "Couldn't swap Linear.weight" in raises(script)


def test_optimizers_go_on_with_what_stays() -> None:
    def script(lib: Any) -> Any:
        model = norm(lib)
        optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
        model.double()
        model(lib.ones(4, 2).double()).sum().backward()
        optimizer.step()
        return [
            p is q for p, q in zip(model.parameters(), optimizer.param_groups[0]["params"])
        ], str(model[0].weight.dtype)

    same(script)


@pytest.mark.parametrize("lib", LIBRARIES, ids=["here", "torch"])
def test_skip_init(lib: Any) -> None:
    skip_init = lib.nn.utils.skip_init
    lib.manual_seed(0)
    first = lib.rand(3).tolist()
    lib.manual_seed(0)
    layer = skip_init(lib.nn.Linear, 5, out_features=1)
    assert lib.rand(3).tolist() == first
    assert layer.weight.device.type == "cpu" and layer.weight.requires_grad
    assert list(layer.weight.shape) == [1, 5] and isinstance(layer.bias, lib.nn.Parameter)
    assert skip_init(lib.nn.Linear, 5, 1, device="meta").bias.device.type == "meta"
    assert skip_init(lib.nn.GRUCell, 5, 2, dtype=lib.float64).weight_hh.dtype is lib.float64


def test_errors_of_skip_init() -> None:
    raises(lambda lib: lib.nn.utils.skip_init(lib.nn.ReLU))
    raises(lambda lib: lib.nn.utils.skip_init(lib.nn.LSTM, 5, 2))
    raises(lambda lib: lib.nn.utils.skip_init(int))


LOADS = {
    "copy": {},
    "assign": {"assign": True},
    "to meta": {"target": "meta"},
    "assign to meta": {"target": "meta", "assign": True},
    "from meta": {"source": "meta"},
    "assign from meta": {"source": "meta", "assign": True},
    "other dtype": {"dtype": True},
    "assign other dtype": {"dtype": True, "assign": True},
    "assign parameters": {"keep_vars": True, "assign": True},
}


@pytest.mark.parametrize("mode", ["default", "swap"])
@pytest.mark.parametrize("name", LOADS)
def test_loading(name: str, mode: str) -> None:
    case = dict(LOADS[name])
    assign = case.pop("assign", False)

    def script(lib: Any) -> Any:
        model = norm(lib).to(case.get("target", "cpu"))
        model[0].weight.requires_grad_(False)
        source = norm(lib).to(case.get("source", "cpu"))
        if "source" not in case:
            with lib.no_grad():
                for value in source.state_dict().values():
                    value.fill_(3)
        if "dtype" in case:
            source.double()
        if mode == "swap":
            flag(lib, "swap", True)
        given = source.state_dict(keep_vars="keep_vars" in case)
        before = model.state_dict(keep_vars=True)
        result = model.load_state_dict(given, assign=assign)
        after = model.state_dict(keep_vars=True)
        return (
            repr(result),
            [after[key] is before[key] for key in after],
            [after[key] is given[key] for key in after],
            state(lib, model),
            [t.tolist() for t in after.values() if t.device.type != "meta"],
        )

    same(script)


def test_errors_of_loading() -> None:
    def wrong(lib: Any) -> Any:
        given = norm(lib).state_dict()
        given["0.weight"] = lib.ones(3, 2)
        given["0.bias"] = "text"
        given["1.num_batches_tracked"] = lib.ones(2)
        given["other"] = given.pop("1.weight")
        return norm(lib).load_state_dict(given, assign=True)

    raises(wrong)
    raises(lambda lib: norm(lib).load_state_dict([1]))
    same(lambda lib: repr(norm(lib).load_state_dict({"x": 1}, strict=False)))


def test_old_scalars_load() -> None:
    def script(lib: Any) -> Any:
        m = lib.nn.Module()
        m.register_buffer("a", lib.tensor(0.0))
        m.load_state_dict({"a": lib.tensor([4.0])})
        return m.a, m.load_state_dict({"a": lib.tensor([4.0, 5.0])})

    raises(script)


def test_a_model_built_on_meta_trains() -> None:
    def script(lib: Any) -> Any:
        source = norm(lib)
        with lib.no_grad():
            for p in source.parameters():
                p.fill_(0.5)
        with lib.device("meta"):
            model = norm(lib)
        assert {t.device.type for t in model.state_dict().values()} == {"meta"}
        model.load_state_dict(source.state_dict(), assign=True)
        model(lib.tensor([[1.0, 2.0], [3.0, 5.0]])).pow(2).sum().backward()
        return [p.grad for p in model.parameters()][2:]

    near(script)
