"""`backward` and `grad`: what they compute, keep, free, share and refuse."""

from __future__ import annotations

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch import table
from tests.autograd.against_torch import attempt, raises, same


def vector(lib, *values, dtype=None, grad=True):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=grad)


# -- backward --------------------------------------------------------------------------------------


def test_accumulates():
    def script(lib):
        x = vector(lib)
        seen = []
        for factor in (1, 2):
            (x * x * factor).sum().backward()
            seen.append(x.grad.clone())
        kept = x.grad
        (x * 3).sum().backward()
        return seen, kept, kept is x.grad, x.grad

    same(script)


def test_accumulates_in_place_unless_create_graph():
    def script(lib):
        x = vector(lib)
        (x * x).sum().backward()
        first = x.grad
        (x * x).sum().backward(create_graph=True)
        second = x.grad
        (x * x).sum().backward()
        return first, second, first is second, x.grad is second, x.grad

    same(script, warned=False)  # PyTorch warns of a reference cycle, which we do not make


def test_grad_outputs():
    def script(lib):
        x = vector(lib)
        y = x * x
        y.backward(lib.tensor([1.0, 10.0, 100.0]), retain_graph=True)
        y.backward(gradient=lib.ones(3), retain_graph=True)
        lib.autograd.backward([y, x * 2], [lib.ones(3), lib.ones(3) * 1000])
        return x.grad

    same(script)


def test_several_roots():
    def script(lib):
        x, y = vector(lib), vector(lib)
        a, b = (x * y).sum(), (x + y).sum()
        lib.autograd.backward([a, b])
        c = x * 1
        lib.autograd.backward([c, c, x], [lib.ones(3)] * 3)
        return x.grad, y.grad

    same(script)


@parameterized.expand(
    [
        ("not scalar", lambda lib: (vector(lib) * 2).backward()),
        ("no graph", lambda lib: lib.ones(1).backward()),
        ("no graph, with gradient", lambda lib: lib.ones(2).backward(lib.ones(2))),
        ("several", lambda lib: lib.autograd.backward([vector(lib).sum(), lib.ones(1)])),
        ("wrong shape", lambda lib: (vector(lib) * 2).backward(lib.ones(2))),
        ("broadcastable shape", lambda lib: (vector(lib) * 2).backward(lib.ones(1))),
        (
            "lengths",
            lambda lib: lib.autograd.backward([vector(lib), vector(lib)], [lib.ones(3)]),
        ),
        ("complex scalar", lambda lib: lib.tensor(1 + 1j, requires_grad=True).backward()),
        ("integers", lambda lib: lib.tensor(1).backward()),
        ("no inputs", lambda lib: vector(lib).sum().backward(inputs=[])),
    ]
)
def test_refused(name, script):
    raises(script)


def test_the_real_part_of_a_gradient_is_no_view_of_it():
    def script(lib):
        x, z = vector(lib), vector(lib, 1j, 2.0, 3j)
        g = lib.tensor([1 + 2j, 3 + 4j, 5 + 6j])
        ((x + z) + x).backward(g)
        x.grad.zero_()
        return g, x.grad, z.grad

    same(script)


def test_refused_gradients_of_grad():
    raises(lambda lib: lib.autograd.grad(vector(lib) * 2, vector(lib)))
    raises(lambda lib: lib.autograd.grad(vector(lib).sum(), vector(lib)))
    raises(lambda lib: lib.autograd.grad(vector(lib).sum(), lib.ones(3)))
    raises(lambda lib: lib.autograd.grad(lib.ones(()), vector(lib)))

    def conflicting(lib):
        x = vector(lib)
        return lib.autograd.grad(x.sum(), vector(lib), allow_unused=False, materialize_grads=True)

    raises(conflicting)


def test_second_backward():
    def twice(lib, f):
        y = f(vector(lib)).sum()
        y.backward()
        return attempt(y.backward)

    raises(lambda lib: twice(lib, lambda x: x * x))
    raises(lambda lib: twice(lib, lambda x: x.exp()))
    same(lambda lib: twice(lib, lambda x: x + x))  # saves nothing, so it may run again


def test_second_backward_through_a_shared_part():
    def script(lib):
        x = vector(lib)
        shared = x.exp()
        shared.sum().backward()
        return attempt((shared * 2).sum().backward)

    raises(script)


def test_freed_parts():
    def script(lib):
        x = vector(lib)
        y = x.exp()
        z = y * y
        lib.autograd.grad(z.sum(), y)  # stops at y: exp's output is still there
        return attempt(lambda: lib.autograd.grad(y.sum(), x)), attempt(z.sum().backward)

    same(script)


def test_retain_graph():
    def script(lib):
        x = vector(lib)
        y = (x.exp() * x).sum()
        y.backward(retain_graph=True)
        y.backward(retain_graph=True)
        y.backward()
        return x.grad, attempt(y.backward)

    same(script)


