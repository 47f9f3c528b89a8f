"""The autograd graph: nodes, edges and names are PyTorch's; gradients and freed graphs."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, viz
from tests.device import DEVICE
from tests.viz.nets import arrows, labels, mlp, node, ones


def outputs(library: Any, name: str, device: str) -> Any:
    """What a small program computes in either library."""
    x = library.ones(2, 4, device=device, requires_grad=True)
    w = library.ones(4, 4, device=device, requires_grad=True)
    if name == "residual":
        return (x + library.relu(x @ w)).sum()
    if name == "view and in place":
        y = x * 2
        y.relu_()
        return y.view(-1).exp().sum()
    if name == "several outputs":
        first, second = (x @ w).split(1)
        return (first * second).max(1).values
    h = x
    for _ in range(3):  # a recurrent net
        h = library.tanh(x @ w + h @ w)
    return library.stack([h, h]).mean()


def walk(output: Any) -> tuple[list[str], list[tuple[str, str]]]:
    """The names and the edges of torch's graph."""
    seen, stack, edges = {output.grad_fn}, [output.grad_fn], []
    while stack:
        here = stack.pop()
        for child, _ in here.next_functions:
            if child is not None:
                edges.append((short(child), short(here)))
                if child not in seen:
                    seen.add(child)
                    stack.append(child)
    return sorted(map(short, seen)), sorted(edges)


def short(grad_fn: Any) -> str:
    name = grad_fn.name().rpartition(":")[2]
    return "leaf" if name == "AccumulateGrad" else name.partition("Backward")[0]


@pytest.mark.parametrize("name", ["residual", "view and in place", "several outputs", "recurrent"])
def test_nodes_and_edges_are_those_of_torch(name: str) -> None:
    expected = walk(outputs(torch, name, "cpu"))
    graph = viz.backward(outputs(tlc, name, DEVICE))
    found = [label for label in labels(graph) + labels(graph, "leaf")]
    assert sorted(found) == expected[0]
    assert sorted([(a, b) for a, b, _ in arrows(graph) if b != "output"]) == expected[1]


def test_a_network_with_its_parameters() -> None:
    model = mlp()
    loss = nn.functional.cross_entropy(model(ones(5, 4)), ones(5, dtype=tlc.int64))
    graph = viz.backward(loss, model)
    assert labels(graph, "parameter") == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert labels(graph) == ["Addmm", "Relu", "Addmm", "NllLoss"]
    weight, relu = node(graph, "0.weight"), node(graph, "Relu")
    assert (weight.shape, weight.dtype, weight.parameters) == ((8, 4), "float32", 32)
    assert (relu.shape, relu.size, relu.op) == ((5, 8), 160, "relu")
    assert relu.device == str(loss.device)
    assert relu.notes["saved"] == "result (5 x 8, 160 B)"
    assert relu.sequence == node(graph, "NllLoss").sequence - 2


@pytest.mark.parametrize(
    "params", [lambda m: m, lambda m: m.named_parameters(), lambda m: dict(m.named_parameters())]
)
def test_names_are_taken_from_a_module_or_pairs(params: Any) -> None:
    model = mlp()
    assert "2.bias" in labels(viz.backward(model(ones(1, 4)), params(model)), "parameter")


def test_views_and_writes_are_marked() -> None:
    x = ones(2, 3, requires_grad=True) * 1
    x[0].add_(1)
    graph = viz.backward(x.t().sum())
    assert ("Mul", "Select", "view") in arrows(graph)
    assert ("Mul", "CopySlices", "inplace") in arrows(graph)
    assert ("CopySlices", "Transpose", "view") in arrows(graph)
    assert node(graph, "CopySlices").inplace
    assert node(graph, "Transpose").view


def test_a_saved_value_that_was_overwritten_is_said() -> None:
    y = ones(3, requires_grad=True).exp()
    z = y.sum()
    assert "overwritten" not in node(viz.backward(z), "Exp").notes
    y.detach().add_(1)
    assert "at version 1, but was saved at 0" in node(viz.backward(z), "Exp").notes["overwritten"]
    with pytest.raises(RuntimeError, match="is at version 1"):
        z.backward()


def test_gradients_are_those_of_a_backward_pass_and_leave_no_trace() -> None:
    x = ones(3, requires_grad=True)
    y = x * 2
    y.retain_grad()
    loss = (y * y).sum()
    graph = viz.backward(loss, {"x": x}, gradients=True)
    assert x.grad is None
    assert y.grad is None
    loss.backward()  # the graph is whole
    assert node(graph, "x").gradient == pytest.approx(x.grad.norm().item())
    assert [n.gradient for n in graph.nodes.values() if n.label == "Mul"] == pytest.approx(
        [y.grad.norm().item(), math.sqrt(3)]
    )
    freed = viz.backward(loss, {"x": x}, gradients=True)  # now they are those in .grad
    assert node(freed, "x").gradient == pytest.approx(x.grad.norm().item())
    assert node(freed, "Sum").gradient is None
    assert [n.notes.get("saved") for n in freed.nodes.values()].count(
        "freed by a backward pass"
    ) == 2


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_broken_gradients_are_red(bad: float) -> None:
    x = ones(3, requires_grad=True)
    graph = viz.backward((x * bad + x).sum(), {"x": x}, gradients=True)
    assert str(node(graph, "x").gradient) == str(bad)
    assert math.isfinite(node(graph, "Add").gradient)
    (line,) = [line for line in graph.to_dot().splitlines() if 'label="x' in line]
    assert f"|grad| {bad}" in line
    assert "#b00020" in line


def test_norms_of_half_precision_do_not_overflow() -> None:
    x = ones(4096, dtype=tlc.float16, requires_grad=True)
    graph = viz.backward((x * 30000).sum(), {"x": x}, gradients=True)
    assert node(graph, "x").gradient == pytest.approx(30000 * 64, rel=1e-3)


def test_hooks_that_hold_their_tensor_do_not_matter() -> None:
    x = ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * y.detach())
    y.grad_fn.metadata["cycle"] = y
    graph = viz.backward(y.sum(), gradients=True)
    assert labels(graph) == ["Mul", "Sum"]
    assert labels(graph, "leaf") == ["leaf"]


def test_leaves_that_are_gone_and_outputs_that_are_leaves() -> None:
    y = ones(3, requires_grad=True) * 2
    assert node(viz.backward(y), "leaf").notes["tensor"] == "does not exist any more"
    x = ones(3, requires_grad=True)
    assert arrows(viz.backward([x, x * 2], {"x": x})) == [
        ("x", "Mul", "data"), ("x", "output", "data"), ("Mul", "output", "data"),
    ]  # fmt: skip


def test_functions_of_ones_own() -> None:
    class Twice(tlc.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    loss = Twice.apply(ones(3, requires_grad=True)).sum()
    assert labels(viz.backward(loss)) == ["Twice", "Sum"]


def test_no_graph_no_picture() -> None:
    with pytest.raises(RuntimeError, match="no graph to draw"):
        viz.backward(ones(3))
