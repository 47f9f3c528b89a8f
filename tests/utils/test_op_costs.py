"""What ops cost: that each has an answer, the conventions, and bytes."""

from __future__ import annotations

from math import log2
from types import SimpleNamespace

import numpy as np
import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import TABLE, Op, is_op
from tensorflow_lite_clone.ops._formulas import no_gradient
from tensorflow_lite_clone.trace import Observer
from tensorflow_lite_clone.utils import _op_costs as op_costs
from tensorflow_lite_clone.utils._op_costs import bytes_of, flops_of
from tests.device import DEVICE
from tests.op_db import OPS
from tests.op_db._case import draw
from tests.op_db._check import OURS, GradientCase, representable, run_ours


def of_shapes(*shapes):
    return tuple([shape and MetaArray(shape, np.dtype(np.float32)) for shape in shapes])


# -- conventions ----------------------------------------------------------------------------------


@parameterized.expand(
    [
        ("add", [(3, 1), (4,)], (3, 4), {}, 12),
        ("gelu", [(3, 4)], (3, 4), {}, 12),
        ("addcmul", [(3, 4)] * 3, (3, 4), {"value": 1}, 36),
        ("sum", [(3, 4)], (3,), {"axis": 1, "keepdims": False, "shape": (3, 4)}, 12),
        ("softmax", [(3, 4)], (3, 4), {"axis": 1}, 60),
        ("layer_norm", [(3, 4), (4,), None], ((3, 4), (3, 1)), {"ndim": 1}, 84),
        ("max_pool", [(1, 2, 8, 8)], ((1, 2, 4, 4), (0,)), {"kernel": (2, 2)}, 128),
        ("mv", [(3, 4), (4,)], (3,), {}, 24),
        ("dot", [(4,), (4,)], (), {}, 8),
        ("eq", [(3, 4), (3, 4)], (3, 4), {}, 0),
        ("reshape", [(3, 4)], (12,), {}, 0),
        ("nll_loss", [(5, 4), (5,), None], (), {}, 5),
        ("cross_entropy", [(5, 4), (5,), None], ((), (5,)), {}, 100),
        ("embedding", [(9, 4), (5,)], (5, 4), {}, 0),
    ]
)
def test_conventions(name, shapes, out, parameters, expected):
    op = TABLE.get(name) or TABLE["view"]
    assert flops_of(op, of_shapes(*shapes), parameters, SimpleNamespace(shape=out)) == expected


# -- that nothing is forgotten --------------------------------------------------------------------

#: Ops and gradients that cannot be counted, and so count nothing.
UNCOUNTED = {"unique_rows": "result depends on values"}
#: Why ops, or gradients, are run by no program below.
NOT_RUN = {
    "random numbers are drawn and recorded by hand": """
        binomial sample_dirichlet sampled standard_gamma binomial_backward sample_dirichlet_backward
        sampled_backward standard_gamma_backward
    """,
    "writes are no calls of ops, only their gradients are": "copy_into fill zero",
    "there is no other device": "to_device to_device_backward",
    "PyTorch has no such gradient, so it raises, in a function of its own": """
        count_integers_backward dirichlet_grad_backward geqrf_backward ldl_factor_backward
        ldl_solve_backward nextafter_backward nothing_pooled_backward
        standard_gamma_grad_backward unique_rows_backward
    """,
}


class Answers(Observer):
    """Context that asks what all ops and gradients cost that run inside.

    `seen` has their names, and `forgotten` those that say 0 and calculate something all the same.
    """

    def __init__(self):
        self.seen, self.forgotten = set(), set()

    def __enter__(self):
        op_costs.uncounted.clear()
        return super().__enter__()

    def on_op(self, op, backend, arrays, parameters, result):
        flops = flops_of(op, arrays, parameters, result)
        self._note(op.name, flops, lambda: op_costs.count(op, arrays, parameters))

    def around_gradient(self, node, call, grads):
        results = call(grads)
        op = getattr(node, "op", None)
        if op is not None and not op_costs.is_recorded():
            asked = node, grads, tuple([result is not None for result in results])
            flops = op_costs.flops_of_gradient(*asked)
            if all([g is None or g.size for g in grads]):
                self._note(f"{op.name}_backward", flops, lambda: op_costs.count_gradient(*asked))
        return results

    def _note(self, name, flops, count):
        assert type(flops) is int and flops >= 0
        self.seen.add(name)
        reasons = dict(op_costs.uncounted)
        if not flops and count():
            self.forgotten.add(name)
        op_costs.uncounted.clear()
        op_costs.uncounted.update(reasons)


