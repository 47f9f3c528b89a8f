"""Shapes of graphs, depth, cycles, threads, and the graph's face."""

from __future__ import annotations

import gc
import sys
import threading
import weakref

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, same


def vector(lib, *values, dtype=None, grad=True):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=grad)


# -- shapes of graphs ------------------------------------------------------------------------------


def test_diamonds():
    def script(lib):
        x = vector(lib)
        for _ in range(4):
            x = x if x.is_leaf else x / 3
            x = x.sin() + x.cos() * x
        return lib.autograd.grad(x.sum(), x)

    same(script)

    def deep(lib):
        leaf = vector(lib)
        x = leaf
        for _ in range(60):  # 2 ** 60 paths
            x = x * 0.5 + x * 0.5
        x.sum().backward()
        return leaf.grad

    same(deep)


def test_one_tensor_many_times():
    def script(lib):
        x = vector(lib)
        total = x * 0
        for _ in range(50):
            total = total + x * x
        total.sum().backward()
        y = vector(lib)
        lib.stack([y] * 5).sum().backward()
        z = vector(lib)
        (z * z * z - z / z).sum().backward()
        return x.grad, y.grad, z.grad

    same(script)


def test_skipped_layers():
    def script(lib):
        x = vector(lib)
        a = x * 2
        b = a.exp()
        c = a + b
        d = c * a * x
        return lib.autograd.grad(d.sum(), [x, a, b, c])

    same(script)


def test_deep_graphs():
    x = tlc.ones(2, requires_grad=True)
    y = x
    limit = sys.getrecursionlimit()
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del y
    gc.collect()
    assert sys.getrecursionlimit() == limit