def test_inputs():
    def script(lib):
        x, y, unused = vector(lib), vector(lib), vector(lib)
        h = x * y
        z = (h * h).sum()
        z.backward(inputs=[x], retain_graph=True)
        seen = [x.grad.clone(), y.grad]
        z.backward(inputs=[h, x], retain_graph=True)
        seen += [x.grad.clone(), y.grad, h.grad]
        z.backward(inputs=y, retain_graph=True)
        z.backward(inputs=[unused], retain_graph=True)
        z.backward(inputs=[h])
        return seen, x.grad, y.grad, h.grad, unused.grad

    same(script, warned=False)


def test_inputs_that_want_no_gradient():
    def script(lib):
        x, fixed = vector(lib), lib.ones(3)
        (x * fixed).sum().backward(inputs=[fixed])

    raises(script)


def test_backward_of_a_leaf():
    def script(lib):
        x = lib.tensor(2.0, requires_grad=True)
        x.backward()
        x.backward(lib.tensor(5.0))
        return x.grad, lib.autograd.grad(x, x)

    same(script)


def test_gradient_of_an_unwanted_branch():
    def script(lib):
        x, y = vector(lib), vector(lib)
        z = (x * y.detach()).sum() + y.sum()
        z.backward()
        return x.grad, y.grad

    same(script)


def test_create_graph_keeps_the_graph():
    def script(lib):
        x = vector(lib)
        y = (x**3).sum()
        (g,) = lib.autograd.grad(y, x, create_graph=True)
        (h,) = lib.autograd.grad(g.sum(), x, create_graph=True)
        (k,) = lib.autograd.grad(h.sum(), x)
        return g, h, k, k.requires_grad

    same(script)


@parameterized.expand(
    [
        ("products", lambda lib, x: (x * x.sin() * x.exp()).sum()),
        ("quotients", lambda lib, x: (x / (1 + x * x)).sum()),
        ("matrices", lambda lib, x: (x.outer(x) @ x).sum()),
        ("softmax", lambda lib, x: (x.softmax(0) * x).sum()),
        ("norms", lambda lib, x: (x * x).sum().sqrt() * x.prod()),
        ("indices", lambda lib, x: (x[[0, 2, 0]] ** 3).sum() * x[1]),
        ("broadcast", lambda lib, x: (x[:, None] * x[None]).tanh().sum()),
        ("in place", lambda lib, x: (x * 1).mul_(x).sin_().add_(x).pow_(2).sum()),
        ("views", lambda lib, x: (x.expand(2, 3).t().reshape(-1) ** 3).sum()),
        ("powers", lambda lib, x: (x**x).sum()),
    ]
)
def test_orders(name, f):
    def script(lib):
        x = vector(lib, 0.3, 0.7, 1.2, dtype=lib.float64)
        value = f(lib, x)
        seen = [value.detach()]
        for _ in range(3):
            (g,) = lib.autograd.grad(value, x, create_graph=True)
            seen.append(g.detach())
            value = (g * lib.tensor([1.0, -2.0, 3.0], dtype=lib.float64)).sum()
        return seen

    same(script, rtol=1e-9)


def test_second_order_by_backward():
    def script(lib):
        x = vector(lib)
        (x**3).sum().backward(create_graph=True)
        first = x.grad
        x.grad = None
        (first * first).sum().backward()
        return first, first.requires_grad, x.grad, x.grad.requires_grad

    same(script, warned=False)


def test_gradient_outputs_with_a_graph():
    def script(lib):
        x, v = vector(lib), vector(lib)
        (g,) = lib.autograd.grad(x * x, x, v, create_graph=True)
        return lib.autograd.grad(g.sum(), [x, v])

    same(script)


# -- grad ------------------------------------------------------------------------------------------


def test_unused():
    def script(lib):
        x, unused = vector(lib), vector(lib)
        y = (x * x).sum()
        seen = [attempt(lib.autograd.grad, y, [x, unused], retain_graph=True)]
        seen.append(lib.autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True))
        seen.append(lib.autograd.grad(y, [x, unused], materialize_grads=True))
        return seen

    same(script)


def test_grad_of_non_leaves():
    def script(lib):
        x = vector(lib)
        h = x * 2
        k = h.exp()
        z = (k * h).sum()
        return lib.autograd.grad(z, [h, k, x, z]), h.grad_fn is not None, x.grad

    same(script, warned=False)


def test_grad_of_several_outputs():
    def script(lib):
        x, y = vector(lib), vector(lib)
        outputs = [x * y, (x + y).sum()]
        grads = [lib.tensor([1.0, 0.0, 2.0]), None]
        return lib.autograd.grad(outputs, (x, y), grads)

    same(script)


def test_grad_gives_a_tuple():
    def script(lib):
        x = vector(lib)
        found = lib.autograd.grad(x.sum(), x)
        return type(found).__name__, len(found), lib.autograd.grad([x.sum()], [x, x])

    same(script)


def test_grad_of_one_output_among_several():
    def script(lib):
        x = lib.arange(6.0).reshape(2, 3).requires_grad_()
        values, places = x.max(1)
        first, second = x.unbind(0)
        return (
            lib.autograd.grad(values.sum(), x),
            places.requires_grad,
            lib.autograd.grad(second.sum(), x),
            lib.autograd.grad(first.sum() * values[0], [x, first, values], allow_unused=True),
        )

    same(script, warned=False)


