"""The largest parts of a graph that somebody can run, as ``torch.fx.passes.infra.partitioner``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.node import Node, _get_qualified_name
from tensorflow_lite_clone.fx.passes.operator_support import OperatorSupportBase
from tensorflow_lite_clone.fx.passes.utils._order import reaches_itself
from tensorflow_lite_clone.fx.passes.utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that go together, each with the number that orders it; the first has the highest."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        nodes = list(nodes or ())
        orders: list[Any] = [None] * len(nodes) if node_orders is None else list(node_orders)
        if len(orders) != len(nodes):
            raise AssertionError("nodes and node_orders must have the same length")
        self.nodes: dict[Node, int | None] = dict(zip(nodes, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of nodes."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Puts the nodes that are supported into partitions, as few as can be, each one node at last.

    Partitions that calculate with one node only are left out, unless `allows_single_node_partition`
    or that node's function is among `allowed_single_node_partition_ops`. `non_compute_ops` are
    functions, by qualified name, that count for nothing there. With `skip_horizontal_fusion`
    partitions grow along their results only. For example::

        partitioner = CapabilityBasedPartitioner(traced, OperatorSupport({"torch.relu": None}))
        fused = partitioner.partition_and_fuse()  # calls fused_0, ...
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """The partitions, each with its nodes in order."""
        growing = _Growing()
        modules = dict(self.graph_module.named_modules())
        ids = itertools.count()
        for order, node in enumerate(reversed(self.graph_module.graph.nodes)):
            candidates: dict[int, None] = {}
            if self.operator_support.is_node_supported(modules, node):
                identity = next(ids)
                growing.begin(identity, node, order)
                candidates[identity] = None
            if not self.skip_horizontal_fusion:
                candidates.update(dict.fromkeys(growing.in_order()))
            elif candidates:
                users = [growing.assigned[user] for user in node.users if user in growing.assigned]
                candidates.update(dict.fromkeys(users))
            if candidates:
                first, *others = candidates
                for other in others:
                    first = growing.merge(first, other)
        for partition in growing.partitions.values():
            ordered = sorted(partition.nodes.items(), key=itemgetter(1), reverse=True)
            partition.nodes = dict(ordered)
        growing.take_items(self.graph_module)
        return [
            partition
            for partition in growing.partitions.values()
            if self._is_large_enough(partition)
        ]

    def _is_large_enough(self, partition: Partition) -> bool:
        if self.allows_single_node_partition:
            return partition.size() > 0
        ignored = {"torch.ops.aten.view", "_operator.getitem", *self.non_compute_ops}
        names = [_get_qualified_name(n.target) for n in partition.nodes if n.op == "call_function"]  # type: ignore
        counted = [name for name in names if name not in ignored]
        allowed = [name for name in names if name in self.allowed_single_node_partition_ops]
        return len(counted) + len(allowed) > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Make each partition a module of its own; returns the module, which calls these."""
        nodes = [partition.nodes for partition in partitions]
        return fuse_by_partitions(self.graph_module, nodes, prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove nodes of `non_compute_ops` from the beginnings and ends of partitions."""
        for partition in partitions:
            for towards in ("all_input_nodes", "users"):
                nodes = list(partition.nodes)
                for node in nodes if towards == "all_input_nodes" else reversed(nodes):
                    on_border = not any(near in partition.nodes for near in getattr(node, towards))
                    if on_border and self._is_non_compute(node):
                        partition.remove_node(node)

    def _is_non_compute(self, node: Node) -> bool:
        if node.op != "call_function":
            return False
        return _get_qualified_name(node.target) in self.non_compute_ops  # type: ignore[arg-type]

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """`propose_partitions`, then `fuse_partitions`."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)


class _Growing:
    """Partitions that are merged as long as none comes to depend on itself."""

    def __init__(self) -> None:
        self.partitions: dict[int, Partition] = {}
        self.assigned: dict[Node, int] = {}
        self._orders: dict[int, int] = {}  # of the last node of each

    def begin(self, identity: int, node: Node, order: int) -> None:
        self.partitions[identity] = Partition(identity, [node], [order])
        self.assigned[node] = self._orders[identity] = identity

    def in_order(self) -> list[int]:
        """The partitions, that with the last node first."""
        return sorted(self._orders, key=self._orders.__getitem__)

    def merge(self, one: int, other: int) -> int:
        """Merge two partitions if that may be; which one is left, or the first."""
        if one == other:
            return one
        nodes = {**self.partitions[one].nodes, **self.partitions[other].nodes}
        if reaches_itself(nodes, self._together):
            return one
        small = len(self.partitions[one].nodes) < len(self.partitions[other].nodes)
        left, removed = (other, one) if small else (one, other)
        moved = self.partitions.pop(removed).nodes
        self.partitions[left].nodes.update(moved)
        self.assigned.update(dict.fromkeys(moved, left))
        self._orders[left] = min(self._orders[left], self._orders.pop(removed))
        return left

    def _together(self, node: Node) -> Iterable[Node]:
        """A node, with the others of its partition."""
        identity = self.assigned.get(node)
        return [node] if identity is None else self.partitions[identity].nodes

    def take_items(self, graph_module: GraphModule) -> None:
        """Move the nodes that take items of a result into the partition of that."""
        moved = True
        while moved:
            moved = False
            for node in graph_module.graph.nodes:
                if not all(_takes_item(user) for user in node.users):
                    continue
                identity = self.assigned.get(node)
                for user in node.users:
                    if self.assigned.get(user) != identity:
                        moved = True
                        self._move(user, identity)

    def _move(self, node: Node, identity: int | None) -> None:
        if node in self.assigned:
            self.partitions[self.assigned.pop(node)].remove_node(node)
        if identity is not None:
            self.assigned[node] = identity
            self.partitions[identity].add_node(node)


def _takes_item(node: Node) -> bool:
    if node.op != "call_function":
        return False
    return _get_qualified_name(node.target) == "_operator.getitem"  # type: ignore[arg-type]
