"""Hooks on saved values."""

from __future__ import annotations

import weakref

import pytest

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same


def vector(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


# -- on saved values -------------------------------------------------------------------------------


def test_saved_tensors_hooks():
    def script(lib):
        x, y = vector(lib), vector(lib)
        packed, unpacked = [], []

        def pack(t):
            packed.append(t.detach().clone())
            return len(packed) - 1

        def unpack(number):
            unpacked.append(number)
            return packed[number] * 2

        with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
            z = x * y
        w = z * z
        w.sum().backward()
        return packed, unpacked, x.grad, y.grad

    same(script)


def test_saved_outputs_are_packed():
    def script(lib):
        x = vector(lib)
        seen = []
        with lib.autograd.graph.saved_tensors_hooks(
            lambda t: seen.append(t.detach()) or t, lambda t: t
        ):
            y = x.exp()
        y.sum().backward()
        return seen, x.grad

    same(script)


def test_saved_hooks_nest():
    def script(lib):
        x = vector(lib)
        seen = []

        def hooks(name):
            return lib.autograd.graph.saved_tensors_hooks(
                lambda t: seen.append(name) or t, lambda t: t
            )

        with hooks("outer"):
            x * x
            with hooks("inner"):
                x.exp()
            x.sin()
        x.exp()
        return seen

    same(script)


def test_saved_hooks_unpack_what_is_no_tensor():
    def script(lib):
        x = vector(lib)
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
            y = (x * x).sum()
        y.backward()

    raises(script, "unpack_hook expected to be a Tensor")


def test_saved_hooks_and_second_order():
    def script(lib):
        x = vector(lib)
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            y = (x.exp() * x).sum()
            (g,) = lib.autograd.grad(y, x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x)

    same(script)


def test_saved_hooks_of_functions():
    def script(lib):
        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                return 2 * g * ctx.saved_tensors[0]

        x = vector(lib)
        seen = []
        with lib.autograd.graph.saved_tensors_hooks(
            lambda t: seen.append(t.detach().clone()) or t * 1, lambda t: t * 100
        ):
            y = Square.apply(x)
        y.sum().backward()
        return x.grad, seen

    same(script)


def test_saved_tensors_by_their_older_name():
    def script(lib):
        class Exponential(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x.exp()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                with pytest.warns(DeprecationWarning, match="use 'saved_tensors'"):
                    return g * ctx.saved_variables[0]

        x = vector(lib)
        Exponential.apply(x).sum().backward()
        return x.grad

    same(script)


def test_save_on_cpu():
    def script(lib):
        x = vector(lib)
        with lib.autograd.graph.save_on_cpu():
            y = (x * x.exp()).sum()
        y.backward()
        return x.grad

    same(script)


def test_disabled_hooks():
    def script(lib):
        graph = lib.autograd.graph
        x = vector(lib)

        def enter():
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                return (x * x).sum()

        with graph.disable_saved_tensors_hooks("not here"):
            refused = attempt(enter)
        return refused, enter().item()

    same(script)


def test_saved_hooks_end_with_an_error():
    with pytest.raises(KeyError), tlc.autograd.graph.saved_tensors_hooks(id, id):
        raise KeyError
    x = vector(tlc)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 4, 6]


def test_freed_saved_values():
    """Values are freed node by node, while backward runs."""
    x = tlc.ones(3, requires_grad=True)
    y = x.exp()
    alive = []
    x.register_hook(lambda g: alive.append(reference() is not None))
    reference = weakref.ref(y._storage.array) if tlc.tensor(1).is_cpu else lambda: None
    z = y.sum()
    del y
    z.backward()
    del z
    assert alive == [False]


def test_hooks_outlive_freezing():
    def script(lib):
        x = vector(lib)
        seen = []
        x.register_hook(lambda g: seen.append("hook"))
        x.register_post_accumulate_grad_hook(lambda t: seen.append("post"))
        x.requires_grad_(False)
        x.requires_grad_(True)
        x.sum().backward()
        return seen

    same(script)
