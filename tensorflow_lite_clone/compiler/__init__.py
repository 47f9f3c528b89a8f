"""``torch.compile`` and ``torch.compiler``: functions captured in CUDA graphs, or for a backend.

See docs/cuda_graphs.md for what is captured in CUDA graphs and programs, and docs/compile.md for
the graphs that other backends are given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from os import PathLike
from typing import Any

from tensorflow_lite_clone.compiler.debug import Folder
from tensorflow_lite_clone.compiler.dynamo.calls import allow_in_graph
from tensorflow_lite_clone.compiler.dynamo.function import Recorded
from tensorflow_lite_clone.compiler.dynamo.recorder import suspended
from tensorflow_lite_clone.compiler.dynamo.registry import list_backends, lookup_backend
from tensorflow_lite_clone.compiler.dynamo.stance import set_stance
from tensorflow_lite_clone.compiler.function import (
    Compiled,
    everyone,
    inside,
    name_of,
    runs_outside,
)
from tensorflow_lite_clone.compiler.module import OptimizedModule
from tensorflow_lite_clone.core.errors import CaptureError
from tensorflow_lite_clone.core.torch_function import state
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
    ``disable=True`` it runs as it is; so it does where it cannot be captured, for a reason that is
    logged, and with ``fullgraph=True`` raised as RuntimeError. Each shape is captured by itself,
    whatever `dynamic` says, at most `recompile_limit` (8) of them.

    Another `backend`, a function or the name of one that is registered (``"eager"``), is given
    graphs: ``backend(graph_module, example_inputs)``, with `mode` and `options` as keywords if they
    are given. It returns what runs in their place. One function may be several graphs, with
    ``fullgraph=True`` that is `torch._dynamo.exc.Unsupported`. See docs/compile.md.

    >>> def backend(gm, example_inputs):
    ...     print(gm.code.strip())
    ...     return gm.forward
    >>> @torch.compile(backend=backend)
    ... def f(x):
    ...     return x.sin() + 1
    >>> f(torch.zeros(2))
    def forward(self, L_x_):
        l_x_ = L_x_
        sin = l_x_.sin();  l_x_ = None
        add = sin + 1;  sin = None
        return (add,)
    tensor([1., 1.])

    `debug`, which PyTorch does not have, is a folder to be filled: with the kernels of every
    captured form, and with the reasons why calls run as they are. Captures then take longer.
    """
    compile_alike = functools.partial(
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
    if model is None:
        return compile_alike
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in _MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(_MODES)}")
    compiler_fn = None if backend is None or backend in _CAPTURING else lookup_backend(backend)
    if not callable(model):
        raise TypeError(f"torch.compile expects a callable, but got {type(model).__name__}")
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    if isinstance(model, (Compiled, Recorded)):
        model = model._function
    if compiler_fn is not None and not disable:
        keywords = {"mode": mode, "options": options}
        given = {name: value for name, value in keywords.items() if value is not None}
        if given:
            compiler_fn = functools.partial(compiler_fn, **given)
        recorded = Recorded(model, compiler_fn, fullgraph, recompile_limit)
        return _around(model, recorded, compile_alike)
    capturing = not disable and mode != "max-autotune-no-cudagraphs"
    folder = None if debug is None else Folder(debug)
    compiled: Any = model
    if capturing and runs_outside(model):
        compiled = model._around(Compiled(model.module, fullgraph, recompile_limit, folder))
    elif capturing:
        compiled = Compiled(model, fullgraph, recompile_limit, folder)
    elif folder is not None:
        folder.tell(f"'{name_of(model)}'", "with these arguments `torch.compile` captures nothing")
    return _around(model, compiled, compile_alike)


def _around(model: Any, compiled: Any, compile_alike: Callable[[Any], Any]) -> Any:
    """What is given for a compiled module or function."""
    if isinstance(model, Module):
        return OptimizedModule(model, compiled, compile_alike)
    return compiled


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """A function that is never captured; also a decorator.

    What other backends record ends before it and begins again behind it; a function that is
    captured otherwise runs eagerly as a whole if it calls it.
    """
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)
    if isinstance(fn, OptimizedModule):
        return fn._orig_mod
    if isinstance(fn, (Compiled, Recorded)):
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
        recorder = inside.recorder
        if recorder is not None:
            recorder.break_graph(why, None, (*args, *kwargs.values()))
            with suspended(recorder):
                return call(*args, **kwargs)
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


def is_dynamo_compiling() -> bool:
    """Whether a compiled function is being observed, captured or recorded in this thread."""
    return inside.active and not inside.disabled


def is_exporting() -> bool:
    """Whether ``torch.export`` is running the module that asks, in this thread."""
    return any([getattr(each, "exports", False) for each in state.modes])


def is_compiling() -> bool:
    """Whether one of the two is so."""
    return is_dynamo_compiling() or is_exporting()


def cudagraph_mark_step_begin() -> None:
    """Nothing: results are copies, so that a new step overwrites none of them."""


def assume_constant_result(fn: Any) -> Any:
    """`fn` itself: it is called in every call, and a graph holds what it returned."""
    return fn


__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
]
