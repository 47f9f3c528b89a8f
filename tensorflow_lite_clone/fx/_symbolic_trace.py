"""Graphs of functions and modules, by calling them with what notes what is done."""

from __future__ import annotations

import functools  # noqa: F401
from collections.abc import Callable
from types import FunctionType  # noqa: F401
from typing import Any

from tensorflow_lite_clone.core.interception import intercept, release
from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx._patching import Patcher, maybe_revert_all_patches, wrap
from tensorflow_lite_clone.fx._patching import wrapped_functions as _wrapped_fns_to_patch
from tensorflow_lite_clone.fx._patching import wrapped_methods as _wrapped_methods_to_patch
from tensorflow_lite_clone.fx._tracer import (
    PH,
    PHBase,
    PHWithMeta,
    ProxyableClassMeta,
    Tracer,
    _assert_is_none,
    _orig_module_call,  # noqa: F401
    _orig_module_getattr,  # noqa: F401
    is_fx_symbolic_tracing,
    is_fx_tracing,
)
from tensorflow_lite_clone.fx.graph_module import GraphModule
from tensorflow_lite_clone.fx.proxy import Proxy  # noqa: F401
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

# torch_geometric (`to_hetero`) writes `Tracer.trace` anew of these names, and of the modules,
# classes and functions that PyTorch has beside them.
_patch_wrapped_functions = Patcher.patch_wrapped
_autowrap_check = Patcher.patch_functions


class ScriptObject:
    """An object of TorchScript's, of which there are none here."""


class _Patcher(Patcher):
    """A block in which functions note that they are called with proxies, as `Tracer.trace` has."""

    def patch_method(
        self, cls: type, name: str, value: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Let a class have another method, also where it has another already."""
        super().patch_method(cls, name, value)

    def __enter__(self) -> Patcher:
        intercept()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        release()


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
