"""Hooks on tensors, on nodes, on leaves after accumulation, and on saved values."""

from __future__ import annotations

import gc
import weakref

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same


def vector(lib, *values):
    return lib.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


# -- on tensors ------------------------------------------------------------------------------------


def test_order_and_replacement():
    def script(lib):
        x = vector(lib)
        h = x * 2
        seen = []
        h.register_hook(lambda g: seen.append(("first", g.clone())))
        h.register_hook(lambda g: g * 10)
        h.register_hook(lambda g: seen.append(("third", g.clone())))
        h.sum().backward()
        return seen, x.grad

    same(script)


def test_on_leaves():
    def script(lib):
        x = vector(lib)
        seen = []
        x.register_hook(lambda g: seen.append(g.clone()))
        x.register_hook(lambda g: g + 1)
        (x * x + x).sum().backward()  # called once, with the sum
        (x * 1).sum().backward()
        return seen, x.grad, lib.autograd.grad((x * 3).sum(), x)

    same(script)


def test_removal():
    def script(lib):
        x = vector(lib)
        seen = []
        handle = x.register_hook(lambda g: seen.append(1))
        with x.register_hook(lambda g: seen.append(2)):
            x.sum().backward()
        x.sum().backward()
        handle.remove()
        handle.remove()
        x.sum().backward()
        return seen

    same(script)


def test_same_hook_twice():
    def script(lib):
        x = vector(lib)
        seen = []

        def hook(g):
            seen.append(1)

        first, second = x.register_hook(hook), x.register_hook(hook)
        x.sum().backward()
        second.remove()
        x.sum().backward()
        first.remove()
        x.sum().backward()
        return seen, first.id != second.id

    same(script)


def test_removed_while_running():
    def script(lib):
        x = vector(lib)
        seen = []
        handles = []

        def hook(g):
            seen.append(1)
            handles[0].remove()

        handles.append(x.register_hook(hook))
        x.register_hook(lambda g: seen.append(2))
        x.sum().backward()
        x.sum().backward()
        return seen

    same(script)


