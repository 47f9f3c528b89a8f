"""Graphs of functions and modules, by calling them with what notes what is done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._patching import maybe_revert_all_patches, wrap
from tensorflow_lite_clone.fx._patching import wrapped_functions as _wrapped_fns_to_patch
from tensorflow_lite_clone.fx._patching import wrapped_methods as _wrapped_methods_to_patch
from tensorflow_lite_clone.fx._tracer import (
    PH,
    PHBase,
    PHWithMeta,
    ProxyableClassMeta,
    Tracer,
    _assert_is_none,
    is_fx_symbolic_tracing,
    is_fx_tracing,
)
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "_wrapped_fns_to_patch",
    "_wrapped_methods_to_patch",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "symbolic_trace",
    "wrap",
]

_maybe_revert_all_patches = maybe_revert_all_patches

# Code of graphs, and files, name them as PyTorch has them.
for _each in (PHBase, PHWithMeta, ProxyableClassMeta, Tracer, _assert_is_none, wrap):
    _each.__module__ = __name__


@compatibility(is_backward_compatible=True)
def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """A module whose graph has what a module or function does.

    It is called once, with proxies for arguments, but for those in `concrete_args`: of these the
    values are used, which in a tree may be `PH` where it shall have an argument. TraceError where
    the program branches on a value that a proxy stands for.

    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
