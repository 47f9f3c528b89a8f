"""Types of items from types of sequences, as ``torch.fx.passes.annotate_getitem_nodes``."""

from __future__ import annotations

import operator
import typing
from typing import Any

from tensorflow_lite_clone.fx.graph import Graph

__all__ = ["annotate_getitem_nodes"]


def annotate_getitem_nodes(graph: Graph) -> None:
    """Give nodes that take items of annotated tuples, lists and named tuples their types."""
    for node in graph.nodes:
        if node.target is operator.getitem:
            sequence, index = node.args
            kind: Any = sequence.type
            fields = getattr(kind, "_fields", None)
            if fields is not None:
                node.type = kind.__annotations__[fields[index]]
                continue
            types = typing.get_args(kind)
            origin = typing.get_origin(kind)
            if origin is list:
                node.type = types[0]
            elif origin is tuple:
                same = len(types) == 2 and types[1] is Ellipsis
                if not same and len(types) <= index:
                    raise AssertionError(f"Index {index} out of range for {kind}")
                node.type = types[0] if same else types[index]
