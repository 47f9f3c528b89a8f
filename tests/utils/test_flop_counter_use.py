"""The counter in use: second orders, functions, threads, trouble, formulas of users, tables."""

from __future__ import annotations

import threading

import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.flop_counter as our_counter
from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.costs import Cost, per_result
from tensorflow_lite_clone.dispatch.op import TABLE, Op
from tensorflow_lite_clone.utils.flop_counter import FlopCounterMode
from tests.device import DEVICE
from tests.utils.counters import COUNTERS, block, by_module, inputs

# -- gradients of gradients, functions, checkpoints, threads --------------------------------------


def test_second_order():
    def counts(lib):
        (x,) = inputs(lib, [(3, 4)], "1")
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            y = (x @ x.t()).pow(2).sum()
            (g,) = lib.autograd.grad(y, x, create_graph=True)
            first = counter.get_total_flops()
            g.pow(2).sum().backward()
        return first, counter.get_total_flops()

    assert counts(tlc) == counts(torch)


@parameterized.expand([("x",), ("w",), ("b",), ("xw",)])
def test_gradients_of_some_inputs(names):
    """`autograd.grad` computes what it is asked for."""

    def counts(lib):
        tensors = dict(zip("xwb", inputs(lib, [(3, 4), (5, 4), (5,)], "111"), strict=True))
        y = lib.nn.functional.linear(*tensors.values())
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            lib.autograd.grad(y.sum(), [tensors[name] for name in names])
        return counter.get_total_flops()

    ours, theirs = counts(tlc), counts(torch)
    assert theirs == 120 * len(names.replace("b", ""))
    # gradients of weight and bias are one kernel here
    assert ours == (120 if names == "b" else theirs)


def loss_of(lib, w):
    return lambda x: (x @ w).pow(2).sum()


@parameterized.expand(
    [
        ("grad", lambda lib, x, w: lib.func.grad(loss_of(lib, w))(x)),
        ("jacrev", lambda lib, x, w: lib.func.jacrev(lambda x: x @ w)(x)),
        ("per_sample", lambda lib, x, w: lib.func.vmap(lib.func.grad(loss_of(lib, w)))(x[:, None])),
    ]
)
def test_transforms(_, program):
    def counts(lib):
        x, w = inputs(lib, [(3, 4), (4, 5)], "00")
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            program(lib, x, w)
        return counter.get_total_flops()

    assert counts(tlc) == counts(torch) > 0


def test_transforms_of_transforms():
    """Their ends are nodes without an op. PyTorch's forward mode needs fewer products."""
    x, w = inputs(tlc, [(3, 4), (4, 5)], "00")
    with FlopCounterMode(display=False) as counter:
        tlc.func.hessian(loss_of(tlc, w))(x)
    products = counter.get_total_flops() / 120
    assert products == int(products) > 2 * 12  # of a pass there and back for each column


def test_second_order_of_convolutions():
    """PyTorch's counter refuses `grad` with its hooks on modules; each product is a convolution."""
    x, w = inputs(tlc, [(1, 2, 6, 6), (3, 2, 3, 3)], "11")
    forward = 2 * 3 * 16 * 18
    with FlopCounterMode(display=False) as counter:
        y = tlc.nn.functional.conv2d(x, w).pow(2).sum()
        gx, gw = tlc.autograd.grad(y, (x, w), create_graph=True)
        assert counter.get_total_flops() == 3 * forward
        (gx.sum() + gw.sum()).backward()
    # each of the two gradients has two inputs; then g's own way leads through y to x and w
    assert counter.get_total_flops() == (3 + 4 + 2) * forward


