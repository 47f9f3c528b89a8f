"""Code of graphs, compiled: `torch` means this package in it, and errors show its lines."""

from __future__ import annotations

import builtins
import importlib
import itertools
import linecache
import sys
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.fx._names import PACKAGE

_numbers = itertools.count()
_sources: dict[str, str] = {}


class _Loader:
    """Gives `linecache` the text of generated code."""

    @staticmethod
    def get_source(name: str) -> str | None:
        return _sources.get(name)


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """`__import__`, for which `torch` is this package."""
    root, dot, rest = name.partition(".")
    if root != "torch" or level:
        return builtins.__import__(name, globals, locals, fromlist, level)
    own = PACKAGE + dot + rest
    module = importlib.import_module(own)
    return module if fromlist else sys.modules[PACKAGE]


#: What generated code has of Python's own. PyTorch's ``import torch`` stands in its text.
_BUILTINS = {**vars(builtins), "__import__": _import}


def function_of_source(
    source: str, names: dict[str, Any], name: str = "forward", origin: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The function called `name` that a text defines, with these global names.

    `origin` has the name, file and line of the function that was traced, for the file name by which
    tracebacks show the text.
    """
    file = f"<eval_with_key>.{next(_numbers)}"
    if origin:
        where = f"{origin['co_filename']}:{origin['co_firstlineno']} in {origin['co_name']}"
        file += f" from {where}"
    _sources[file] = source
    linecache.lazycache(file, {"__name__": file, "__file__": file, "__loader__": _Loader})
    scope = {**names, "__builtins__": _BUILTINS}
    exec(compile(source, file, "exec", dont_inherit=True), scope)
    return scope.pop(name)
