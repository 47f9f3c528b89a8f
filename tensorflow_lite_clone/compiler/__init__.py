"""``torch.compile`` and ``torch.compiler``: functions captured in CUDA graphs.

See docs/cuda_graphs.md for what can be captured and what a captured function does otherwise.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from os import PathLike
from typing import Any

from tensorflow_lite_clone.compiler.debug import Folder
from tensorflow_lite_clone.compiler.dynamo.function import Recorded
from tensorflow_lite_clone.compiler.function import (
    Compiled,
    everyone,
    inside,
    name_of,
    runs_outside,
)
from tensorflow_lite_clone.compiler.module import OptimizedModule
from tensorflow_lite_clone.core.errors import CaptureError
from tensorflow_lite_clone.nn.modules.module import Module

_MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_CAPTURING = ("cudagraphs", "inductor")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    debug: str | PathLike[str] | None = None,
) -> Any:
    """A function or module that is captured in a CUDA graph and replayed, as ``torch.compile``.

    Also a decorator, with or without arguments. A module gives a module around it. With
    ``backend="eager"``, ``"aot_eager"`` or ``disable=True`` it runs as it is; so it does where it
    cannot be captured, for a reason that is logged, and with ``fullgraph=True`` raised as
    RuntimeError. A function as `backend` is a NotImplementedError: it would be given a graph of
    `torch.fx`, which is not made. `dynamic` and `options` change nothing: each shape is captured
    by itself, at most `recompile_limit` (8) of them.

    `debug`, which PyTorch does not have, is a folder to be filled: with the kernels of every
    captured form, and with the reasons why calls run as they are. Captures then take longer.
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
            recompile_limit=recompile_limit,
            debug=debug,
        )
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    if callable(backend):
        if isinstance(model, OptimizedModule):
            model = model._orig_mod
        model = getattr(model, "_function", model) if isinstance(model, (Compiled, Recorded)) else model
        recorded = Recorded(model, backend, fullgraph, recompile_limit)
        return OptimizedModule(model, recorded) if isinstance(model, Module) else recorded
    if backend is not None and backend not in list_backends(()):
        raise RuntimeError(
            f"Invalid backend: {backend!r}, see `torch.compiler.list_backends()` for available "
            "backends."
        )
    if not callable(model):
        raise TypeError(f"torch.compile expects a callable, but got {type(model).__name__}")
    capturing = (
        not disable
        and (backend is None or backend in _CAPTURING)
        and mode != "max-autotune-no-cudagraphs"
    )
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, Compiled):
        model = model._function
    folder = None if debug is None else Folder(debug)
    compiled: Any = model
    if capturing and runs_outside(model):
        compiled = model._around(Compiled(model.module, fullgraph, recompile_limit, folder))
    elif capturing:
        compiled = Compiled(model, fullgraph, recompile_limit, folder)
    elif folder is not None:
        folder.tell(f"'{name_of(model)}'", "with these arguments `torch.compile` captures nothing")
    return OptimizedModule(model, compiled) if isinstance(model, Module) else compiled


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never captured; also a decorator.

    A compiled function that calls it runs eagerly as a whole.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, OptimizedModule):
        return fn._orig_mod
    if isinstance(fn, Compiled):
        fn = fn._function
    if isinstance(fn, Module):
        vars(fn)["forward"] = disable(fn.forward, recursive, reason=reason)
        return fn
    name = getattr(fn, "__qualname__", type(fn).__name__)
    why = f"it calls '{name}', which is marked with torch.compiler.disable"
    if reason is not None:
        why += f" ({reason})"

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if inside.disabled:
            return fn(*args, **kwargs)
        if not inside.active:
            outer = False
            inside.active = inside.disabled = True  # nothing that it calls is captured either
        elif inside.trace is None:
            raise CaptureError(why)
        else:
            outer, inside.trace.refused = True, why
        try:
            return fn(*args, **kwargs)
        finally:
            inside.active = outer
            inside.disabled = False

    return call


def reset() -> None:
    """Forget everything that any compiled function has captured."""
    for compiled in list(everyone):
        compiled.reset()


def is_compiling() -> bool:
    """Whether a compiled function is being observed or captured in this thread."""
    return inside.active


def is_dynamo_compiling() -> bool:
    """The same as `is_compiling`."""
    return inside.active


def cudagraph_mark_step_begin() -> None:
    """Nothing: results are copies, so that a new step overwrites none of them."""


def allow_in_graph(fn: Any) -> Any:
    """`fn` itself: every function may be captured."""
    return fn


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that ``torch.compile(backend=...)`` takes.

    Those that run a function as it is, ``"eager"`` and ``"aot_eager"``, are tagged ``"debug"``.
    """
    return [*([] if "debug" in (exclude_tags or ()) else ["aot_eager", "eager"]), *_CAPTURING]


__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "list_backends",
    "reset",
]
