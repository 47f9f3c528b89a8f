"""Small networks whose graphs are known, on the device under test."""

from __future__ import annotations

from typing import Any

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, viz
from tests.device import DEVICE


def mlp() -> nn.Module:
    """Two linear layers around an in-place ReLU."""
    tlc.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(inplace=True), nn.Linear(8, 3)).to(DEVICE)


class Residual(nn.Module):
    """A block whose input is added to its output."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        """The block."""
        return x + self.act(self.linear(x))


class Blocks(nn.Module):
    """Equal residual blocks in a row, with something before and after."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.stem = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([Residual() for _ in range(count)])
        self.head = nn.Linear(4, 2)

    def forward(self, image: Any) -> Any:
        """The network."""
        x = self.stem(image)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def ones(*shape: int, **options: Any) -> Any:
    """Ones on the device under test."""
    return tlc.ones(*shape, device=DEVICE, **options)


def labels(graph: viz.Graph, kind: str = "op") -> list[str]:
    """The labels of the nodes of a kind, in order."""
    return [node.label for node in graph.nodes.values() if node.kind == kind]


def arrows(graph: viz.Graph) -> list[tuple[str, str, str]]:
    """The edges as (label of the source, label of the target, kind)."""
    nodes = graph.nodes
    return [(nodes[e.source].label, nodes[e.target].label, e.kind) for e in graph.edges]


def node(graph: viz.Graph, label: str) -> viz.Node:
    """The only node of a label."""
    (found,) = [node for node in graph.nodes.values() if node.label == label]
    return found


def irregular(length: int = 5000) -> Any:
    """The last of a chain of operations in which nothing repeats."""
    state, y = 1, ones(3, requires_grad=True)
    for _ in range(length):
        state = state * 1103515245 + 12345 & 0x7FFFFFFF  # the generator of ISO C's example
        y = (tlc.sin, tlc.cos, tlc.exp, tlc.tanh, tlc.relu)[(state >> 16) % 5](y)
    return y