@parameterized.expand(
    [
        ("number", lambda lib, g: 3.0),
        ("size", lambda lib, g: lib.ones(5)),
        ("dtype", lambda lib, g: g.double()),
        ("more elements", lambda lib, g: lib.ones(2, 3)),
        ("raises", lambda lib, g: 1 // 0),
        ("in place", lambda lib, g: g.clone().mul_(5)),
        ("zero-dim", lambda lib, g: lib.tensor(2.0)),
    ]
)
def test_results(name, result):
    def script(lib):
        x = vector(lib)
        h = x * 2

        def hook(g):
            return result(lib, g)

        h.register_hook(hook)
        h.sum().backward()
        return x.grad

    same(script, words=("expected Variable", "has changed the", "zero"))


def test_registration_is_refused():
    raises(lambda lib: lib.ones(2).register_hook(print))
    raises(lambda lib: lib.ones(2).register_post_accumulate_grad_hook(print))
    raises(lambda lib: (vector(lib) * 2).register_post_accumulate_grad_hook(print))
    raises(lambda lib: lib.ones(2).retain_grad())


def test_retain_grad():
    def script(lib):
        x = vector(lib)
        h = x * 2
        seen = [h.retains_grad]
        h.retain_grad()
        h.retain_grad()
        x.retain_grad()
        seen += [h.retains_grad, x.retains_grad]
        y = (h * h).sum()
        y.backward(retain_graph=True)
        seen.append(h.grad.clone())
        y.backward()
        return seen, h.grad, x.grad

    same(script)


def test_retain_grad_sees_what_hooks_made():
    def script(lib):
        x = vector(lib)
        h = x * 2
        h.register_hook(lambda g: g * 10)
        h.retain_grad()
        h.register_hook(lambda g: g + 1)
        h.sum().backward()
        return h.grad, x.grad

    same(script)


def test_retain_grad_with_create_graph():
    def script(lib):
        x = vector(lib)
        h = x * x
        h.retain_grad()
        (h * h).sum().backward(create_graph=True)
        return h.grad, lib.autograd.grad(h.grad.sum(), x)

    same(script, warned=False)


def test_hooks_with_grad():
    def script(lib):
        x = vector(lib)
        h = x * 2
        seen = []
        h.register_hook(lambda g: g * 10)
        x.register_hook(lambda g: seen.append(g.clone()))
        first = lib.autograd.grad((h * h).sum(), [h, x], retain_graph=True)
        return first, seen, x.grad

    same(script)


def test_recorded_hooks():
    def script(lib):
        x = vector(lib)
        h = x * x
        seen = []
        h.register_hook(lambda g: seen.append(g.requires_grad))
        h.register_hook(lambda g: g * x)
        (g,) = lib.autograd.grad((h * h).sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x), seen

    same(script)


def test_hooks_run_without_a_graph():
    def script(lib):
        x = vector(lib)
        seen = []
        x.register_hook(lambda g: seen.append((lib.is_grad_enabled(), (g * 2).requires_grad)))
        x.sum().backward()
        x.sum().backward(create_graph=True)
        return seen

    same(script, warned=False)


def test_hooks_and_writes():
    def script(lib):
        x = vector(lib)
        h = x * 1
        seen = []
        h.register_hook(lambda g: seen.append(("before", g.clone())))
        h.mul_(3)
        h.register_hook(lambda g: seen.append(("after", g.clone())))
        (h * 1).sum().backward()
        return seen, x.grad

    same(script)


def test_retain_grad_and_writes():
    def script(lib):
        x = vector(lib)
        h = x * 1
        h.retain_grad()
        h.mul_(3)
        (h * 2).sum().backward()
        return h.grad, x.grad

    same(script)


def test_hooks_of_outputs_with_several():
    def script(lib):
        x = lib.arange(6.0).reshape(2, 3).requires_grad_()
        first, second = x.unbind(0)
        seen = []
        first.register_hook(lambda g: seen.append(("first", g.clone())))
        second.register_hook(lambda g: g * 7)
        (first * second).sum().backward()
        first, second = x.unbind(0)
        first.register_hook(lambda g: seen.append("never"))
        second.sum().backward()
        return seen, x.grad

    same(script)


def test_hooks_keep_nothing_alive():
    x = tlc.ones(2, requires_grad=True)
    h = x * 2
    h.retain_grad()
    h.register_hook(lambda g: g)
    alive = weakref.ref(h)
    gc.disable()
    try:
        del h
        assert alive() is None
    finally:
        gc.enable()


def test_the_given_gradient_is_left_alone():
    def script(lib):
        x = vector(lib)
        v = lib.ones(3)
        x.register_hook(lambda g: None)
        (x * 1).backward(v)
        return x.grad, v

    same(script)


# -- after accumulation ----------------------------------------------------------------------------


def test_post_accumulate():
    def script(lib):
        x = vector(lib)
        seen = []
        first = x.register_post_accumulate_grad_hook(
            lambda t: seen.append((t is x, t.grad.clone()))
        )
        x.register_hook(lambda g: seen.append("before"))
        (x * x).sum().backward()
        (x * x).sum().backward()
        first.remove()

        def step(t):
            t.data -= 0.1 * t.grad
            t.grad = None

        x.register_post_accumulate_grad_hook(step)
        (x * x).sum().backward()
        return seen, x, x.grad

    same(script)


def test_post_accumulate_result_and_grad():
    def script(lib):
        x = vector(lib)
        seen = []
        x.register_post_accumulate_grad_hook(lambda t: seen.append(1))
        lib.autograd.grad(x.sum(), x)
        x.sum().backward(inputs=[x])
        y = vector(lib)
        y.register_post_accumulate_grad_hook(lambda t: t)
        return seen, attempt(y.sum().backward)

    same(script)


# -- on nodes --------------------------------------------------------------------------------------


def test_node_hooks():
    def script(lib):
        x, y = vector(lib), vector(lib)
        z = x * y
        seen = []
        z.grad_fn.register_hook(lambda gins, gouts: seen.append((gins, gouts)))
        handle = z.grad_fn.register_hook(lambda gins, gouts: (gins[0] * 10, None))
        z.grad_fn.register_prehook(lambda gouts: (gouts[0] + 1,))
        z.sum().backward(retain_graph=True)
        seen.append((x.grad.clone(), y.grad))
        handle.remove()
        z.sum().backward()
        return seen, x.grad, y.grad

    same(script)


def test_node_hooks_of_leaves():
    def script(lib):
        x = vector(lib)
        leaf = x.view_as(x).grad_fn.next_functions[0][0]
        seen = []
        leaf.register_hook(lambda gins, gouts: seen.append((gins, gouts, x.grad.clone())))
        leaf.register_prehook(lambda gouts: (gouts[0] * 2,))
        (x * 3).sum().backward()
        return seen, x.grad

    same(script)


def test_node_hook_on_unwanted_inputs():
    def script(lib):
        x, y = vector(lib), lib.ones(3)
        z = x * y
        seen = []
        z.grad_fn.register_hook(lambda gins, gouts: seen.append((gins, gouts)))
        z.sum().backward()
        return seen

    same(script)


def test_node_hooks_of_several_outputs():
    def script(lib):
        x = lib.arange(6.0).reshape(2, 3).requires_grad_()
        first, second = x.unbind(0)
        seen = []
        first.grad_fn.register_hook(lambda gins, gouts: seen.append((gins, gouts)))
        first.grad_fn.register_prehook(lambda gouts: seen.append(gouts))
        second.sum().backward()
        return seen, x.grad

    same(script)


def test_hook_order_at_one_node():
    def script(lib):
        x = vector(lib)
        z = x * 2
        seen = []
        z.grad_fn.register_hook(lambda a, b: seen.append("node"))
        z.grad_fn.register_prehook(lambda a: seen.append("pre"))
        z.register_hook(lambda g: seen.append("tensor"))
        z.retain_grad()
        z.sum().backward()
        return seen

    same(script)


@parameterized.expand(
    [
        ("one for two", lambda g: (g[0],)),
        ("number", lambda g: (1.0, 2.0)),
        ("list", lambda g: [g[0], g[1]]),
        ("tensor", lambda g: g[0]),
    ]
)
def test_node_hook_results(name, result):
    def script(lib):
        x, y = vector(lib), vector(lib)
        z = x * y
        z.grad_fn.register_hook(lambda gins, gouts: result(gins))
        z.sum().backward()
        return x.grad, y.grad

    same(script, words=("hook", "expected"))


def test_multi_grad_hook():
    def script(lib):
        x, y, unused = vector(lib), vector(lib), vector(lib)
        seen = []
        register = lib.autograd.graph.register_multi_grad_hook
        handle = register((x, y, unused), lambda grads: seen.append(("all", grads)))
        first = register((x, y), lambda g: seen.append(("any", g)), mode="any")
        (x * y).sum().backward()
        seen.append("next")
        x.sum().backward()
        handle.remove()
        first.remove()
        (x * y).sum().backward()
        return seen, attempt(register, (x,), print, mode="none")

    same(script)


WITH_PLACES_OF_THEIR_OWN = {
    "mean": lambda lib, x: x.mean(),
    "mean of rows": lambda lib, x: x.mean((0, 3)).sum(),
    "nanmean": lambda lib, x: x.nanmean(1).sum(),
    "avg_pool2d": lambda lib, x: lib.nn.functional.avg_pool2d(x, 3).sum(),
    "avg_pool2d of rows": lambda lib, x: lib.nn.functional.avg_pool2d(x, (1, 3)).sum(),
    "adaptive_avg_pool2d": lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1).sum(),
}


@pytest.mark.parametrize("name", WITH_PLACES_OF_THEIR_OWN)
def test_gradients_of_means_may_be_written_to(name):
    """By hooks, and where `grad` gives them; that of `sum` is expanded, as it is in PyTorch."""

    def script(lib):
        x = lib.arange(54.0).view(2, 3, 3, 3).requires_grad_()
        y = x * 1
        y.register_hook(lambda g: g.mul_(2))
        (g,) = lib.autograd.grad(WITH_PLACES_OF_THEIR_OWN[name](lib, y), y)
        return g.add_(1), g.stride()

    same(script)
