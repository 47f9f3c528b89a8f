"""`utils.checkpoint` against PyTorch's, and what it is for: fewer values kept."""

from __future__ import annotations

import gc
import weakref

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.nn
import tensorflow_lite_clone.utils.checkpoint
from tests.autograd.against_torch import attempt, raises, same
from tests.device import DEVICE

FORMS = [("not reentrant", False), ("reentrant", True)]


def vector(lib, *values):
    return lib.tensor(values or (0.5, 1.0, 2.0), requires_grad=True)


def checkpoint(lib, *args, **kwargs):
    return lib.utils.checkpoint.checkpoint(*args, **kwargs)


@parameterized.expand(FORMS)
def test_values_and_gradients(name, reentrant):
    def script(lib):
        x, w = vector(lib), vector(lib)
        calls = []

        def f(x, factor):
            calls.append(lib.is_grad_enabled())
            return (x * w).exp().sin() * factor, x * 2

        y, z = checkpoint(lib, f, x * 1, 3, use_reentrant=reentrant)
        (y.sum() + (z * z).sum()).backward()
        return y, x.grad, w.grad, calls

    same(script)


@parameterized.expand(FORMS)
def test_dropout_is_replayed(name, reentrant):
    def script(lib):
        lib.manual_seed(3)
        x = lib.ones(50, requires_grad=True)
        y = checkpoint(
            lib, lambda x: lib.nn.functional.dropout(x * x, 0.5), x, use_reentrant=reentrant
        )
        lib.rand(5)
        before = lib.get_rng_state()
        y.sum().backward()
        return lib.equal(x.grad, 2 * y.detach()), lib.equal(before, lib.get_rng_state()), y

    same(script)


@parameterized.expand(FORMS)
def test_dropout_is_drawn_anew_if_asked(name, reentrant):
    def script(lib):
        lib.manual_seed(3)
        x = lib.ones(50, requires_grad=True)
        y = checkpoint(
            lib,
            lambda x: lib.nn.functional.dropout(x * x, 0.5),
            x,
            use_reentrant=reentrant,
            preserve_rng_state=False,
        )
        y.sum().backward()
        return lib.equal(x.grad, 2 * y.detach()), x.grad

    same(script)


def test_keywords():
    def script(lib):
        x = vector(lib)

        def f(x, *, factor, other=None):
            return x * x * factor * other

        y = checkpoint(lib, f, x, factor=3, other=x, use_reentrant=False)
        y.sum().backward()
        refused = attempt(lambda: checkpoint(lib, f, x, factor=3, other=x, use_reentrant=True))
        return y, x.grad, refused

    same(script)


@parameterized.expand(FORMS)
def test_nested(name, reentrant):
    def script(lib):
        x = vector(lib)
        calls = []

        def inner(x):
            calls.append("inner")
            return (x * x).sin()

        def outer(x):
            calls.append("outer")
            return checkpoint(lib, inner, x.exp(), use_reentrant=reentrant) * x

        checkpoint(lib, outer, x, use_reentrant=reentrant).sum().backward()
        return x.grad, calls

    same(script, rtol=1e-4, warned=False)


@parameterized.expand(FORMS)
def test_several_in_a_row(name, reentrant):
    def script(lib):
        lib.manual_seed(0)
        layers = [lib.nn.Linear(4, 4) for _ in range(3)]
        x = lib.rand(2, 4, requires_grad=True)
        h = x
        for layer in layers:
            h = checkpoint(lib, lambda h, layer=layer: layer(h).relu(), h, use_reentrant=reentrant)
        h.sum().backward()
        return x.grad, [layer.weight.grad for layer in layers], layers[0].bias.grad

    same(script)


def test_second_order():
    def script(lib):
        x = vector(lib)
        y = checkpoint(lib, lambda x: x.exp() * x.sin(), x, use_reentrant=False)
        (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x)

    same(script)


@parameterized.expand(FORMS)
def test_grad_and_retain_graph(name, reentrant):
    def script(lib):
        x = vector(lib)
        y = checkpoint(lib, lambda x: x.exp() * x, x, use_reentrant=reentrant).sum()
        y.backward(retain_graph=True)
        y.backward()
        return x.grad, attempt(y.backward) is not None

    same(script)


def test_autograd_grad():
    def script(lib):
        x = vector(lib)
        calls = []

        def f(x):
            calls.append(1)
            return x.exp() * x

        y = checkpoint(lib, f, x, use_reentrant=False).sum()
        return lib.autograd.grad(y, x), len(calls)

    same(script)


def test_without_gradients():
    def script(lib):
        calls = []

        def f(x):
            calls.append(lib.is_grad_enabled())
            return x * 2

        with lib.no_grad():
            y = checkpoint(lib, f, vector(lib), use_reentrant=False)
            z = checkpoint(lib, f, vector(lib), use_reentrant=True)
        fixed = checkpoint(lib, f, lib.ones(2), use_reentrant=False)
        return y, z, fixed, calls

    same(script)