def test_deep_graphs_are_destroyed():
    x = tlc.ones(2, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y * x
    alive = weakref.ref(y.grad_fn)
    del y  # frees a chain of 100,000 nodes
    assert alive() is None


def test_deep_graphs_of_views_and_writes():
    x = tlc.ones(2, requires_grad=True)
    y = x * 1
    for _ in range(20_000):
        y.mul_(1)
    z = y
    for _ in range(20_000):
        z = z.view(2)
    z.sum().backward()
    assert x.grad.tolist() == [1, 1]
    del y, z


def test_graphs_make_no_cycles():
    gc.collect()
    gc.disable()
    try:
        x = tlc.ones(3, requires_grad=True)
        y = x.exp().softmax(0).sum()
        alive = weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(x)
        y.backward()
        del x, y
        assert [reference() for reference in alive] == [None, None, None]
    finally:
        gc.enable()


def test_leaves_that_die():
    def script(lib):
        x, y = vector(lib), vector(lib)
        z = (x * y).sum()
        del x
        z.backward()
        return y.grad

    same(script)


def test_broadcast_gradients():
    def script(lib):
        a = lib.ones(3, 1, requires_grad=True)
        b = lib.full((2, 1, 4), 2.0, requires_grad=True)
        c = lib.tensor(3.0, requires_grad=True)
        (a * b + c).sum().backward()
        return a.grad, b.grad, c.grad

    same(script)


def test_empty_tensors():
    def script(lib):
        x = lib.ones(0, 3, requires_grad=True)
        (x * 2).sum().backward()
        y = lib.ones(0, requires_grad=True)
        (y * lib.ones(0)).backward(lib.ones(0))
        return x.grad, y.grad, attempt((y * 2).backward)

    same(script)


# -- threads ---------------------------------------------------------------------------------------


def test_threads():
    w = tlc.ones(50, requires_grad=True)
    lock = threading.Lock()
    failures = []

    def work(number):
        try:
            x = tlc.full((50,), float(number), requires_grad=True)
            for _ in range(30):
                (g,) = tlc.autograd.grad(((x * x).exp() * w * 0).sum() + (x * 2).sum(), x)
                assert g.tolist() == [2.0] * 50
            with lock:
                (w * number).sum().backward()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert w.grad.tolist() == [6.0] * 50


def test_graph_made_in_another_thread():
    made = []
    x = tlc.ones(3, requires_grad=True)
    thread = threading.Thread(target=lambda: made.append((x.exp() * x).sum()))
    thread.start()
    thread.join()
    made[0].backward()
    assert x.grad.tolist() == pytest.approx([2 * 2.718281828] * 3)


def test_backward_inside_backward():
    def script(lib):
        class Inner(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                with lib.enable_grad():
                    y = ctx.saved_tensors[0].detach().requires_grad_()
                    (y * y).sum().backward()
                return g * y.grad

        x = vector(lib)
        Inner.apply(x.sin()).sum().backward()
        return x.grad

    same(script)


# -- the graph's face ------------------------------------------------------------------------------


def test_names_and_next_functions():
    def script(lib):
        x, y = vector(lib), vector(lib)
        z = (x * y + 1).sum()

        def walk(node):
            if node is None:
                return None
            return node.name(), [(walk(child), number) for child, number in node.next_functions]

        return walk(z.grad_fn), x.grad_fn, z.is_leaf, x.is_leaf, z.output_nr

    same(script)


def test_graph_module():
    def script(lib):
        x = vector(lib)
        y = x.exp()
        edge = lib.autograd.graph.get_gradient_edge(y)
        leaf = y.grad_fn.next_functions[0][0]
        return (
            edge[0].name(),
            edge[1],
            edge.node is y.grad_fn,
            edge.output_nr,
            leaf.name(),
            leaf.variable is x,
            isinstance(leaf, lib.autograd.graph.Node),
            isinstance(y.grad_fn, lib.autograd.graph.Node),
            y.grad_fn.metadata,
            lib.autograd.grad(edge, x, lib.ones(3)),
            attempt(lib.autograd.graph.get_gradient_edge, lib.ones(2)),
        )

    same(script)


@parameterized.expand(
    [
        ("add", lambda x: x + 1),
        ("sub", lambda x: x - x),
        ("mul", lambda x: x * 2),
        ("div", lambda x: x / 2),
        ("pow", lambda x: x**2),
        ("neg", lambda x: -x),
        ("sum", lambda x: x.sum()),
        ("sum of dims", lambda x: x.sum(0)),
        ("mean", lambda x: x.mean()),
        ("mean of dims", lambda x: x.mean(0)),
        ("max", lambda x: x.max()),
        ("max of a dim", lambda x: x.max(0)[0]),
        ("matmul", lambda x: x @ x),
        ("exp", lambda x: x.exp()),
        ("relu", lambda x: x.relu()),
        ("sigmoid", lambda x: x.sigmoid()),
        ("view", lambda x: x.view(-1)),
        ("transpose", lambda x: x.transpose(0, 1)),
        ("permute", lambda x: x.permute(1, 0)),
        ("select", lambda x: x[0]),
        ("slice", lambda x: x[:1]),
        ("index", lambda x: x[[0, 1]]),
        ("expand", lambda x: x[:1].expand(5, 2)),
        ("clone", lambda x: x.clone()),
        ("cast", lambda x: x.double()),
        ("squeeze", lambda x: x[None].squeeze()),
        ("unsqueeze", lambda x: x.unsqueeze(0)),
        ("softmax", lambda x: x.softmax(0)),
        ("log softmax", lambda x: x.log_softmax(0)),
        ("unbind", lambda x: x.unbind(0)[1]),
        ("split", lambda x: x.split(1)[1]),
        ("chunk", lambda x: x.chunk(2)[1]),
        ("where", lambda x: x.where(x > 0, x)),
        ("clamp", lambda x: x.clamp(0)),
        ("cumsum", lambda x: x.cumsum(0)),
        ("written", lambda x: (x * 1).add_(1)),
        ("written in a view", lambda x: (x * 1)[0].mul_(2)._base),
        ("norm", lambda x: x.norm()),
        ("var", lambda x: x.var()),
        ("abs", lambda x: x.abs()),
        ("sqrt", lambda x: x.sqrt()),
        ("flatten", lambda x: x.flatten()),
        ("reshape", lambda x: x.reshape(4)),
    ]
)
def test_names(name, f):
    def script(lib):
        return f(lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)).grad_fn.name()

    same(script)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_names_of_losses(reduction):
    """They are printed with every loss."""

    def script(lib):
        F = lib.nn.functional
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y, classes = lib.ones(2, 2), lib.tensor([0, 1])
        losses = [
            F.cross_entropy(x, classes, reduction=reduction),
            F.cross_entropy(x, classes, reduction=reduction, label_smoothing=0.1),
            F.nll_loss(x, classes, reduction=reduction),
            F.l1_loss(x, y, reduction=reduction),
            F.mse_loss(x, y, reduction=reduction),
            F.kl_div(x, y, reduction=reduction) if reduction != "mean" else x,
        ]
        return [loss.grad_fn and loss.grad_fn.name() for loss in losses]

    same(script)


def test_nodes_can_be_called():
    def script(lib):
        x = vector(lib)
        y = x * x.detach()
        g = lib.tensor([1.0, 10.0, 100.0])
        with lib.no_grad():
            plain = y.grad_fn(g)
        a, b = (x.unbind(0)[0]).grad_fn, x.exp().grad_fn
        return plain, b(g).requires_grad, a(*[lib.ones(())] * 3)

    same(script)


def test_saved_values():
    def script(lib):
        x = vector(lib)
        y = x.exp()
        z = x * y
        saved = y.grad_fn._saved_result, z.grad_fn._saved_self, z.grad_fn._saved_other
        seen = [saved, saved[0].grad_fn.name(), saved[1].is_leaf]
        z.sum().backward()
        return seen, attempt(getattr, y.grad_fn, "_saved_result"), attempt(getattr, z, "nothing")

    same(script, words=("Trying to backward through the graph a second time", "has no attribute"))


def test_hooks_on_saved_values_belong_to_a_thread():
    x = vector(tlc)
    packed, entered, finished = [], threading.Event(), threading.Event()

    def work():
        with tlc.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t):
            entered.set()
            finished.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait(10)
    (x * x).sum().backward()
    finished.set()
    thread.join()
    assert packed == []
    assert x.grad.tolist() == [2, 4, 6]
