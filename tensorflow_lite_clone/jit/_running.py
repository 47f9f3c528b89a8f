"""`script` and `trace`: what they are given, made into what runs the same Python code."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.jit._modules import (
    RecursiveScriptModule,
    ScriptFunction,
    TopLevelTracedModule,
    TracedModule,
    copied,
)
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.tensor import Tensor


class TracerWarning(Warning):
    """PyTorch's warning of code that a trace does not follow; never given here."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing: there are no such warnings."""


class ScriptWarning(Warning):
    """PyTorch's warning of code that does not suit its compiler; never given here."""


class TracingCheckError(Exception):
    """PyTorch's error of a trace that differs from the code; never raised here."""


_warned = False


def _warn() -> None:
    """Say once per process that nothing is compiled."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "torch.jit compiles nothing here: what is scripted or traced runs as Python",
            UserWarning,
            stacklevel=level_outside(),
        )


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Any = None,
    example_inputs: Any = None,
) -> Any:
    """A module as a `ScriptModule`, a function as a `ScriptFunction`; a class, list or dict itself.

    Raises TypeError for what is none of these.
    """
    _warn()
    if isinstance(obj, Module):
        return copied(obj, RecursiveScriptModule, RecursiveScriptModule)
    if isinstance(obj, (type, list, dict, ScriptFunction)):
        return obj
    if callable(obj):
        return ScriptFunction(obj)
    raise TypeError(f"torch.jit.script() expects a module, function or class, not {type(obj)}")


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The method itself."""
    _warn()
    return fn


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-05,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Run a module or function once on an example, and give it back as `script` does.

    `example_inputs` is a tensor or the positional arguments, `example_kwarg_inputs` the keywords.
    The run is an ordinary one (statistics are updated, random numbers drawn), and the only one:
    PyTorch's check runs the code three times more. What is scripted already is returned as it is.
    """
    if isinstance(func, (TracedModule, RecursiveScriptModule, ScriptFunction)):
        return func
    _warn()
    owner = func.__self__ if isinstance(func, types.MethodType) else None
    if isinstance(owner, Module) and func.__name__ == "forward":
        func = owner
    if example_inputs is None and example_kwarg_inputs is None:
        raise TypeError("torch.jit.trace() needs example_inputs or example_kwarg_inputs")
    _run(func, example_inputs, example_kwarg_inputs)
    if isinstance(func, Module):
        return copied(func, TopLevelTracedModule, TracedModule)
    return ScriptFunction(func)


def _run(function: Any, inputs: Any, keywords: dict[str, Any] | None = None) -> None:
    if keywords is not None:
        function(**keywords)
    elif isinstance(inputs, (Tensor, dict)):
        function(inputs)
    else:
        function(*inputs)


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-05,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """Run methods of a module once, each on its example: ``{"forward": x, "encode": (x, y)}``.

    Gives the module back as `trace` does; AttributeError where `inputs` is no dictionary.
    """
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    _warn()
    for name, example in inputs.items():
        method = mod if name == "forward" else getattr(mod, name)
        if example_inputs_is_kwarg:
            _run(method, None, example)
        else:
            _run(method, example)
    return copied(mod, TopLevelTracedModule, TracedModule)
