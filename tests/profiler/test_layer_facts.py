"""`profiler.layers`: rows, their order, memory, copies; and what a model is afterwards."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass

import pytest

import tensorflow_lite_clone as tlc
import tests.strict_backend  # noqa: F401  registers it
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.profiler import layers
from tensorflow_lite_clone.utils.flop_counter import FlopCounterMode
from tests.device import DEVICE

#: A device beside that of the tests, to and from which copies are told of.
OTHER = "strict:0" if DEVICE == "cpu" else "cpu"


def report_of(model, *inputs, **options):
    return layers(
        model.to(DEVICE), *inputs, **{"trials": 2, "warmup": 1, "progress": False} | options
    )


def rand(*shape, **options):
    return tlc.rand(*shape, device=DEVICE, **options)


def named(report):
    return {row.name: row for row in [*report.rows, *report.containers]}


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.unused = nn.Linear(3, 3)
        self.last = nn.Linear(4, 2)
        self.many = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.act = nn.ReLU()

    def forward(self, x):
        for each in reversed(self.many):
            x = self.act(each(x))
        return self.last(x)


def test_rows_are_in_the_order_of_execution():
    report = report_of(nn.Sequential(nn.Linear(4, 4), Block()), rand(5, 4))
    assert [(row.name, row.role, row.depth) for row in report.lines] == [
        ("0", "layer", 0),
        ("1", "container", 0),
        ("1.many", "container", 1),
        ("1.many.1", "layer", 2),
        ("1.many.0", "layer", 2),
        ("1.act", "layer", 1),
        ("1.last", "layer", 1),
        ("1.unused", "layer", 1),
        ("1 (own)", "own", 1),
        ("(own)", "own", 0),
    ]
    rows = named(report)
    assert rows["1"].type == rows["1 (own)"].type == "Block"
    assert [rows[name].calls for name in ("1", "1.many.0", "1.act", "1.unused")] == [1, 1, 2, 0]
    assert rows["1.unused"].forward.mean == 0
    assert rows["1.many"].parameters == 40 and rows["1"].parameters == 12 + 10 + 40
    assert report.total.parameters == sum(row.parameters for row in report.rows) == 20 + 62
    assert report.model == report.total.type == "Sequential"


def test_shared_modules_and_weights_count_once():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            shared = nn.Linear(4, 4, bias=False)
            self.a = nn.Sequential(shared)
            self.b = nn.Sequential(shared, nn.Linear(4, 4, bias=False))
            self.b[1].weight = shared.weight
            self.scale = nn.Parameter(tlc.ones(4))

        def forward(self, x):
            return self.b(self.a(x)) * self.scale

    rows = named(report_of(Twice(), rand(2, 4)))
    assert rows["a.0"].calls == 2
    assert "b.0" not in rows
    assert (rows["a.0"].parameters, rows["b.1"].parameters, rows["(own)"].parameters) == (16, 0, 4)


@dataclass
class Answer:
    values: tlc.Tensor
    note: str = "not a tensor"


class Gives(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what = what

    def forward(self, x):
        return self.what(x)


@pytest.mark.parametrize(
    ("what", "shape"),
    [
        (lambda x: (x + 1, [x[0] * 2, 3]), [(2, 4), (4,)]),
        (lambda x: OrderedDict(a=x.sum(), b={"c": x.T}), [(), (4, 2)]),
        (lambda x: Answer(x * 2), [(2, 4)]),
        (lambda x: None, []),
        (lambda x: "text", []),
    ],
)
def test_whatever_modules_give(what, shape):
    report = report_of(nn.Sequential(Gives(what)), rand(2, 4))
    assert report.rows[0].shape == report.total.shape == shape
    assert "0" in report.table()


def test_functions_only_and_keywords():
    class Functions(nn.Module):
        def forward(self, x, *, scale):
            return (x @ x).relu() * scale

    report = report_of(Functions(), rand(4, 4), kwargs={"scale": rand(4)}, backward=False)
    assert [(row.name, row.role, row.calls) for row in report.rows] == [("Functions", "layer", 1)]
    assert report.containers == []
    assert report.total.forward.median == report.rows[0].forward.median > 0


def test_recurrent_layers():
    model = nn.LSTM(3, 5, num_layers=2)
    row = report_of(model, rand(7, 2, 3), backward=True).rows[0]
    assert row.shape == [(7, 2, 5), (2, 2, 5), (2, 2, 5)]
    assert row.parameters == sum(p.numel() for p in model.parameters())
    assert row.flops > 0 and row.backward.median > 0


def test_operations_are_those_of_the_counter():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 5)).to(DEVICE)
    x = rand(2, 2, 6, 6)
    with FlopCounterMode(display=False) as counter:
        model(x)
    report = report_of(model, x, backward=True)
    assert report.total.flops == counter.get_total_flops()
    assert [row.flops for row in report.rows] == [2 * 96 * 18, 0, 0, 2 * 2 * 48 * 5, 0]


# -- memory and devices ---------------------------------------------------------------------------


class Adds(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(8, 8)
        )

    def forward(self, x):
        return self.body(x) + x


def test_memory_that_is_given_counts_once():
    report = report_of(Adds(), rand(16, 8))
    memory = {row.name: row.memory for row in report.rows}
    one = 16 * 8 * 4
    assert memory == {
        "body.0": one, "body.1": 0, "body.2": 0, "body.3": one, "body (own)": 0, "(own)": one,
    }  # fmt: skip
    assert report.total.memory == 3 * one
    assert named(report)["body"].memory == 2 * one
    assert report.total.saved is None


def test_memory_that_autograd_keeps_counts_once():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.act, self.second = nn.Linear(8, 8), nn.Sigmoid(), nn.Linear(8, 4)

        def forward(self, x):
            y = self.act(self.first(x))
            return (self.second(y), y.exp())

    report = report_of(Keeps(), rand(16, 8), backward=True)
    saved = {row.name: row.saved for row in report.rows}
    one = 16 * 8 * 4
    # the input is the caller's; Sigmoid keeps its result, which Linear needs, too; exp its own
    assert saved == {"first": 0, "act": one, "second": 0, "(own)": one}


class Elsewhere(nn.Module):
    def forward(self, x):
        return x.to(OTHER)


class Home(nn.Module):
    def forward(self, x):
        return x.to(DEVICE)


def test_copies_between_devices():
    report = report_of(nn.Sequential(nn.ReLU(), Elsewhere(), nn.ReLU(), Home()), rand(3, 4))
    here, there = str(rand(1).device), str(tlc.empty(1, device=OTHER).device)
    assert [row.device for row in report.rows] == [
        here, f"{here} -> {there}", there, f"{there} -> {here}", here,
    ]  # fmt: skip
    assert [(row.copies, row.copied) for row in report.rows] == [
        (0, 0), (1, 48), (0, 0), (1, 48), (0, 0),
    ]  # fmt: skip
    assert report.total.copies == 2 and report.total.device == here
    assert "Copies" in report.table()
    back = report_of(
        nn.Sequential(Elsewhere(), Home()), rand(3, 4, requires_grad=True), backward=True
    )
    assert [row.copies for row in back.rows] == [2, 2, 0]  # and their gradients


# -- what stays as it was -------------------------------------------------------------------------


def no_hooks(model):
    tables = "_forward_pre_hooks _forward_hooks _backward_hooks _backward_pre_hooks".split()
    watchers = (hooks.around_op, hooks.around_gradient, hooks.on_wait, hooks.on_node)
    return not any(watchers) and not any(
        getattr(module, table) for module in model.modules() for table in tables
    )


def test_the_model_is_as_it_was():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 4))
    model = model.to(DEVICE)
    model[3].eval()
    model[0].weight.grad = rand(4, 4)
    grad, state = model[0].weight.grad, {k: v.clone() for k, v in model.state_dict().items()}
    outer = rand(8, 4, requires_grad=True)
    x = outer * 2
    tlc.manual_seed(3)
    expected = rand(3)
    tlc.manual_seed(3)
    for backward in (False, True):
        report_of(model, x, backward=backward)
    assert tlc.equal(rand(3), expected)
    assert [module.training for module in model] == [True, True, True, False]
    assert all(tlc.equal(value, state[name]) for name, value in model.state_dict().items())
    assert model[0].weight.grad is grad and model[3].weight.grad is None
    assert no_hooks(model)
    assert outer.grad is None and x.grad_fn is not None
    model(x).sum().backward()  # the graph that made the input is there still
    assert outer.grad is not None


@pytest.mark.parametrize("at", [1, 2, 4])
def test_errors_of_the_model_pass(at):
    class Fails(nn.Module):
        calls = 0

        def forward(self, x):
            self.calls += 1
            tlc.rand(1, device=DEVICE)
            if self.calls == at:  # in the warm-up, when it is looked at, in a trial
                raise LookupError("of the model")
            return x

    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), Fails()))
    tlc.manual_seed(3)
    before = tlc.get_rng_state()
    with pytest.raises(LookupError, match="of the model"):
        report_of(model, rand(2, 4, generator=tlc.Generator(DEVICE)), trials=5, backward=True)
    assert no_hooks(model)
    if DEVICE == "cpu":
        assert tlc.equal(tlc.get_rng_state()[8:], before[8:])
    assert model[0][0].weight.grad is None
    assert report_of(model, rand(2, 4)).total.calls == 1


def test_errors_that_the_model_catches():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            for _ in range(300):  # more than what noting a call may seem to cost
                x = x + 1
            raise KeyError(self.inner(x).sum())

    class Catches(nn.Module):
        def __init__(self):
            super().__init__()
            self.attempt, self.after = Fails(), nn.Linear(4, 4)

        def forward(self, x):
            try:
                self.attempt(x)
            except KeyError:
                return self.after(x)

    rows = named(report_of(Catches(), rand(2, 4), backward=True))
    # On a device only calls that return are timed.
    assert rows["attempt (own)"].forward_host.median > 0
    assert rows["after"].backward.median > 0
    assert rows["attempt.inner"].backward.median == 0


def test_gradients_are_those_without_hooks():
    model = Adds().to(DEVICE)
    x = rand(4, 8)
    model(x).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    found = []

    def loss(y):
        found.append([p.grad for p in model.parameters()])
        return y.sum()

    model.zero_grad()
    seen = []
    handle = model.body[0].weight.register_post_accumulate_grad_hook(
        lambda p: seen.append(p.grad.clone())
    )
    report_of(model, x, backward=True, loss=loss)
    handle.remove()
    assert all(grads == [None] * 4 for grads in found)  # each run begins without
    assert len(seen) == 6 and all(tlc.equal(grad, expected[0]) for grad in seen)


def test_lazy_modules():
    model = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU())
    report = report_of(model, rand(2, 3), warmup=1, backward=True)
    assert [row.type for row in report.rows] == ["Linear", "BatchNorm1d", "ReLU", "Sequential"]
    assert report.total.parameters == 16 + 8


def test_two_at_once():
    shared = nn.Linear(4, 4).to(DEVICE)
    found = []

    def run():
        model = nn.Sequential(shared, nn.Linear(4, 4))
        found.append(report_of(model, rand(2, 4), trials=30))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[row.calls for row in report.rows] for report in found] == [[1, 1, 1]] * 2
    assert no_hooks(shared)


def test_layer_report_invalid_arguments_raise():
    model, x = nn.Linear(4, 4), rand(2, 4)
    with pytest.raises(TypeError, match="takes a Module, not function"):
        layers(lambda x: x, x)
    with pytest.raises(ValueError, match="at least 1 trial and 1 warmup run, not 0 and 5"):
        report_of(model, x, trials=0, warmup=5)
    with pytest.raises(ValueError, match="not 3 and 0"):
        report_of(model, x, trials=3, warmup=0)
    with pytest.raises(RuntimeError, match="nothing that the model gives requires a gradient"):
        report_of(nn.ReLU(), x, backward=True)
    with pytest.raises(RuntimeError, match="scalar"):
        report_of(model, x, backward=True, loss=lambda y: y)
    with pytest.raises(TypeError, match="required positional argument"):
        report_of(model)
    assert no_hooks(model)


def test_progress(capsys, monkeypatch):
    report_of(nn.ReLU(), rand(2), progress=True, trials=18)
    assert "layers" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    report_of(nn.ReLU(), rand(2), progress=True, trials=18)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[-1] == "layers: 26 of 26 runs"
    report_of(nn.ReLU(), rand(2), progress=False)
    assert capsys.readouterr().err == ""
