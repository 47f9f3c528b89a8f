"""The tree of modules."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, viz
from tensorflow_lite_clone.vision.models import resnet18
from tests.viz.nets import labels, mlp


def test_a_network() -> None:
    graph = viz.modules(mlp())
    assert labels(graph, "module") == ["0: Linear", "1: ReLU", "2: Linear"]
    first = graph.nodes["0"]
    assert (first.parameters, first.notes["weight"]) == (40, "8 x 4  float32")
    assert first.notes["settings"] == "in_features=4, out_features=8, bias=True"
    assert graph.groups["model"].title == "Sequential"
    assert graph.groups["model"].notes == {"parameters": "67"}
    assert {edge.kind for edge in graph.edges} == {"order"}


def test_resnet18() -> None:
    model = resnet18()
    graph = viz.modules(model)
    names = [name for name, module in model.named_modules() if not list(module.children())]
    assert list(graph.nodes) == names
    assert graph.groups["layer2.0.downsample"].parent == "layer2.0"
    assert sum(node.parameters for node in graph.nodes.values()) == 11_689_512
    assert graph.nodes["bn1"].notes["running_mean"] == "64  float32"


def test_shared_lazy_and_single_modules() -> None:
    shared = nn.Linear(2, 2)
    model = nn.Sequential(shared, nn.LazyLinear(3), nn.Sequential(shared))
    graph = viz.modules(model)
    assert labels(graph, "module") == ["0: Linear", "1: LazyLinear", "0: Linear  (again 0)"]
    assert graph.nodes["1"].notes["weight"] == "not known yet  float32"
    assert labels(viz.modules(nn.ReLU()), "module") == ["ReLU"]
    with pytest.raises(TypeError, match="expected a module, got int"):
        viz.modules(3)


def test_parameters_that_a_module_with_children_owns() -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16)
    graph = viz.modules(model)
    weight = graph.nodes["self_attn.in_proj_weight"]
    assert (weight.kind, weight.group, weight.shape) == ("parameter", "self_attn", (24, 8))
    assert (weight.size, weight.parameters) == (24 * 8 * 4, 24 * 8)
    total = sum(p.numel() for p in model.parameters())
    assert sum(node.parameters for node in graph.nodes.values()) == total
    order = [edge.target for edge in graph.edges]
    assert order == list(graph.nodes)[1:]


def test_lazy_parameters_beside_children() -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    model.register_parameter("scale", nn.UninitializedParameter())
    model.register_parameter("absent", None)
    shift = nn.Parameter(tlc.zeros(3))
    model.register_parameter("shift", shift)
    graph = viz.modules(model)
    assert list(graph.nodes) == ["scale", "shift", "0"]
    assert [graph.nodes[key].parameters for key in graph.nodes] == [0, 3, 6]
    assert graph.nodes["scale"].shape is None
    assert "shift" in graph.to_dot()
