"""Programs with classes that have ``__torch_dispatch__`` under both libraries."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.overrides.dispatching import forget_classes, module, names, quantized, two_tensor

LIBRARIES = (tlc, torch)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """What comes after is a program without such classes."""
    yield
    forget_classes()


def same(program: Any) -> Any:
    """What a program gives, the same under both libraries."""
    ours, theirs = map(program, LIBRARIES)
    assert ours == theirs
    return ours


def close(program: Any) -> None:
    """`same` for floats, which are rounded."""
    ours, theirs = map(program, LIBRARIES)
    for got, wanted in zip(ours, theirs, strict=True):
        if isinstance(wanted, str | bool | type(None)):
            assert got == wanted
        else:
            np.testing.assert_allclose(got, wanted, rtol=2e-4, atol=1e-5)


def test_the_class_sees_each_operation():
    def program(lib):
        log: list[str] = []
        two = two_tensor(lib, log)
        x = two(lib.ones(4, 3), lib.full((4, 3), 2.0))
        F = lib.nn.functional
        calls = (
            lambda: x + 1, lambda: 2 * x - 1, lambda: 1 / x, lambda: x > 0, lambda: x[0],
            lambda: x[:, 1], lambda: x.view(12), lambda: x.t(), lambda: lib.cat([x, x]),
            lambda: x.to(lib.float64), lambda: x.sum(0), lambda: x.max(1), lambda: x.unbind(0),
            lambda: x.chunk(2), lambda: F.softmax(x, 1), lambda: F.layer_norm(x, (3,)),
            lambda: x.float(), lambda: x.clone(), lambda: x.contiguous(), lambda: x.detach(),
            lambda: F.cross_entropy(x, lib.tensor([0, 1, 2, 0])), lambda: x.squeeze(),
            lambda: lib.where(x > 0, x, 0.0), lambda: x.norm(), lambda: x.var(),
            lambda: x @ lib.ones(3, 2), lambda: F.linear(lib.ones(2, 3), x), lambda: x.exp().log(),
            lambda: F.embedding(lib.tensor([0, 1]), x), lambda: lib.zeros_like(x),
            lambda: x.add_(x, alpha=2), lambda: x.mul_(2), lambda: x.new_zeros(2),
            lambda: x.abs().mean(), lambda: x[lib.tensor([0, 1])], lambda: x.topk(2),
        )  # fmt: skip
        found = []
        for call in calls:
            log.clear()
            result = call()
            results = result if isinstance(result, tuple | list) else [result]
            kinds = [type(each).__name__ for each in results]
            found.append((list(log), kinds, [tuple(each.shape) for each in results]))
        return found

    same(program)


def test_what_it_is():
    def program(lib):
        two = two_tensor(lib)
        x = two(lib.ones(4, 3), lib.ones(4, 3))
        tensors = x, x.t(), x.double(), lib.nn.Parameter(x), lib.nn.Parameter(x) * 2
        return [
            (
                type(t).__name__, tuple(t.shape), t.stride(), str(t.dtype), str(t.device), t.ndim,
                t.numel(), t.is_contiguous(), t.requires_grad, t.is_leaf, t.grad_fn is None,
                isinstance(t, lib.nn.Parameter), isinstance(t, lib.Tensor), t.layout is lib.strided,
            )
            for t in tensors
        ]  # fmt: skip

    same(program)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "RMSprop"])
def test_training_two_tensors(optimizer):
    def program(lib):
        two = two_tensor(lib)
        lib.manual_seed(0)
        layer, x = lib.nn.Linear(3, 4), lib.randn(5, 3)
        for name in ("weight", "bias"):
            p = getattr(layer, name).detach()
            setattr(layer, name, lib.nn.Parameter(two(p, p * 2)))
        steps = getattr(lib.optim, optimizer)(layer.parameters(), lr=0.05)
        losses = []
        for _ in range(4):
            steps.zero_grad()
            loss = layer(x).relu().pow(2).mean()
            loss.backward()
            steps.step()
            losses += [type(layer.weight.grad).__name__, loss.a.item(), loss.b.item()]
        return [*losses, layer.weight.a.tolist(), layer.weight.b.tolist(), layer.bias.b.tolist()]

    close(program)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
def test_training_quantized_weights(optimizer):
    def program(lib):
        kind, nn = quantized(lib), lib.nn
        lib.manual_seed(0)
        net, x = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)), lib.randn(3, 6)
        for layer in net[0], net[2]:
            layer.weight = nn.Parameter(kind.of(layer.weight.detach()))
        found = [net[0].weight.data_int8.tolist(), net(x).tolist()]
        steps = getattr(lib.optim, optimizer)(net.parameters(), lr=0.1)
        for _ in range(5):
            steps.zero_grad()
            loss = nn.functional.cross_entropy(net(x), lib.tensor([0, 1, 1]))
            loss.backward()
            steps.step()
            found += [loss.item(), type(net[0].weight.grad).__name__]
        twin = copy.deepcopy(net)
        frozen = nn.Parameter(kind.of(lib.ones(2, 3)), requires_grad=False)
        found += [
            type(twin[0].weight).__name__, twin[0].weight is net[0].weight, frozen.requires_grad,
            (twin(x) - net(x)).abs().max().item(),
            str([type(value).__name__ for value in net.state_dict().values()]),
        ]  # fmt: skip
        with lib.no_grad():
            for p in twin.parameters():
                p.copy_(lib.ones(p.shape))
        twin.load_state_dict(net.state_dict())
        return [*found, (twin(x) - net(x)).abs().max().item()]

    close(program)


def test_gradients_of_inputs_and_of_weights():
    def program(lib):
        kind = quantized(lib)
        lib.manual_seed(0)
        x, w = lib.randn(3, 6, requires_grad=True), kind.of(lib.randn(4, 6)).requires_grad_()
        lib.nn.functional.linear(x, w).pow(2).sum().backward()
        (g,) = lib.autograd.grad(lib.nn.functional.linear(x, w).pow(2).sum(), w)
        return [x.grad.tolist(), w.grad.tolist(), g.tolist(), type(g).__name__]

    close(program)


def test_a_class_with_slots():
    def program(lib):
        tree_map, log = module(lib, "utils._pytree").tree_map, []

        class Logging(lib.Tensor):
            elem: Any
            __slots__ = ["elem"]

            @staticmethod
            def __new__(cls, elem, requires_grad=False):
                self = lib.Tensor._make_wrapper_subclass(
                    cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(),
                    dtype=elem.dtype, layout=elem.layout, device=elem.device,
                    requires_grad=requires_grad,
                )  # fmt: skip
                self.elem = elem
                return self

            def __repr__(self):
                return f"Logging({self.elem})"

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                plain = lambda x: x.elem if isinstance(x, cls) else x
                wrap = lambda x: cls(x) if isinstance(x, lib.Tensor) else x
                log.append(func.__name__)
                return tree_map(wrap, func(*tree_map(plain, args), **tree_map(plain, kwargs or {})))

        x, y = Logging(lib.tensor([3.0]), True), Logging(lib.tensor([2.0]))
        out = (x * x * y).sum()
        (g,) = lib.autograd.grad(out, x)
        return repr(out), repr(g), [name for name in log if name != "detach.default"]

    same(program)


def test_subclasses_with_memory():
    def program(lib):
        KNOWN = {
            f"aten.{name}" for name in ("mul.Tensor", "relu.default", "add_.Tensor", "add.Tensor")
        }
        log: list[str] = []

        class Seen(lib.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                log.append(str(func))
                return super().__torch_dispatch__(func, types, args, kwargs)

        x = lib.Tensor._make_subclass(Seen, lib.arange(6.0).reshape(2, 3), True)
        y = (x * 2).relu().sum()
        y.backward()
        z = lib.ones(3).as_subclass(Seen)
        z.add_(2)
        return [
            type(x).__name__, x.requires_grad, type(y).__name__, y.item(), x.grad.tolist(),
            type(z).__name__, type(z + 1).__name__, (z + 1).tolist(),
            z.as_subclass(lib.Tensor).tolist(), float(z.sum()),
            [name for name in log if name in KNOWN],
        ]  # fmt: skip

    same(program)


def test_no_dispatch():
    def program(lib):
        class Counted(lib.Tensor):
            count = 0

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                cls.count += 1
                with module(lib, "utils._mode_utils").no_dispatch():
                    return func(*args, **(kwargs or {}))

        x = lib.Tensor._make_subclass(Counted, lib.ones(3))
        y = (x * 2).exp()
        return type(y).__name__, y.tolist(), Counted.count

    ours, theirs = map(program, LIBRARIES)
    assert ours[0] == theirs[0] and ours[2] == theirs[2]
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)


def test_modes_above_classes():
    def program(lib):
        two = two_tensor(lib)

        class Types(module(lib, "utils._python_dispatch").TorchDispatchMode):
            def __init__(self):
                super().__init__()
                self.seen = []

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.seen.append((str(func), [kind.__name__ for kind in types]))
                return func(*args, **(kwargs or {}))

        x = two(lib.ones(2, 3), lib.zeros(2, 3))
        with Types() as mode:
            result = lib.nn.functional.linear(lib.ones(4, 3), x)
        return mode.seen, type(result).__name__

    ours, theirs = map(program, LIBRARIES)
    assert ours[1] == theirs[1] == "Two"
    outer = [each for each in ours[0] if each[1]]
    assert outer == [each for each in theirs[0] if each[1]]


def test_what_a_class_is_made_of():
    def program(lib):
        python_dispatch = module(lib, "utils._python_dispatch")
        q = quantized(lib).of(lib.ones(2, 3))
        doubled = python_dispatch.transform_subclass(
            q, lambda name, part: part * 2 if name == "scale" else part
        )
        return [
            python_dispatch.is_traceable_wrapper_subclass(q),
            python_dispatch.is_traceable_wrapper_subclass(lib.ones(2)),
            type(doubled).__name__, doubled.dequantize().tolist(), tuple(doubled.shape),
        ]  # fmt: skip

    same(program)


def test_errors():
    def program(lib):
        class Declining(lib.Tensor):
            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return NotImplemented

        x = lib.Tensor._make_wrapper_subclass(Declining, (2,))
        with pytest.raises(TypeError, match="returned NotImplemented"):
            lib.exp(x)
        with pytest.raises(TypeError, match="Tensor must define __torch_dispatch__"):
            lib.Tensor._make_wrapper_subclass(lib.Tensor, (2,))
        two = two_tensor(lib)
        leaf = two(lib.ones(2), lib.ones(2)).requires_grad_()
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            leaf.add_(1)
        leaf.detach().add_(1)
        with lib.no_grad():
            leaf.mul_(2)
        return leaf.a.tolist()

    same(program)


def test_names_in_the_backward_pass():
    def program(lib):
        log: list[str] = []
        layer = lib.nn.Linear(3, 4)
        layer.weight = lib.nn.Parameter(two_tensor(lib, log)(lib.ones(4, 3), lib.ones(4, 3)))
        log.clear()
        layer(lib.ones(2, 3)).tanh().sum().backward()
        return sorted(name for name in log if name not in ("aten.detach.default", "aten.t.default"))

    same(program)


def test_plain_tensors_after_a_class():
    two = two_tensor(tlc)
    two(tlc.ones(2), tlc.ones(2)) + 1
    x = tlc.ones(3, requires_grad=True)
    with names(tlc) as mode_:
        (x.exp() * 2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.e, rtol=1e-6)
    assert "aten.exp.default" in mode_.seen
    layer = tlc.nn.Sequential(tlc.nn.Conv2d(1, 2, 3), tlc.nn.BatchNorm2d(2), tlc.nn.ReLU())
    layer(tlc.ones(1, 1, 5, 5)).sum().backward()
    assert layer[0].weight.grad.shape == (2, 1, 3, 3)
