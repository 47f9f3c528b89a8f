"""Which nodes somebody can run, as ``torch.fx.passes.operator_support``."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.fx.node import Node
from tensorflow_lite_clone.fx.passes.shape_prop import TensorMetadata
from tensorflow_lite_clone.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = [
    "OpSupports",
    "OperatorSupport",
    "OperatorSupportBase",
    "any_chain",
    "chain",
    "create_op_support",
]

IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]
#: By what a node calls (see `get_node_target`): the dtypes of its arguments, or None for any.
SupportDict = Mapping[str, Any]


class OperatorSupportBase(abc.ABC):
    """Says whether a node is supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether a node is supported, of a module with these submodules by name."""
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """Supports what is in a dictionary, of arguments with certain dtypes.

    An entry is None, or ``((dtypes or None, ...), {name: dtypes, ...})`` for positional arguments
    and keywords; dtypes are as `ShapeProp` noted them. Nodes that call nothing are supported.
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        if self._support_dict[target] is None:
            return True
        positional, named = self._support_dict[target]
        checks = [
            *zip(node.args, positional, strict=False),
            *((node.kwargs[name], dtypes) for name, dtypes in named.items() if name in node.kwargs),
        ]
        return all(
            dtypes is None or not isinstance(arg, Node) or _get_arg_dtype(arg) in dtypes
            for arg, dtypes in checks
        )


class _Functional(OperatorSupportBase):
    def __init__(self, function: IsNodeSupported) -> None:
        self._function = function

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """What supports the nodes for which a function of submodules and node is true."""
    return _Functional(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What supports the nodes that all of these support."""
    return _Functional(lambda mods, node: all(x.is_node_supported(mods, node) for x in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What supports the nodes that one of these supports."""
    return _Functional(lambda mods, node: any(x.is_node_supported(mods, node) for x in op_support))


class OpSupports:
    """Parts to make others of."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: DType) -> OperatorSupportBase:
        """What supports nodes none of whose inputs has a dtype."""
        return _Functional(
            lambda mods, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """What supports nodes that are not called one of these."""
        return _Functional(lambda mods, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    """The dtype of what a node gives, the type of what is no tensor; from `ShapeProp`."""
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]
