"""Hooks of modules against PyTorch's: their order, what they see, what they may change."""

from __future__ import annotations

import copy

import pytest

import tensorflow_lite_clone as tlc
from tests.nn.against_torch import raises, same


def times(lib):
    class Times(lib.nn.Module):
        def forward(self, x, y=None, *, c=1):
            return x * 2 * c

    return Times()


def pair(lib):
    class Pair(lib.nn.Module):
        def forward(self, x, y=None):
            return x * 2, x * 3

    return Pair()


def failing(lib):
    class Failing(lib.nn.Module):
        def forward(self, x):
            raise ValueError("no")

    return Failing()


def leaf(lib, value=1.0):
    return lib.full((2,), value, requires_grad=True)


# -- forward ---------------------------------------------------------------------------------------


def test_order_and_arguments():
    def script(lib):
        seen = []
        m = times(lib)
        m.register_forward_pre_hook(lambda m, args: seen.append(("pre", args)))
        m.register_forward_pre_hook(lambda m, args: seen.append("first pre"), prepend=True)
        m.register_forward_pre_hook(lambda m, args, kwargs: (args, {"c": 5}), with_kwargs=True)
        m.register_forward_pre_hook(lambda m, args: args[0] + 1)
        m.register_forward_hook(lambda m, args, out: seen.append(("hook", args, out)))
        m.register_forward_hook(
            lambda m, args, kwargs, out: seen.append(("first hook", args, kwargs, out)),
            prepend=True,
            with_kwargs=True,
        )
        m.register_forward_hook(lambda m, args, out: out * 100)
        return m(leaf(lib), c=2).detach(), [
            tuple(detached(x) for x in item) if isinstance(item, tuple) else item for item in seen
        ]

    def detached(value):
        if isinstance(value, tuple):
            return tuple(detached(x) for x in value)
        return value.detach() if hasattr(value, "detach") else value

    same(script)


def test_pre_hook_results():
    for result in (3, (1, 2, 3), [4]):

        def with_kwargs(lib, result=result):
            m = times(lib)
            m.register_forward_pre_hook(lambda m, args, kwargs: result, with_kwargs=True)
            return m(lib.ones(2))

        def without(lib, result=result):
            m = times(lib)
            m.register_forward_pre_hook(lambda m, args: result)
            return m(lib.ones(2))

        raises(with_kwargs)
        same(without)


def test_always_called():
    def script(lib):
        seen = []
        m = failing(lib)

        def bad(m, args, out):
            raise KeyError("bad")

        m.register_forward_hook(lambda m, args, out: seen.append("not this"))
        m.register_forward_hook(lambda m, args, out: seen.append(("a", out)), always_call=True)
        m.register_forward_hook(
            lambda m, args, kwargs, out: seen.append(("b", args, kwargs, out)),
            always_call=True,
            with_kwargs=True,
        )
        m.register_forward_hook(bad, always_call=True)
        m.register_forward_hook(lambda m, args, out: seen.append(("c", out)), always_call=True)
        try:
            m(lib.ones(1))
        except ValueError as error:
            seen.append(str(error))

        m = times(lib)
        m.register_forward_hook(lambda m, args, out: seen.append(("d", out)), always_call=True)
        m.register_forward_hook(bad)
        m.register_forward_hook(lambda m, args, out: seen.append(("e", out)), always_call=True)
        try:
            m(lib.ones(1))
        except KeyError as error:
            seen.append(str(error))

        m = times(lib)
        m.register_forward_pre_hook(lambda m, args: bad(m, args, None))
        m.register_forward_hook(lambda m, args, out: seen.append(("f", out)), always_call=True)
        try:
            m(lib.ones(1))
        except KeyError as error:
            seen.append(str(error))
        return seen

    same(script)


def test_removal():
    def script(lib):
        seen = []
        m = times(lib)
        a = m.register_forward_hook(lambda m, args, out: seen.append("a"))
        with m.register_forward_hook(lambda m, args, out: seen.append("b"), always_call=True):
            m(lib.ones(1))
        m(lib.ones(1))
        a.remove()
        a.remove()
        m(lib.ones(1))
        m.register_forward_pre_hook(lambda m, args: seen.append("c"))
        m(lib.ones(1))
        return seen, len(m._forward_hooks), len(m._forward_pre_hooks)

    assert same(script)[0] == ["a", "b", "a", "c"]


def test_hooks_are_copied():
    m = times(tlc)
    m.register_forward_hook(lambda m, args, out: out + 1)
    other = copy.deepcopy(m)
    other.register_forward_hook(lambda m, args, out: out + 10)
    assert m(tlc.ones(1)).item() == 3
    assert other(tlc.ones(1)).item() == 13


@pytest.mark.usefixtures("flags_of_hooks")
def test_global_hooks():
    def script(lib):
        seen = []
        module = lib.nn.modules.module
        m = lib.nn.Sequential(times(lib))
        m[0].register_forward_hook(lambda m, args, out: seen.append("own hook"))
        m[0].register_forward_pre_hook(lambda m, args: seen.append("own pre hook"))
        m[0].register_full_backward_hook(lambda m, gi, go: seen.append("own backward"))
        m[0].register_full_backward_pre_hook(lambda m, go: seen.append("own backward pre"))

        def note(name):
            return lambda m, *args: seen.append((name, type(m).__name__))

        handles = [
            module.register_module_forward_pre_hook(note("pre")),
            module.register_module_forward_hook(note("hook")),
            module.register_module_forward_hook(note("with kwargs"), with_kwargs=True),
            module.register_module_full_backward_hook(note("backward")),
            module.register_module_full_backward_pre_hook(note("backward pre")),
        ]
        m(leaf(lib)).sum().backward()
        for handle in handles:
            handle.remove()
        m(leaf(lib)).sum().backward()
        with module.register_module_forward_hook(note("always"), always_call=True):
            try:
                failing(lib)(3)
            except ValueError:
                seen.append("raised")
        return seen

    same(script)


