"""The names of ``torch.jit``, for programs that use them: nothing is compiled here.

`script` and `trace` give what runs the same Python code: for a module a `ScriptModule` that shares
its parameters and buffers, for a function a `ScriptFunction`. Values are therefore the same; but a
traced function goes through its branches anew at every call, as PyTorch's does not, and a traced
module heeds ``train()`` and ``eval()``. The first call warns. Archives are neither read nor
written: `save` and `load` raise NotImplementedError.
"""

# No `from __future__ import annotations`: it would hide the module of that name.
from typing import Any

from tensorflow_lite_clone.futures import Future
from tensorflow_lite_clone.jit import annotations
from tensorflow_lite_clone.jit._archives import load, save
from tensorflow_lite_clone.jit._markers import (
    Attribute,
    Final,
    _drop,
    _overload,
    _overload_method,
    _unwrap_optional,
    annotate,
    export,
    ignore,
    interface,
    is_scripting,
    is_tracing,
    isinstance,
    script_if_tracing,
    unused,
)
from tensorflow_lite_clone.jit._modules import (
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    TopLevelTracedModule,
    TracedModule,
)
from tensorflow_lite_clone.jit._optimization import (
    enable_onednn_fusion,
    freeze,
    fuser,
    onednn_fusion_enabled,
    optimize_for_inference,
    optimized_execution,
    run_frozen_optimizations,
    set_fusion_strategy,
    strict_fusion,
)
from tensorflow_lite_clone.jit._running import (
    ScriptWarning,
    TracerWarning,
    TracingCheckError,
    script,
    script_method,
    trace,
    trace_module,
)


class Error(Exception):
    """PyTorch's error of scripted code that fails; here Python's own errors come through."""


def fork(func: Any, *args: Any, **kwargs: Any) -> Future[Any]:
    """A Future of ``func(*args, **kwargs)``, which runs at once, as in PyTorch outside of a script.

    Its exceptions are raised here.
    """
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """The value of a `fork`."""
    if type(future) is not Future:
        raise TypeError(f"wait() expects a torch.jit.Future, not {type(future).__name__}")
    return future.wait()


_fork, _wait = fork, wait

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "_drop",
    "_fork",
    "_overload",
    "_overload_method",
    "_unwrap_optional",
    "_wait",
    "annotate",
    "annotations",
    "enable_onednn_fusion",
    "export",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "run_frozen_optimizations",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]