def test_warnings():
    def script(lib):
        x = vector(lib)
        checkpoint(lib, lambda x: x * 2, x)
        return checkpoint(lib, lambda x: x * 2, lib.ones(2), use_reentrant=True).requires_grad

    same(script, words=("use_reentrant", "None of the inputs have requires_grad=True"))


@parameterized.expand(
    [
        ("fewer", lambda lib, x, first: x.exp() if first else x + 2),
        ("more", lambda lib, x, first: x + 1 if first else x.exp().sin()),
        ("another shape", lambda lib, x, first: (x if first else x[:2]).exp().sum()),
        ("another dtype", lambda lib, x, first: (x if first else x.double()).exp().sum()),
    ]
)
def test_another_recomputation_is_noticed(name, f):
    def script(lib):
        x = vector(lib)
        calls = []

        def function(x):
            calls.append(1)
            return f(lib, x, len(calls) == 1)

        y = checkpoint(lib, function, x, use_reentrant=False)
        return attempt(y.sum().backward), x.grad

    same(
        script,
        words=(
            "A different number of tensors was saved during the original forward",
            "Recomputed values for the following tensors have different metadata",
        ),
    )


def test_the_error_has_a_name():
    def script(lib):
        module = lib.utils.checkpoint
        return issubclass(module.CheckpointError, RuntimeError)

    same(script)


def test_errors_inside():
    def script(lib):
        def f(x):
            raise KeyError("mine")

        checkpoint(lib, f, vector(lib), use_reentrant=False)

    raises(script)


def test_context_functions():
    def script(lib):
        seen = []

        class Note:
            def __init__(self, name):
                self.name = name

            def __enter__(self):
                seen.append(("enter", self.name))

            def __exit__(self, *exception):
                seen.append(("exit", self.name))

        x = vector(lib)
        y = checkpoint(
            lib,
            lambda x: x.exp(),
            x,
            use_reentrant=False,
            context_fn=lambda: (Note("forward"), Note("again")),
        )
        y.sum().backward()
        return seen, x.grad

    same(script)


def test_early_stop():
    def script(lib):
        seen = []
        for early in (True, False):
            calls = []

            def f(x, calls=calls):
                y = x.exp()
                calls.append("middle")
                y = y + 1
                calls.append("end")
                return y

            with lib.utils.checkpoint.set_checkpoint_early_stop(early):
                x = vector(lib)
                checkpoint(lib, f, x, use_reentrant=False).sum().backward()
            seen.append((calls, x.grad))
        return seen

    same(script)


@parameterized.expand(FORMS)
def test_sequences(name, reentrant):
    def script(lib):
        lib.manual_seed(0)
        model = lib.nn.Sequential(*[lib.nn.Linear(3, 3) for _ in range(5)])
        x = lib.rand(2, 3, requires_grad=True)
        sequential = lib.utils.checkpoint.checkpoint_sequential
        y = sequential(model, 2, x, use_reentrant=reentrant)
        y.sum().backward()
        z = sequential([lambda x: x * 2, lambda x: x.exp()], 2, x, use_reentrant=reentrant)
        return y, x.grad, [p.grad for p in model.parameters()], z

    same(script)


def test_reentrant_with_grad():
    def script(lib):
        x = vector(lib)
        y = checkpoint(lib, lambda x: x * x, x, use_reentrant=True)
        return lib.autograd.grad(y.sum(), x)

    same(script, words=("torch.utils.checkpoint is incompatible", "use_reentrant"))


@pytest.mark.skipif(DEVICE != "cpu", reason="the device's arrays have no weak references")
def test_values_are_not_kept():
    alive = []

    def f(x):
        h = x.exp()
        alive.append(weakref.ref(h._storage.array))
        return h.sin()

    for reentrant in (False, True):
        x = tlc.ones(3, requires_grad=True)
        y = tlc.utils.checkpoint.checkpoint(f, x, use_reentrant=reentrant)
        gc.collect()
        assert alive[-1]() is None
        y.sum().backward()
        assert x.grad is not None


@parameterized.expand(
    [
        (f"{kind} {name}", kind, reentrant)
        for kind in ("BatchNorm1d", "InstanceNorm1d")
        for name, reentrant in FORMS
    ]
)
def test_modules_with_buffers(name, kind, reentrant):
    """The running statistics are moved by both runs, though the second stops after its norm."""

    def script(lib):
        lib.manual_seed(0)
        norm = getattr(lib.nn, kind)(3, affine=True, track_running_stats=True)
        x = lib.rand(4, 3, 2, requires_grad=True)
        checkpoint(lib, norm, x, use_reentrant=reentrant).pow(2).sum().backward()
        return x.grad, norm.weight.grad, dict(norm.named_buffers())

    same(script, rtol=1e-4, atol=1e-5)


def test_views_and_writes_inside():
    def script(lib):
        x = vector(lib)

        def f(x):
            h = x * 1
            h[1:].mul_(x[:2])
            return h.view(3, 1).relu_().sum(1)

        checkpoint(lib, f, x, use_reentrant=False).sum().backward()
        return x.grad

    same(script)