def test_registration_hooks():
    def script(lib):
        seen = []
        module = lib.nn.modules.module
        handles = [
            module.register_module_parameter_registration_hook(
                lambda m, name, p: seen.append(("parameter", name, p is None))
            ),
            module.register_module_buffer_registration_hook(
                lambda m, name, b: seen.append(("buffer", name, b is None))
            ),
            module.register_module_module_registration_hook(
                lambda m, name, child: seen.append(("module", name, child is None))
            ),
        ]
        try:
            m = lib.nn.Module()
            m.weight = lib.nn.Parameter(lib.ones(1))
            m.weight = lib.nn.Parameter(lib.ones(1))
            m.register_parameter("bias", None)
            m.register_buffer("mean", lib.ones(1))
            m.mean = lib.zeros(1)
            m.mean = None
            m.mean = lib.nn.Buffer(lib.zeros(1))
            m.child = lib.nn.Sequential()
            m.child = None
            m.add_module("other", lib.nn.Sequential(lib.nn.Sequential()))
        finally:
            for handle in handles:
                handle.remove()

        double = lambda m, name, p: lib.nn.Parameter(p.data * 2)  # noqa: E731
        with module.register_module_parameter_registration_hook(double):
            m.third = lib.nn.Parameter(lib.ones(1))
        return seen, m.third

    same(script)


# -- backward --------------------------------------------------------------------------------------


def test_gradients_seen():
    def script(lib):
        seen = []
        m = times(lib)
        m.register_full_backward_pre_hook(lambda m, go: seen.append(("pre", go)))
        m.register_full_backward_hook(lambda m, gi, go: seen.append(("hook", gi, go)))
        m.register_full_backward_hook(lambda m, gi, go: seen.append("first"), prepend=True)
        m.register_full_backward_pre_hook(lambda m, go: seen.append("first pre"), prepend=True)
        x, y = leaf(lib), leaf(lib, 3.0)
        m(x, c=3).sum().backward()
        m(x, y).sum().backward()
        m(x, "text").sum().backward()
        m(x, lib.ones(1)).sum().backward()
        with lib.no_grad():
            m(x)
        return seen, x.grad, y.grad

    same(script)


def test_several_outputs():
    def script(lib):
        seen = []
        m = pair(lib)
        m.register_full_backward_pre_hook(lambda m, go: seen.append(("pre", go)))
        m.register_full_backward_hook(lambda m, gi, go: seen.append(("hook", gi, go)))
        x = leaf(lib)
        first, second = m(x)
        first.sum().backward(retain_graph=True)
        (first.sum() + second.sum()).backward()
        return seen, x.grad

    same(script)


def test_replaced_gradients():
    def script(lib):
        m = times(lib)
        m.register_full_backward_pre_hook(lambda m, go: (go[0] * 7,))
        m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
        x = leaf(lib)
        m(x).sum().backward()
        nothing = times(lib)
        nothing.register_full_backward_hook(lambda m, gi, go: (None,))
        y = leaf(lib)
        nothing(y).sum().backward()
        return x.grad, y.grad

    same(script)


def test_wrong_number_of_gradients():
    def hook(lib):
        m = times(lib)
        m.register_full_backward_hook(lambda m, gi, go: (gi[0], gi[0]))
        m(leaf(lib)).sum().backward()

    def pre_hook(lib):
        m = times(lib)
        m.register_full_backward_pre_hook(lambda m, go: (go[0], go[0]))
        m(leaf(lib)).sum().backward()

    raises(hook)
    raises(pre_hook)


def test_inputs_without_gradient():
    def scaled(lib):
        class Scaled(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = lib.nn.Parameter(lib.ones(2))

            def forward(self, x):
                return x * self.weight

        return Scaled()

    def script(lib):
        seen = []
        m = scaled(lib)
        m.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
        m.register_full_backward_hook(lambda m, gi, go: gi)
        m(lib.ones(2)).sum().backward()
        return seen, m.weight.grad

    def refused(lib):
        m = scaled(lib)
        m.register_full_backward_hook(lambda m, gi, go: go)
        m(lib.ones(2)).sum().backward()

    same(script)
    raises(refused)


def test_outputs_that_are_no_tensors():
    for wrap in (lambda x: [x], lambda x: {"x": x}, lambda x: "text"):

        def script(lib, wrap=wrap):
            class Wrapping(lib.nn.Module):
                def forward(self, x):
                    return wrap(x)

            seen = []
            m = Wrapping()
            m.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
            m(leaf(lib))
            return seen

        same(script)


def test_second_order_goes_through():
    def script(lib):
        m = times(lib)
        m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 3,))
        x = leaf(lib)
        y = (m(x) ** 2).sum()
        (gx,) = lib.autograd.grad(y, x, create_graph=True)
        (gxx,) = lib.autograd.grad(gx.sum(), x)
        return gx.detach(), gxx

    same(script)


def test_regular_and_full_hooks_do_not_mix():
    def full_first(lib):
        m = times(lib)
        m.register_full_backward_hook(lambda *args: None)
        m.register_backward_hook(lambda *args: None)

    def regular_first(lib):
        m = times(lib)
        m.register_backward_hook(lambda *args: None)
        m.register_full_backward_hook(lambda *args: None)

    raises(full_first)
    raises(regular_first)
