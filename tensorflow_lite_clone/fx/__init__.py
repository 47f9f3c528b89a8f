"""Programs as graphs, as ``torch.fx``: traced, changed, and turned into Python code again.

>>> class Model(torch.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.linear = torch.nn.Linear(4, 5)
...     def forward(self, x):
...         return torch.relu(self.linear(x)).clamp(max=1.0)
>>> traced = torch.fx.symbolic_trace(Model())
>>> print(traced.graph)
graph():
    %x : [num_users=1] = placeholder[target=x]
    %linear : [num_users=1] = call_module[target=linear](args = (%x,), kwargs = {})
    %relu : [num_users=1] = call_function[target=torch.relu](args = (%linear,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%relu,), kwargs = {max: 1.0})
    return clamp
"""

from __future__ import annotations

from tensorflow_lite_clone.fx import experimental, immutable_collections, passes, subgraph_rewriter
from tensorflow_lite_clone.fx._symbolic_trace import (
    PH,
    ProxyableClassMeta,
    Tracer,
    symbolic_trace,
    wrap,
)
from tensorflow_lite_clone.fx.graph import CodeGen, Graph
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.interpreter import Interpreter, Transformer
from tensorflow_lite_clone.fx.node import Node, has_side_effect, map_arg
from tensorflow_lite_clone.fx.proxy import Proxy
from tensorflow_lite_clone.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "experimental",
    "has_side_effect",
    "immutable_collections",
    "map_arg",
    "passes",
    "replace_pattern",
    "subgraph_rewriter",
    "symbolic_trace",
    "wrap",
]