def test_functions_of_users():
    """What a user's backward calls is counted, in the module of its forward."""

    def counts(lib):
        class Twice(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x @ x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g @ x.t() + x.t() @ g

        class Layer(lib.nn.Module):
            def forward(self, x):
                return Twice.apply(x)

        (x,) = inputs(lib, [(3, 3)], "1")
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            Layer()(x).sum().backward()
        return by_module(lib, counter)

    assert counts(tlc) == counts(torch) == {"Global": 3 * 54, "Layer": 3 * 54}


@parameterized.expand([(False,), (True,)])
def test_checkpoints(reentrant):
    """The second forward pass counts, in its modules; nothing saved is unpacked to be counted."""
    unpacked = []
    layer = tlc.nn.Conv2d(2, 3, 3).to(DEVICE)
    layer.weight.requires_grad_(False)
    forward = 2 * 3 * 16 * 18

    def unpack(x):
        unpacked.append(x)
        return x

    (x,) = inputs(tlc, [(1, 2, 6, 6)], "1")
    with tlc.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = layer(x).sum()
    with FlopCounterMode(display=False) as counter:
        y.backward()
    assert counter.get_total_flops() == forward
    assert len(unpacked) == 2  # input and weight, by the gradient itself

    with FlopCounterMode(display=False) as counter:
        checkpoint = tlc.utils.checkpoint.checkpoint
        checkpoint(layer, x, use_reentrant=reentrant).sum().backward()
    assert by_module(tlc, counter) == {"Global": 3 * forward, "Conv2d": 3 * forward}


def test_samples_under_vmap():
    def counts(lib):
        x, y = inputs(lib, [(5, 3, 4), (4, 2)], "00")
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            lib.func.vmap(lambda x: x @ y)(x)
        return counter.get_total_flops()

    assert counts(tlc) == counts(torch) == 5 * 3 * 2 * 4 * 2


def test_other_threads_do_not_count():
    layer = tlc.nn.Linear(3, 3).to(DEVICE)
    (x,) = inputs(tlc, [(3, 3)], "1")
    with FlopCounterMode(display=False) as counter:
        thread = threading.Thread(target=lambda: layer(x).sum().backward())
        thread.start()
        thread.join()
        layer(x)
    assert by_module(tlc, counter) == {"Global": 54, "Linear": 54}


# -- trouble --------------------------------------------------------------------------------------


class Failing(tlc.nn.Module):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def forward(self, x):
        raise self.error


@parameterized.expand([(KeyError("x"),), (KeyboardInterrupt(),)])
def test_a_module_that_fails_is_left(error):
    (x,) = inputs(tlc, [(3, 3)], "0")
    outer = tlc.nn.Sequential(Failing(error))
    with FlopCounterMode(display=False) as counter:
        with pytest.raises(type(error)):
            outer(x)
        tlc.nn.Linear(3, 3).to(DEVICE)(x)
    counts = by_module(tlc, counter)
    assert counts["Global"] == counts["Linear"] == 54


def test_a_counter_begun_inside_of_a_module():
    class Outer(tlc.nn.Module):
        def forward(self, x):
            self.counter = FlopCounterMode(display=False).__enter__()
            return x @ x

    outer = Outer()
    (x,) = inputs(tlc, [(3, 3)], "0")
    try:
        outer(x)
        x @ x
    finally:
        outer.counter.__exit__(None, None, None)
    assert by_module(tlc, outer.counter) == {"Global": 2 * 54}


def test_nothing_is_left_behind():
    before = [list(entries) for entries in (hooks.around_op, hooks.around_gradient)]
    counter = FlopCounterMode(display=False)
    (x,) = inputs(tlc, [(3, 3)], "1")
    with pytest.raises(ZeroDivisionError), counter:
        y = (x @ x).sum()
        raise ZeroDivisionError
    assert [list(entries) for entries in (hooks.around_op, hooks.around_gradient)] == before
    y.backward()
    x @ x
    assert counter.get_total_flops() == 54


def test_entered_twice():
    with FlopCounterMode(display=False) as counter:
        with pytest.raises(RuntimeError, match="watching already"), counter:
            pass
        (x,) = inputs(tlc, [(3, 3)], "0")
        x @ x
    assert counter.get_total_flops() == 54


def test_mods_are_not_needed():
    def caught(lib):
        with pytest.warns(UserWarning) as found:
            COUNTERS[lib].FlopCounterMode(lib.nn.Linear(2, 2), display=False)
        return str(found[0].message)

    assert caught(tlc) == caught(torch)


def test_complex_numbers_count_as_real_ones():
    def counts(lib):
        x, y = [x.to(lib.complex64).requires_grad_() for x in inputs(lib, [(3, 4), (4, 5)], "00")]
        with COUNTERS[lib].FlopCounterMode(display=False) as counter:
            (x @ y).abs().sum().backward()
        return counter.get_total_flops()

    assert counts(tlc) == counts(torch) == 3 * 120


# -- formulas of users ----------------------------------------------------------------------------


@pytest.fixture
def registry():
    kept = dict(our_counter.flop_registry)
    yield our_counter.flop_registry
    our_counter.flop_registry.clear()
    our_counter.flop_registry.update(kept)


def test_registered_formulas(registry):
    seen = []

    @our_counter.register_flop_formula(["tanh", tlc.ops.softmax.Softmax])
    def of_shapes(*shapes, out_shape=None, **parameters):
        seen.append((shapes, out_shape, parameters))
        return 7

    @our_counter.register_flop_formula("exp", get_raw=True)
    def of_arrays(x, out_val=None):
        assert type(out_val) is type(x)
        return out_val.shape[0]

    @our_counter.register_flop_formula("exp_backward")
    def of_gradients(g, x, needs=()):
        return 100 * g[0] * sum(needs)

    x = tlc.zeros(3, device=DEVICE, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        x.tanh().softmax(0)
        x.exp().sum().backward()
    assert seen == [(((3,),), (3,), {}), (((3,),), (3,), {"axis": 0})]
    assert counter.get_flop_counts()["Global"] == {
        "tanh": 7, "softmax": 7, "exp": 3, "exp_backward": 300,
    }  # fmt: skip


@parameterized.expand(
    [("mm", RuntimeError, "duplicate registrations for mm"), (torch.mm, ValueError, "expected")]
)
def test_targets_that_are_refused(target, error, message):
    with pytest.raises(error, match=message):
        our_counter.register_flop_formula(target)(lambda *shapes, **parameters: 0)


def test_products_of_the_users_own():
    class OwnCube(Op):
        cost = Cost(per_result(7), lambda needs, g, x: 9 * g.shape[0], product=True)

        def forward(F, x):
            return x**3

        def backward_x(F, g, x):
            return 3 * x**2 * g

    try:
        with FlopCounterMode(display=False) as counter:
            x = tlc.ones(10, device=DEVICE, requires_grad=True)
            apply(OwnCube, x).sum().backward()
    finally:
        del TABLE["own_cube"]
    assert counter.get_flop_counts()["Global"] == {"own_cube": 70, "own_cube_backward": 90}


def test_custom_mapping():
    mapping = {"tanh": lambda x, **parameters: 9, "mm": lambda *shapes, **parameters: 1}
    (x,) = inputs(tlc, [(3, 3)], "0")
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        x.tanh() @ x
    assert counter.get_flop_counts() == {"Global": {"tanh": 9, "mm": 1}}
    with FlopCounterMode(display=False) as counter:
        x.tanh() @ x
    assert counter.get_flop_counts() == {"Global": {"mm": 54}}


# -- tables ---------------------------------------------------------------------------------------


def test_table(capsys):
    inner = block(tlc).to(DEVICE)
    x = tlc.ones(3, 4, device=DEVICE)
    with FlopCounterMode() as counter:
        tlc.nn.Sequential(inner)(x)
        x @ x.t()
    printed = capsys.readouterr().out
    assert printed == counter.get_table() + "\n"
    assert printed.splitlines() == [
        "Module            FLOP  % Total",
        "----------------  ----  -------",
        "Global             312  100.00%",
        " - linear          240   76.92%",
        " - mm               72   23.08%",
        "  Sequential       240   76.92%",
        "   - linear        240   76.92%",
        "    Sequential.0   240   76.92%",
        "     - linear      240   76.92%",
    ]
    assert "Sequential.0.a" in counter.get_table(3)
    assert "Sequential" not in counter.get_table(0)


@parameterized.expand([(0, "0"), (999, "999"), (2000, "2000"), (12_345_678, "12.346M")])
def test_numbers(count, text):
    mapping = {"tanh": lambda x, **parameters: count}
    with FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        tlc.ones(2, device=DEVICE).tanh()
    lines = counter.get_table().splitlines()
    assert lines[2].split() == ["Global", text, "100.00%" if count else "0%"]