def run_rows():
    """All rows of the table of tests, and gradients of the first and second order of some."""
    for op in OPS:
        for sample in op.samples:
            if op.supports_autograd and "float64" in op.dtypes and sample.mode in ("full", "torch"):
                twice = (
                    op.supports_gradgrad is True
                    and sample is op.samples[0]
                    and sample.mode == "full"
                )
                trial = GradientCase(op, sample)
                for order in (1, 2)[: 1 + twice] if trial.inputs else ():
                    trial.derivative(OURS, order)
                continue
            for dtype in [dtype for dtype in op.dtypes if representable(sample, dtype)][:1]:
                run_ours(op, draw(op, sample, dtype))


def run_others():
    """What has no row: randomness, writes, sparse gradients, second orders."""
    F = tlc.nn.functional
    x = tlc.rand(2, 4, 4, device=DEVICE, requires_grad=True)

    def derive(y):
        for order in range(4):
            (y,) = tlc.autograd.grad(y.pow(2).sum(), x, create_graph=order < 3)

    derive(F.dropout(x, 0.5))
    derive(F.scaled_dot_product_attention(x, x, x, dropout_p=0.5))
    derive(F.max_pool2d(x, 2))
    derive(F.embedding(tlc.zeros(3, dtype=tlc.int64, device=DEVICE), x[0]))
    index = tlc.zeros(1, 4, 4, dtype=tlc.int64, device=DEVICE)
    tlc.gather(x, 0, index, sparse_grad=True).sum().backward()
    tlc.round(x, decimals=1).sum().backward()
    with tlc.autocast(DEVICE, tlc.bfloat16):
        tlc.nn.Conv2d(2, 3, 3, device=DEVICE)(x).sum().backward()


def raises_alone(op):
    """Whether all gradients of an op are `no_gradient`."""
    refuse = no_gradient(op.name).__code__
    return bool(op.separate) and all([each[0].__code__ is refuse for each in op.separate.values()])


def test_every_op_has_an_answer():
    """Its own, its kind's or its primitive's; or it is counted, and 0 says that it is free."""
    with Answers() as answers:
        run_rows()
        run_others()
    assert answers.forgotten == set()
    assert op_costs.uncounted.keys() == UNCOUNTED.keys()
    assert all([reason in op_costs.uncounted[name] for name, reason in UNCOUNTED.items()])
    package = [entry for entry in TABLE.values() if "tensorflow_lite_clone" in entry.__module__]
    ops = {op.name: op for op in package if is_op(op)}
    gradients = {
        f"{name}_backward" for name, op in ops.items() if op.differentiable and not raises_alone(op)
    }
    views = {name for name, op in ops.items() if op.view}  # they run without being seen
    missing = {*ops, *gradients} - answers.seen - views
    assert missing == {name for names in NOT_RUN.values() for name in names.split()}


# -- what runs ------------------------------------------------------------------------------------


class Costs(Observer):
    """What runs inside costs, by the names of ops and nodes."""

    def __init__(self):
        self.flops, self.bytes = {}, {}

    def on_op(self, op, backend, arrays, parameters, result):
        flops = flops_of(op, arrays, parameters, result)
        self._note(op.name, flops, bytes_of(op, arrays, result))

    def around_gradient(self, node, call, grads):
        results = call(grads)
        needs = tuple([result is not None for result in results])
        flops = op_costs.flops_of_gradient(node, grads, needs)
        self._note(node.name(), flops, op_costs.bytes_of_gradient(node, grads, results))
        return results

    def _note(self, name, flops, size):
        assert type(flops) is type(size) is int
        assert min(flops, size) >= 0
        self.flops[name] = self.flops.get(name, 0) + flops
        self.bytes[name] = self.bytes.get(name, 0) + size


def test_gradients():
    x = tlc.ones(5, 4, device=DEVICE, requires_grad=True)
    w = tlc.ones(3, 4, device=DEVICE, requires_grad=True)
    with Costs() as costs:
        tlc.nn.functional.linear(x, w).relu().softmax(1).sum().backward()
    assert costs.flops == {
        "linear": 120, "relu": 15, "softmax": 75, "sum": 15, "SumBackward0": 0,
        "SoftmaxBackward0": 60, "ReluBackward0": 15, "AddmmBackward0": 240,
    }  # fmt: skip
    assert costs.bytes["linear"] == 4 * (20 + 12 + 15)
    assert costs.bytes["AddmmBackward0"] == 4 * (15 + 2 * (20 + 12))  # g; x and w, and theirs
    assert costs.bytes["SoftmaxBackward0"] == 4 * (1 + 15 + 15)  # g is one number, expanded


