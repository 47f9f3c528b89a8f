"""What models run: operations, modules, parameters, views, writes; and that nothing is changed."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, viz
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.nn.modules.hooks import _has_any_global_hook
from tensorflow_lite_clone.vision.models import resnet18
from tests.device import DEVICE
from tests.viz.nets import Blocks, arrows, labels, mlp, node, ones


def test_a_network() -> None:
    graph = viz.forward(mlp(), ones(5, 4))
    assert labels(graph) == ["linear", "relu_", "linear"]
    assert labels(graph, "input") == ["input"]
    assert labels(graph, "parameter") == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert [(g.label, g.kind) for g in graph.groups.values()] == [
        ("0", "Linear"), ("1", "ReLU"), ("2", "Linear"),
    ]  # fmt: skip
    relu = node(graph, "relu_")
    assert (relu.shape, relu.dtype, relu.size, relu.group) == ((5, 8), "float32", 160, "/1")
    assert relu.inplace
    assert relu.notes["version"] == "1 of this memory"
    assert "called at" not in relu.notes  # the model is the framework's own
    assert arrows(graph) == [
        ("input", "linear", "data"), ("0.weight", "linear", "data"), ("0.bias", "linear", "data"),
        ("linear", "relu_", "inplace"), ("relu_", "linear", "data"),
        ("2.weight", "linear", "data"), ("2.bias", "linear", "data"), ("linear", "output", "data"),
    ]  # fmt: skip


def test_residual_blocks_lie_in_their_modules() -> None:
    graph = viz.forward(Blocks(2).to(DEVICE), ones(2, 3))
    assert labels(graph) == ["linear", "linear", "relu", "add"] + [
        "linear",
        "relu",
        "add",
        "linear",
    ]
    assert [n.group for n in graph.nodes.values() if n.label == "add"] == [
        "/blocks.0", "/blocks.1",
    ]  # fmt: skip
    inner = graph.groups["/blocks.1/linear"]
    assert (inner.label, inner.parent, inner.notes["module"]) == (
        "linear", "/blocks.1", "blocks.1.linear",
    )  # fmt: skip
    assert arrows(graph).count(("add", "add", "data")) == 1
    assert node(graph, "image").kind == "input"
    places = [n.notes["called at"] for n in graph.nodes.values() if n.label == "add"]
    assert places[0] == places[1]
    assert places[0].startswith("nets.py, line")


def test_resnet18() -> None:
    model = resnet18().to(DEVICE)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    graph = viz.forward(model, ones(2, 3, 32, 32))
    counts = {label: labels(graph).count(label) for label in set(labels(graph))}
    assert counts["batch_norm"] == 20
    assert counts["conv"] == 20
    assert counts["relu_"] == 17
    parameters = [n for n in graph.nodes.values() if n.kind == "parameter"]
    assert sorted(n.label for n in parameters) == sorted(dict(model.named_parameters()))
    assert sum(n.parameters for n in parameters) == 11_689_512
    assert labels(graph, "buffer").count("bn1.running_mean") == 1
    if DEVICE != "cuda":  # a GPU's kernel writes the statistics, which no hook tells
        assert ("bn1.running_mean", "batch_norm", "inplace") in arrows(graph)
    assert graph.groups["/layer2/0/relu (call 2)"].notes["module"] == "layer2.0.relu"
    for name, value in model.state_dict().items():  # running statistics too
        assert tlc.equal(value, before[name])


def test_an_lstm() -> None:
    graph = viz.forward(nn.LSTM(4, 5, 2).to(DEVICE), ones(7, 2, 4))
    assert labels(graph).count("lstm") == 2
    assert len(labels(graph, "parameter")) == 8
    assert sorted(labels(graph, "output")) == ["output.0", "output.1.0", "output.1.1"]


def test_an_unrolled_cell_is_called_many_times() -> None:
    cell = nn.LSTMCell(3, 4).to(DEVICE)

    class Unrolled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, x: Any) -> Any:
            h = c = x.new_zeros(2, 4)
            for step in range(x.shape[0]):
                h, c = self.cell(x[step], (h, c))
            return h

    graph = viz.forward(Unrolled(), ones(3, 2, 3))
    assert [group.label for group in graph.groups.values()] == [
        "cell", "cell (call 2)", "cell (call 3)",
    ]  # fmt: skip
    assert len(labels(graph, "parameter")) == 4


def test_views_and_what_is_written_through_them() -> None:
    def run(x: Any) -> Any:
        y = x * 2
        first, second = y[0], y[1]
        first.add_(1)
        return second.exp() + y.sum()

    graph = viz.forward(run, ones(2, 3))
    assert ("mul", "select", "view") in arrows(graph)
    assert ("select", "add_", "inplace") in arrows(graph)
    assert ("add_", "exp", "data") in arrows(graph)  # its memory was written
    assert ("add_", "sum", "data") in arrows(graph)
    assert ("mul", "sum", "data") not in arrows(graph)
    assert node(graph, "mul").notes["number"] in ("2", "2.0")


def test_results_that_are_laid_out_anew_come_from_their_operation() -> None:
    graph = viz.forward(lambda x: x.topk(2), ones(4, 5))
    assert labels(graph, "constant") == []
    assert [arrow for arrow in arrows(graph) if arrow[1].startswith("output")] == [
        ("topk", "output.0", "data"), ("topk", "output.1", "data"),
    ]  # fmt: skip
    attention = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval().to(DEVICE)
    assert labels(viz.forward(attention, ones(2, 5, 16)), "constant") == []


def test_writes_into_what_no_operation_made() -> None:
    def run(x: Any) -> Any:
        number, rows = x.new_tensor(2.0), x.new_ones(2, 3)
        number.add_(1)
        rows.t().mul_(2)
        rows[0].copy_(x[0])
        x.data.zero_()
        return (x + rows) * number

    graph = viz.forward(run, ones(2, 3))
    for name in ("add_", "mul_", "copy_"):
        assert node(graph, name).inplace
    assert ("add_", "mul", "data") in arrows(graph)
    assert ("copy_", "add", "data") in arrows(graph)


def test_the_way_that_was_taken() -> None:
    class Fork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            with contextlib.suppress(RuntimeError):
                self.a(x.new_ones(7))
            return self.b(x) if x.sum() > 0 else self.a(x)

    graph = viz.forward(Fork().to(DEVICE), ones(2))
    assert labels(graph) == ["sum", "gt", "linear"]
    assert node(graph, "linear").group == "/b"


def test_a_shared_module_has_one_weight_and_two_calls() -> None:
    class Shared(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = self.b = nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    graph = viz.forward(Shared().to(DEVICE), ones(2))
    assert list(graph.groups) == ["/a", "/a (call 2)"]
    assert labels(graph, "parameter") == ["a.weight", "a.bias"]


def test_keywords_functions_vmap_and_lazy_modules() -> None:
    def scaled(x: Any, *, by: Any) -> Any:
        return {"out": x * by}

    graph = viz.forward(scaled, ones(2), by=ones(2))
    assert graph.title == "forward of scaled"
    assert labels(graph, "input") == ["x", "by"]
    assert labels(graph, "output") == ["output.out"]
    model = nn.Sequential(mlp(), nn.Tanh())
    step = viz.forward(lambda x: model(x).sum(), ones(2, 4))
    assert list(step.groups)[:3] == ["/Sequential", "/Sequential/0", "/Sequential/0/0"]
    assert labels(step, "parameter")[0] == "Sequential.0.0.weight"
    mapped = viz.forward(tlc.func.vmap(lambda row: row.exp().sum()), ones(2, 3))
    assert [(a, b) for a, b, _ in arrows(mapped)][1:] == [("exp", "sum"), ("sum", "output")]
    lazy = viz.forward(nn.LazyLinear(2).to(DEVICE), ones(2, 3))
    assert labels(lazy, "parameter") == ["weight", "bias"]
    assert viz.forward(lambda: None).nodes == {}


def test_times() -> None:
    graph = viz.forward(mlp(), ones(5, 4), time=True)
    times = [n.time for n in graph.nodes.values() if n.kind == "op"]
    assert all(time > 0 for time in times)
    assert node(graph, "input").time is None


def test_the_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout()).to(DEVICE)
    x = ones(3, 4, requires_grad=True)
    tlc.manual_seed(1)
    expected = tlc.rand(3)
    tlc.manual_seed(1)
    graph = viz.forward(model, x, time=True)
    assert tlc.equal(tlc.rand(3), expected)
    assert model[0].num_batches_tracked.item() == 0
    assert tlc.equal(model[0].running_mean, tlc.zeros(4, device=DEVICE))
    assert x.grad is None
    assert "add_" in labels(graph)


def test_buffers_that_are_replaced_come_back() -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", ones(1))

        def forward(self, x: Any) -> Any:
            self.calls = self.calls + 1
            return x * self.calls

    model = nn.Sequential(nn.LazyBatchNorm1d(), Counts()).to(DEVICE)
    buffer = model[1].calls
    graph = viz.forward(model, ones(3, 4), time=True)
    assert model[1].calls is buffer
    assert buffer.item() == 1
    assert "1.calls" in labels(graph, "buffer")


def watched() -> bool:
    """Whether any hook is left."""
    tables = hooks.around_op, hooks.around_write, hooks.around_function, hooks.on_node
    return any(map(bool, tables)) or _has_any_global_hook()


def test_forward_errors_propagate_and_remove_hooks() -> None:
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        viz.forward(mlp(), ones(5, 5))
    with pytest.raises(TypeError):
        viz.forward(mlp())
    assert not watched()


def test_two_threads_at_once() -> None:
    graphs: dict[int, viz.Graph] = {}
    start = threading.Barrier(2)

    def draw(count: int) -> None:
        model = Blocks(count).to(DEVICE)
        start.wait()
        for _ in range(5):
            graphs[count] = viz.forward(model, ones(2, 3))

    threads = [threading.Thread(target=draw, args=(count,)) for count in (2, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [labels(graphs[count]).count("add") for count in (2, 5)] == [2, 5]
    assert not watched()
