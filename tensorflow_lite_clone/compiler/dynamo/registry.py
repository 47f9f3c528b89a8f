"""The backends of ``torch.compile`` by their names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorflow_lite_clone.compiler.dynamo.aot import aot_autograd
from tensorflow_lite_clone.compiler.dynamo.errors import InvalidBackend
from tensorflow_lite_clone.compiler.function import Compiled

_backends: dict[str, Callable[..., Any]] = {}
_tags: dict[str, frozenset[str]] = {}


def register_backend(
    compiler_fn: Any = None, name: str | None = None, tags: Sequence[str] = ()
) -> Any:
    """Enter a backend under a name, by default its own; also a decorator, with arguments or not.

    It is called as ``compiler_fn(graph_module, example_inputs)`` and returns a callable that takes
    such inputs and returns what the graph does, a tuple. TypeError for what is not callable,
    AssertionError for a name that is taken.

    >>> from tensorflow_lite_clone._dynamo import register_backend
    >>> @register_backend
    ... def counting(gm, example_inputs):
    ...     print(len(gm.graph.nodes), "nodes")
    ...     return gm.forward
    >>> torch.compile(lambda x: x + 1, backend="counting")(torch.ones(2))
    3 nodes
    tensor([2., 2.])
    """
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(f"a backend is a callable, but got {type(compiler_fn).__name__}")
    name = name or compiler_fn.__name__
    if name in _backends:
        raise AssertionError(f"duplicate name: {name}")
    _backends[name] = compiler_fn
    _tags[name] = frozenset(tags)
    return compiler_fn


def lookup_backend(compiler_fn: Any) -> Any:
    """The backend of a name; a callable itself. InvalidBackend for a name that is not known."""
    if not isinstance(compiler_fn, str):
        return compiler_fn
    if compiler_fn not in _backends:
        raise InvalidBackend(compiler_fn)
    return _backends[compiler_fn]


def list_backends(exclude_tags: Iterable[str] | None = ("debug", "experimental")) -> list[str]:
    """The names that ``torch.compile(backend=...)`` takes, but of backends with such tags.

    Those that run a graph as it is, ``"eager"`` and ``"aot_eager"``, are tagged ``"debug"``.
    """
    excluded = frozenset(exclude_tags or ())
    return sorted([name for name in _backends if not _tags[name] & excluded])


@register_backend(tags=("debug",))
def eager(gm: Any, example_inputs: list[Any], **options: Any) -> Any:
    """Run the graph call by call."""
    return gm.forward


def compile_fx(model_: Any, example_inputs_: list[Any] | None = None, **options: Any) -> Any:
    """Capture the graph as programs or in CUDA graphs, and replay it."""
    return Compiled(model_)


register_backend(compile_fx, name="inductor")
register_backend(compile_fx, name="cudagraphs")
register_backend(aot_autograd(fw_compiler=eager), name="aot_eager", tags=("debug",))
