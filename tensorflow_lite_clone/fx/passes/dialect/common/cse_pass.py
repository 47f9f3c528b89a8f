"""Equal calls done once, as ``torch.fx.passes.dialect.common.cse_pass``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.fx.passes.infra.pass_base import PassBase, PassResult
from tensorflow_lite_clone.ops.namespaces import aten
from tensorflow_lite_clone.utils._pytree import tree_flatten

__all__ = ["CSEPass", "get_CSE_banned_ops"]

_RANDOM = """
    dropout bernoulli multinomial native_dropout normal poisson rrelu rand_like rand randint randn
    randperm
    """
_IN_PLACE = "add_ sub_ mul_ div_ pow_ lerp_ relu_ sigmoid_ tanh_"


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802  PyTorch's name
    """Operations whose calls are not equal though their arguments are: they draw, or write."""
    return {getattr(aten, name) for name in (_RANDOM + _IN_PLACE).split() if hasattr(aten, name)}


class CSEPass(PassBase):
    """A pass after which nodes with the same target and arguments are one node.

    Except for calls of `banned_ops`, operations of ``torch.ops``. Graphs must be of functions; what
    writes into its arguments must be among `banned_ops`, see `get_CSE_banned_ops`.
    """

    def __init__(self, banned_ops: Iterable[Any] | None = None) -> None:
        self.banned_ops = set(banned_ops or ())

    def call(self, graph_module: GraphModule) -> PassResult:
        """A new module if there are equal calls, else the same one."""
        graph = Graph()
        copies: dict[Node, Node] = {}
        known: dict[Any, list[tuple[Any, Node]]] = {}  # by hash: what was called, and the node
        modified = False
        for node in graph_module.graph.nodes:
            target = getattr(node.target, "overloadpacket", node.target)
            if node.op in ("placeholder", "output", "get_attr") or target in self.banned_ops:
                copies[node] = graph.node_copy(node, copies.__getitem__)
                continue
            leaves, spec = tree_flatten((node.args, node.kwargs))
            values = [copies[x] if isinstance(x, Node) else x for x in leaves]
            call = (node.target, [(type(x), x) for x in values], spec)
            same = known.setdefault((node.target, len(values), str(values)), [])
            found = [copy for other, copy in same if other == call]
            if found:
                modified = True
                copies[node] = found[0]
            else:
                copies[node] = graph.node_copy(node, copies.__getitem__)
                same.append((call, copies[node]))
        return PassResult(GraphModule(graph_module, graph) if modified else graph_module, modified)