def test_a_recorded_pass_counts_what_formulas_call():
    x = tlc.ones(3, 3, device=DEVICE, requires_grad=True)
    with Costs() as costs:
        y = x @ x
        tlc.autograd.grad(y.sum(), x, create_graph=True)
        tlc.func.grad(lambda x: (x @ x).sum())(x)
    assert costs.flops["mm"] + costs.flops.get("bmm", 0) == 2 * 3 * 54
    assert costs.flops["MmBackward0"] == 0


def test_bytes():
    x = tlc.ones(6, 4, device=DEVICE)
    rows = tlc.tensor([0, 1], device=DEVICE)
    with Costs() as costs:
        x.t()
        x[1:3]
        x + x[:, :1].expand(6, 4)
        x.index_select(0, rows)
        tlc.full_like(x, 3.0)
    assert costs.bytes["transpose"] == costs.bytes["slice"] == 0
    assert costs.bytes["add"] == 4 * (24 + 24 + 6)  # what is expanded is read once
    assert costs.bytes["index_select"] == 2 * 8 + 4 * (8 + 8)  # of x only what is taken
    assert costs.flops["index_select"] == 0


def test_attention_and_transforms_are_what_their_products_are():
    x = tlc.ones(2, 16, device=DEVICE)
    q = tlc.ones(2, 8, 4, device=DEVICE)
    with Costs() as costs:
        tlc.fft.fft(tlc.complex(x, x))
        tlc.nn.functional.scaled_dot_product_attention(q, q, q)
    assert costs.flops["fft_c2c"] == 5 * 32 * log2(16)
    assert costs.flops["attention"] == 2 * (2 * 2 * 8 * 8 * 4)


# -- counting -------------------------------------------------------------------------------------


@pytest.fixture
def ops_of_others():
    """Ops that a test defines leave the table with it."""
    before = set(TABLE)
    yield
    for name in TABLE.keys() - before:
        del TABLE[name]


def test_an_op_that_says_nothing_is_counted(ops_of_others):
    class Third(Op):
        """An op as another project might define it."""

        name = "cost_of_a_third_party"

        def forward(F, x, *, times):
            for _ in range(times):
                x = F.exp(F.matmul(x, x))
            return x, F.softmax(x, axis=0)

        def backward(F, g, x, out1, *, times):
            return (F.matmul(g[0], x) + g[1] * out1,)

    x = tlc.ones(4, 4, device=DEVICE, requires_grad=True)
    with Costs() as costs:
        y, z = tlc.autograd.apply.apply(Third, x, times=3)
        (y.sum() + z.sum()).backward()
    assert costs.flops["cost_of_a_third_party"] == 3 * (128 + 16) + 5 * 16
    assert costs.flops["CostOfAThirdPartyBackward0"] == 128 + 2 * 16


def test_counting_is_done_once(ops_of_others):
    counted = []

    class Watched(Op):
        name = "cost_that_is_watched"

        def forward(F, x, *, facts):
            counted.append(facts)
            return F.exp(x)

    def ask(shape, facts):
        return flops_of(Watched, of_shapes(shape), {"facts": facts}, None)

    assert [ask((3, 4), 1), ask((3, 4), 1), ask((3, 5), 1), ask((3, 4), 2)] == [12, 12, 15, 12]
    assert counted == [1, 1, 2]
    assert [ask((3, 4), {}), ask((3, 4), {})] == [12, 12]  # no key, so it is counted again
    assert counted[3:] == [{}, {}]


def test_value_dependent_costs_raise(ops_of_others):
    class Asking(Op):
        name = "cost_that_depends"

        def forward(F, x):
            return x if float(F.sum(x)) > 0 else F.exp(x)

    assert flops_of(Asking, of_shapes((3, 4)), {}, None) == 0
    assert "a meta tensor was asked for" in op_costs.uncounted["cost_that_depends"]


def test_counting_is_seen_by_no_hook_and_draws_nothing():
    x, p = of_shapes((4, 4)), {"p": 0.5}
    tlc.manual_seed(0)
    expected = tlc.rand(3)
    seen = []

    def watch(op, backend, call):
        seen.append(op.name)
        return call

    hooks.add(watch)
    try:
        tlc.manual_seed(0)
        assert op_costs.count(TABLE["dropout"], x, p) == 32  # the factors, and products with them
        assert op_costs.count(TABLE["slogdet"], x, {}) > 0
    finally:
        hooks.remove(watch)
    assert seen == [] and tlc.equal(tlc.rand(3), expected)


def test_a_model_without_elements_costs_as_much():
    def costs(device):
        model = tlc.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, device=device)
        x = tlc.zeros(2, 5, 8, device=device, requires_grad=True)
        with Costs() as found:
            model(x).softmax(-1).sum().backward()
        return found

    there, here = costs("meta"), costs(DEVICE)
    assert there.flops == here.flops and there.bytes == here.bytes
