"""Layers fused or removed for inference, as ``torch.fx.experimental.optimization``."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from tensorflow_lite_clone.fx._symbolic_trace import symbolic_trace
from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.interpreter import Transformer
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.nn import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    Dropout,
    Linear,
)
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "remove_dropout",
    "replace_node_module",
]


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Whether a node calls a module of the second class on what one of the first class gives."""
    nodes = (*node.args[:1], node)
    return len(nodes) == 2 and all(
        isinstance(item, Node)
        and item.op == "call_module"
        and type(modules.get(item.target)) is kind  # type: ignore[arg-type]
        for item, kind in zip(nodes, pattern, strict=True)
    )


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Put a module in the place of that which a node calls; `modules` are all, by name."""
    parent, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """A module in which batch norms are part of the convolutions or linear layers before them.

    It is for inference: AssertionError for layers that are not in evaluation mode. Fused are layers
    whose result nothing else uses, with norms that track statistics. The model stays as it is,
    unless `inplace`; with `no_trace` a `GraphModule` is not traced again::

        fused = fuse(torchvision.models.resnet18().eval())
    """
    patterns = [
        (Conv1d, BatchNorm1d),
        (Conv2d, BatchNorm2d),
        (Conv3d, BatchNorm3d),
        (Linear, BatchNorm1d),
    ]
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in patterns:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules):
                continue
            layer, norm = modules[node.args[0].target], modules[node.target]
            if len(node.args[0].users) > 1 or not norm.track_running_stats:
                continue
            fuse_layers = fuse_linear_bn_eval if pattern[0] is Linear else fuse_conv_bn_eval
            replace_node_module(node.args[0], modules, fuse_layers(layer, norm))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> GraphModule:
    """A module that does what `model` does without its `Dropout` layers."""
    return _WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module that computes `outputs`, a list, of `inputs` by `nodes`, which are in order."""
    graph = Graph()
    copies = {node: graph.placeholder(node.name) for node in inputs}
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
