"""`TorchFunctionMode` and the rest of `torch.overrides`, beside PyTorch's."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.overrides.kinds import kept

LIBRARIES = (tlc, torch)


def logging(lib: Any) -> Any:
    class Logging(lib.overrides.TorchFunctionMode):
        def __init__(self, others: list[str] | None = None) -> None:
            super().__init__()
            self.seen: list[str] = [] if others is None else others

        def __torch_function__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    return Logging


def seen(lib: Any) -> Any:
    x = lib.ones(2, 2)
    with logging(lib)() as mode:
        lib.zeros(2), lib.empty(2), lib.tensor([1.0]), lib.arange(3), lib.rand(2), lib.eye(2)
        lib.linspace(0, 1, 3), lib.full((2,), 1.0), lib.randn(2), lib.randperm(3)
        lib.as_tensor([1.0]), lib.zeros_like(x), lib.hann_window(3)
        _ = x + 1, x @ x, -x, x[0], x.shape, x.sum(), x.T, len(x)
        x[0] = 1
        lib.nn.functional.relu(x), lib.cat([x, x]), lib.linalg.det(x), lib.einsum("ij->i", x)
        lib.nn.init.kaiming_uniform_(x), lib.nn.init.constant_(x, 1.0)
        lib.nn.functional.dropout(x), lib.nn.functional.layer_norm(x, (2,))
        lib.is_tensor(x), lib.get_num_threads(), lib.broadcast_shapes((1,), (2,))
    _ = x + 1
    return [name.removeprefix("linalg_") for name in mode.seen]


def nested(lib: Any) -> Any:
    kind, shared = logging(lib), []
    x = lib.ones(2).as_subclass(kept(lib))
    with kind() as outer, kind() as inner:
        y = x + 1
        with pytest.raises(RuntimeError):
            x @ lib.ones(3)
    with kind(shared), kind(shared):
        x.sum()
    return outer.seen, inner.seen, shared, type(y).__name__


def by_a_mode(lib: Any) -> Any:
    """Modes that change what is made."""

    class Double(lib.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            kwargs = kwargs or {}
            if func in (lib.empty, lib.ones, lib.tensor) and kwargs.get("dtype") is None:
                kwargs = {**kwargs, "dtype": lib.float64}
            if func is lib.nn.init.kaiming_uniform_:
                return kwargs.get("tensor", args[0] if args else None)
            return func(*args, **kwargs)

    with Double():
        module = lib.nn.Linear(2, 2)
        x = lib.ones(2)
    plain = lib.nn.Linear(2, 2)
    dtypes = [value.dtype for value in (module.weight, module.bias, x, plain.weight)]
    assert dtypes == [lib.float64] * 3 + [lib.float32]
    return [str(dtype) for dtype in dtypes]


def refusing(lib: Any) -> Any:
    class Refuses(lib.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            return NotImplemented

    x = lib.ones(2)
    results = []
    with Refuses():
        for call in (lib.add, lib.nn.functional.mse_loss):
            with pytest.raises(TypeError) as error:
                call(x, x)
            results.append(str(error.value).partition("<")[0].rstrip("[] "))
    return results


def switched_off(lib: Any) -> Any:
    x = lib.ones(2).as_subclass(kept(lib))
    with logging(lib)() as mode:
        with lib._C.DisableTorchFunctionSubclass():
            y = x + 1
        with lib._C.DisableTorchFunction():
            z = x * 2
        with lib.overrides.BaseTorchFunctionMode():
            x.sum()
        inside = lib.overrides.has_torch_function((1,))
    return mode.seen, type(y).__name__, type(z).__name__, inside


PROGRAMS = {f.__name__: f for f in (seen, nested, by_a_mode, refusing, switched_off)}


@pytest.mark.parametrize("name", PROGRAMS)
def test_modes(name: str) -> None:
    ours, theirs = (PROGRAMS[name](lib) for lib in LIBRARIES)
    assert ours == theirs


def test_modes_are_of_their_thread() -> None:
    x = tlc.ones(2)
    with logging(tlc)() as mode:
        thread = threading.Thread(target=lambda: x + 1)
        thread.start()
        thread.join()
    assert mode.seen == []


def test_names_and_kinds() -> None:
    for lib in LIBRARIES:
        overrides = lib.overrides
        functions = {
            lib.add: "torch.add",
            lib.nn.functional.relu6: "torch.nn.functional.relu6",
            lib.linalg.qr: "torch.linalg.qr",
            lib.Tensor.add_: "torch.Tensor.add_",
            lib.Tensor.shape.__get__: "torch.Tensor.shape.__get__",
            len: None,
        }
        assert {f: overrides.resolve_name(f) for f in functions} == functions
        assert overrides.is_tensor_method_or_property(lib.Tensor.add_)
        assert overrides.is_tensor_method_or_property(lib.Tensor.shape.__get__)
        assert not overrides.is_tensor_method_or_property(lib.nn.functional.relu6)
        overridable = overrides.get_overridable_functions()
        assert lib.add in overridable[lib] and lib.Tensor.add_ in overridable[lib.Tensor]
        assert lib.is_tensor in overrides.get_ignored_functions()
        testing = overrides.get_testing_overrides()
        assert testing[lib.add](1, 2) == -1
        assert lib.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()


def test_overridable_functions_cover_pytorchs() -> None:
    ours = {name for name in map(tlc.overrides.resolve_name, tlc.overrides.get_testing_overrides())}
    theirs = {
        name
        for name in map(torch.overrides.resolve_name, torch.overrides.get_testing_overrides())
        if name and tlc.overrides.resolve_name(_named(name)) is None and _named(name) is not None
    }
    # A name of torch.sparse.mm, and functions from which no subclass comes.
    quantizing = {f"torch.quantize_per_{how}" for how in ("channel", "tensor", "tensor_dynamic")}
    assert theirs - ours <= {"torch.spmm", *quantizing}


def _named(name: str) -> Any:
    value: Any = tlc
    for part in name.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def test_functions_are_as_they_were(idle: Any) -> None:
    functions = tlc.add, tlc.exp, tlc.sum, tlc.nn.functional.celu, tlc.Tensor.shape.fget, tlc.clamp
    before = [(f.__code__, f.__defaults__, dict(vars(f))) for f in functions]
    with logging(tlc)():
        assert functions[0].__code__ is not before[0][0]
        signatures = [inspect.signature(f) for f in functions]
        tlc.clamp(tlc.ones(2), max=0.5)
    assert [inspect.signature(f) for f in functions] == signatures
    assert [(f.__code__, f.__defaults__, dict(vars(f))) for f in functions[:5]] == before[:5]
    assert tlc.clamp(tlc.ones(2), max=0.5).tolist() == [0.5, 0.5]
