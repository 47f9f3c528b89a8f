"""Graphs that backends of ``torch.compile`` are given: those that PyTorch gives them."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pytest
import torch
import torch._dynamo

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone._dynamo
from tests.compiler.programs import PROGRAMS


class Record:
    """What a program printed and returned, and the graphs that a backend was given."""

    def __init__(self, module: Any, make: Any) -> None:
        self.graphs: list[list[tuple[str, str]]] = []
        self.inputs: list[list[tuple]] = []
        function, calls = make(module)
        self.results: list[Any] = []
        module._dynamo.reset()
        compiled = module.compile(function, backend=self.backend)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            for number, call in enumerate(calls):
                named = call[-1] if isinstance(call[-1], dict) else {}
                module.manual_seed(number)
                result = compiled(*call[: len(call) - bool(named)], **named)
                self.results.append(plain(result))
        self.printed = printed.getvalue()

    def backend(self, graph_module: Any, example_inputs: list[Any]) -> Any:
        """Note the graph, and run it as it is."""
        nodes = graph_module.graph.nodes
        self.graphs.append([(node.op, node.name) for node in nodes if node.op != "output"])
        self.inputs.append([tuple(x.shape) for x in example_inputs])
        return graph_module.forward


def plain(value: Any) -> Any:
    """A result with arrays in the place of tensors."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    if isinstance(value, (torch.Tensor, tlc.Tensor)):
        return value.detach().numpy(), value.requires_grad
    return value


def assert_alike(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, dict):
        assert ours.keys() == theirs.keys()
        ours, theirs = [*ours.values()], [*theirs.values()]
    if isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other)
    elif isinstance(theirs, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)
    else:
        assert ours == theirs


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_results_and_prints_are_those_of_pytorch(name: str) -> None:
    ours, theirs = Record(tlc, PROGRAMS[name]), Record(torch, PROGRAMS[name])
    assert_alike(ours.results, theirs.results)
    assert ours.printed == theirs.printed
    assert ours.graphs == theirs.graphs
    assert ours.inputs == theirs.inputs


def test_code_of_a_graph() -> None:
    graphs = tlc._dynamo.testing.EagerAndRecordGraphs()
    linear = tlc.nn.Linear(2, 2)

    @tlc.compile(backend=graphs)
    def f(x: Any) -> Any:
        return tlc.relu(linear(x)).sum(dim=0)

    f(tlc.ones(3, 2))
    (module,) = graphs.graphs
    assert [str(node.target) for node in module.graph.find_nodes(op="call_method")] == ["sum"]
    assert "torch.relu(linear)" in module.code and "relu.sum(dim = 0)" in module.code
    assert [node.meta["example_value"].shape for node in module.graph.nodes if node.meta][-1] == (
        2,
    )
    assert "in f" in [*module.graph.nodes][-2].meta["stack_trace"]


def test_gradients_flow_through_graphs_and_of_every_order() -> None:
    compiled = tlc.compile(lambda x: (x**3).sum(), backend="eager")
    x = tlc.tensor([1.0, 2.0], requires_grad=True)
    (first,) = tlc.autograd.grad(compiled(x), x, create_graph=True)
    (second,) = tlc.autograd.grad(first.sum(), x)
    assert first.tolist() == [3.0, 12.0] and second.tolist() == [6.0, 12.0]


def test_a_training_loop() -> None:
    losses = []
    for compiled in (False, True):
        tlc.manual_seed(0)
        model = tlc.nn.Sequential(tlc.nn.Linear(3, 4), tlc.nn.BatchNorm1d(4), tlc.nn.Dropout(0.2))
        optimizer = tlc.optim.Adam(model.parameters(), lr=0.1)
        found: Any = tlc.compile(model, backend="eager") if compiled else model
        losses.append([])
        for _ in range(3):
            optimizer.zero_grad()
            loss = found(tlc.randn(5, 3)).pow(2).mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1]


def test_a_step_with_backward_and_optimizer_inside() -> None:
    weights = []
    for compiled in (False, True):
        tlc.manual_seed(0)
        model = tlc.nn.Linear(3, 1)
        optimizer = tlc.optim.SGD(model.parameters(), lr=0.5)

        def step(x: Any) -> Any:
            optimizer.zero_grad()  # noqa: B023  called in the loop
            loss = model(x).pow(2).sum() * 10  # noqa: B023
            loss.backward()
            tlc.nn.utils.clip_grad_norm_(model.parameters(), 0.1)  # noqa: B023
            optimizer.step()  # noqa: B023
            return loss.detach()

        call = tlc.compile(step, backend="eager") if compiled else step
        found = [call(tlc.randn(2, 3)).item() for _ in range(3)]
        weights.append((found, model.weight.tolist()))
    assert weights[0] == weights[1]