def test_grad_leaves_grads_alone():
    def script(lib):
        x, w = vector(lib), vector(lib)
        lib.autograd.grad((x * w).sum(), x)
        return x.grad, w.grad

    same(script)


# -- who owns a gradient ---------------------------------------------------------------------------


def test_grads_do_not_alias_each_other():
    def script(lib):
        x, y = vector(lib), vector(lib)
        (x + y).backward(lib.ones(3))
        x.grad.add_(5)
        return x.grad, y.grad

    same(script)


def test_grads_do_not_alias_the_given_gradient():
    def script(lib):
        x, v = vector(lib), lib.ones(3)
        (x + 0).backward(v)
        x.grad.mul_(7)
        y = vector(lib)
        (g,) = lib.autograd.grad(y.clone(), y, v)
        return v, x.grad, g

    same(script)


def test_grads_do_not_alias_saved_values():
    def script(lib):
        x, y = vector(lib), vector(lib)
        (x * y).sum().backward()
        x.grad.zero_()
        z = lib.tensor(3.0, requires_grad=True)
        w = lib.tensor(4.0, requires_grad=True)
        product = z * w
        product.backward(retain_graph=True)
        z.grad.zero_()
        product.backward()
        return x, y, z, w, x.grad, y.grad, z.grad, w.grad

    same(script)


def test_grads_of_views_and_expansions():
    def script(lib):
        x = vector(lib)
        x.expand(4, 3).sum().backward()
        x.grad[0] += 1
        y = vector(lib)
        y.sum().backward()  # the gradient of sum is an expanded one
        y.grad[0] += 1
        return x.grad, y.grad, x.grad.is_contiguous(), y.grad.stride()

    same(script)


def test_results_of_grad_are_views():
    def script(lib):
        x, y, v = vector(lib), vector(lib), lib.ones(3)
        gx, gy = lib.autograd.grad(x + y, [x, y], v)
        gx[0] = 9  # is v's, and gy's
        (gz,) = lib.autograd.grad(x.sum(), [x])
        w = vector(lib).reshape(3, 1).expand(3, 4)
        (gw,) = lib.autograd.grad(w.t().contiguous(), [w], lib.rand(4, 3))
        versions = [t._version for t in (gx, gy, v)]
        (gs,) = lib.autograd.grad(x[:2], [x], v[:2])
        return gx, gy, gz, v, gz.stride(), gw.stride(), versions, gs

    same(script)


def test_expanded_results_of_grad_refuse_writes():
    def script(lib):
        x = vector(lib)
        lib.autograd.grad(x.sum(), [x])[0].add_(1)

    raises(script)


def test_saved_results_of_grad_see_writes_to_what_they_are_views_of():
    def script(lib):
        x, v, w = vector(lib), lib.ones(3), vector(lib)
        (g,) = lib.autograd.grad(x.reshape(3, 1), [x], v.reshape(3, 1))
        y = (w * g).sum()
        v.add_(1)
        y.backward()

    raises(script)


@parameterized.expand([("leaf_first", True), ("leaf_last", False)])
def test_saved_results_of_grad_see_writes_to_views_of_them(_, leaf_first):
    def script(lib):
        x, w = vector(lib), lib.ones(3, 1, requires_grad=True)
        seen = x.reshape(3, 1)
        wanted = [x, seen] if leaf_first else [seen, x]
        found = lib.autograd.grad((seen * 2).sum(), wanted)
        gx, gs = found if leaf_first else found[::-1]
        y = (w * gs).sum()
        gx.add_(1)
        y.backward()

    raises(script)


def test_leaves_never_take_the_given_gradient_in_another_shape():
    v = tlc.ones(24)
    x = tlc.rand(6, 4, requires_grad=True)
    x.reshape(24).backward(v)
    x.grad.add_(1)
    assert v.tolist() == [1.0] * 24


def test_retained_gradients_are_of_their_own():
    def script(lib):
        x = vector(lib)
        h = x * 1
        h.retain_grad()
        k = h + 0
        k.retain_grad()
        k.sum().backward()
        h.grad.add_(3)
        return x.grad, h.grad, k.grad

    same(script)


def test_gradients_nobody_asked_for_are_not_computed(monkeypatch):
    asked = []

    def spy(F, *arrays, needs, **parameters):
        asked.append(needs)
        return NotImplemented

    monkeypatch.setitem(table.overrides, ("layer_norm_backward", "numpy"), spy)
    namespace = backends.load("cpu").F
    monkeypatch.delitem(vars(namespace), "layer_norm_backward", raising=False)
    x, w, b = (tlc.ones(3, requires_grad=True) for _ in range(3))
    for wanted in ([x], [w, b], [x, w, b]):
        y = tlc.nn.functional.layer_norm(x, (3,), w, b)
        tlc.autograd.grad(y.sum(), wanted)
    monkeypatch.undo()
    vars(namespace).pop("layer_norm_backward", None)
    assert asked == [(True, False, False), (False, True, True), (True, True, True)]
