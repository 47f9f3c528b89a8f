"""Repeats are drawn once, and only where that changes no meaning; closed groups; speed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, viz
from tests.device import DEVICE
from tests.viz.nets import Blocks, arrows, irregular, labels, ones


def titles(graph: viz.Graph) -> list[str]:
    return [group.title for group in graph.groups.values()]


def test_equal_modules_in_a_row_become_one() -> None:
    whole = viz.forward(Blocks(12).to(DEVICE), ones(2, 3), time=True)
    folded = whole.fold()
    assert "blocks.0  Residual  x 12" in titles(folded)
    assert labels(folded) == ["linear", "linear", "relu", "add", "linear"]
    assert ("add", "linear", "next") in arrows(folded)
    assert ("add", "linear", "data") in arrows(folded)  # to the head
    for what in ("time", "parameters"):
        sums = [sum(getattr(n, what) or 0 for n in g.nodes.values()) for g in (whole, folded)]
        assert sums[0] == pytest.approx(sums[1])
    assert len(whole.nodes) == 12 * 5 + 8  # as it was


def test_modules_that_differ_stay() -> None:
    layers = [nn.Linear(4, 4) for _ in range(4)] + [nn.Linear(4, 5), nn.Linear(5, 4)]
    graph = viz.modules(nn.Sequential(*layers, nn.Dropout(0.1), nn.Dropout(0.2))).fold()
    assert labels(graph, "module") == [
        "0: Linear", "1: Linear", "2: Linear", "3: Linear", "4: Linear", "5: Linear",
        "6: Dropout", "7: Dropout",
    ]  # fmt: skip
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 12)
    assert "0  TransformerEncoderLayer  x 12" in titles(viz.modules(encoder).fold())


def test_sequences_of_operations_without_modules() -> None:
    w = ones(3, 3, requires_grad=True)
    h = ones(2, 3)
    for _ in range(50):
        h = tlc.tanh(ones(2, 3) @ w + h @ w)
    graph = viz.backward(h.sum(), {"w": w}).fold()
    assert titles(graph) == ["repeated  x 50"]
    assert labels(graph) == ["Mm", "Mm", "Add", "Tanh", "Sum"]
    assert arrows(graph).count(("w", "Mm", "data")) == 2
    assert ("Tanh", "Mm", "next") in arrows(graph)


def test_repeats_within_repeats() -> None:
    y = ones(3, requires_grad=True)
    for _ in range(5):
        for _ in range(5):
            y = y.sin() * 2
        y = y.exp()
    graph = viz.backward(y).fold()
    assert labels(graph) == ["Sin", "Mul", "Exp"]
    outer, inner = graph.groups.values()
    assert (outer.repeats, inner.repeats) == (5, 5)
    assert inner.parent == outer.key
    again = graph.fold()
    assert (again.nodes, again.groups) == (graph.nodes, graph.groups)


def test_equal_branches_side_by_side_and_their_sum() -> None:
    graph = viz.backward(wide(5, 8)).fold()
    assert [node.kind for node in graph.nodes.values()] == [
        "leaf", "leaf", "op", "op", "op", "output",
    ]  # fmt: skip
    assert labels(graph) == ["Mm", "Relu", "Add"]
    stage, branch, total = graph.groups.values()
    assert (stage.repeats, branch.repeats, total.repeats) == (5, 8, 8)
    assert {branch.parent, total.parent} == {stage.key}


def test_fold_keeps_layers_with_other_inputs() -> None:
    x = ones(3, requires_grad=True)
    values = [x]
    for _ in range(12):  # each reads what came half the way back
        values.append(values[-1] + values[len(values) // 2].sin())
    graph = viz.backward(values[-1])
    folded = graph.fold()
    assert len(folded.nodes) == len(graph.nodes)


def test_collapsed_modules_have_the_sums_of_their_contents() -> None:
    whole = viz.forward(Blocks(3).to(DEVICE), ones(2, 3), time=True)
    closed = whole.collapse(0)
    assert labels(closed, "module") == [
        "stem  Linear", "blocks.0  Residual", "blocks.1  Residual", "blocks.2  Residual",
        "head  Linear",
    ]  # fmt: skip
    block = closed.nodes["/blocks.1"]
    assert (block.shape, block.parameters, block.notes["operations"]) == ((2, 4), 20, "3")
    inside = [n.time for n in whole.nodes.values() if n.group.startswith("/blocks.1") and n.time]
    assert block.time == pytest.approx(sum(inside))
    assert ("blocks.0  Residual", "blocks.1  Residual", "data") in arrows(closed)
    assert len(whole.collapse(1).nodes) > len(closed.nodes)
    assert whole.collapse(9) is whole


def chain() -> Any:
    y = ones(3, requires_grad=True)
    for _ in range(2500):
        y = (y * 2).relu()
    return y


def residual() -> Any:
    y = ones(3, 3, requires_grad=True)
    for _ in range(830):
        v, w = (ones(3, 3, requires_grad=True) for _ in range(2))
        y = y + tlc.relu(y @ v) @ w
    return y


def wide(stages: int = 78, branches: int = 16) -> Any:
    y = ones(2, 3, requires_grad=True)
    for _ in range(stages):
        weights = [ones(3, 3, requires_grad=True) for _ in range(branches)]
        for branch in [tlc.relu(y @ w) for w in weights]:
            y = y + branch
    return y


def recurrent() -> Any:
    v, w = (ones(3, 3, requires_grad=True) for _ in range(2))
    h, steps = ones(2, 3), []
    for _ in range(1250):
        h = tlc.tanh(ones(2, 3) @ v + h @ w)
        steps.append(h)
    return tlc.stack(steps).sum()


def processor_seconds() -> float:
    """What this process and those that it waited for have computed, however busy the machine is."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.mark.parametrize("make", [chain, residual, wide, recurrent, irregular])
def test_five_thousand_nodes_are_drawn_in_seconds(make: Callable[[], Any], tmp_path: Path) -> None:
    output = make()
    start = processor_seconds()
    graph = viz.backward(output)
    suffixes = [".dot", ".html"] + [".svg"] * (shutil.which("dot") is not None)
    sizes = [graph.save(tmp_path / f"graph{suffix}").stat().st_size for suffix in suffixes]
    took = processor_seconds() - start
    assert len(graph.nodes) > 4900
    assert all(size > 1000 for size in sizes)
    assert took < 15  # about one second; a machine may be slow, and a quadratic way takes minutes
