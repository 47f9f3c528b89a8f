"""What a pass over a graph is, as ``torch.fx.passes.infra.pass_base``."""

from __future__ import annotations

import abc
from typing import NamedTuple

from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass gives: a module, and whether that is another than before."""

    graph_module: Module
    modified: bool


class PassBase(abc.ABC):
    """A pass: it is called with a module, and derived classes define `call`."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        """`requires`, `call`, `ensures`; returns what `call` does."""
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """What the pass makes of a module."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027  optional
        """Raise an error unless a module is such as the pass needs it."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027  optional
        """Raise an error unless a module is such as the pass leaves it."""
