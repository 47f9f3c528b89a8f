"""Functions compiled from templates, as `dataclasses` writes ``__init__``.

A call through a helper costs what an op on a small tensor costs, and a helper written out by hand
where it is called drifts. So what many functions do alike is a text, which is filled in for each.
Tracebacks and `inspect.getsource` show the lines; the file's name says what they are made from.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from textwrap import indent
from types import CodeType, FunctionType
from typing import Any


def fill(template: str, **parts: str) -> str:
    """`template` with `parts` in place of ``{names}``.

    A part that stands alone on a line may have several, which are indented as it is; an empty one
    takes its line away.

    >>> print(fill("if {test}:\\n    {body}\\n{rest}", test="x", body="y = 1\\nz = 2", rest=""))
    if x:
        y = 1
        z = 2
    """
    lines = []
    for line in template.strip("\n").splitlines():
        word = line.strip()
        if word[:1] == "{" and (part := parts.get(word[1:-1])) is not None:
            if part := part.strip("\n"):
                lines.append(indent(part, line[: line.index("{")]))
        else:
            lines.append(line.format_map(parts))
    return "\n".join(lines)


def define(name: str, text: str, modules: str, scope: dict[str, Any]) -> Any:
    """The function `name` that `text`, made from templates of `modules`, defines in `scope`."""
    source = modules.replace(f"{__name__.partition('.')[0]}.", "")
    filename = f"<{name} made from {source}>"
    number = 1
    while filename in linecache.cache:
        number += 1
        filename = f"<{name} ({number}) made from {source}>"
    exec(compile(text, filename, "exec"), scope)
    linecache.cache[filename] = len(text), None, text.splitlines(keepends=True), filename
    return scope[name]


#: A function that has other code for a while (see `interception`) -> one with its own.
originals: dict[Any, Any] = {}


class Deferred:
    """Functions that are compiled when the first of them is called: the package imports faster."""

    __slots__ = ("compile", "functions")

    def __init__(self, compile: Callable[[], tuple[Any, dict[str, Any]]]) -> None:
        #: Gives a function, whose code and defaults they get, and the names that it uses.
        self.compile = compile
        #: The first and its twins, each with the code that it begins with.
        self.functions: list[tuple[Any, CodeType]] = []

    def begin(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Compile the functions, and call the one that calls this."""
        compiled, names = self.compile()
        beginning = sys._getframe(1).f_code
        for exported, first_code in self.functions:
            function = originals.get(exported, exported)
            if first_code is beginning:
                called = function
            function.__globals__.update(names)
            function.__doc__ = function.__doc__ or compiled.__doc__
            function.__defaults__ = compiled.__defaults__
            function.__kwdefaults__ = compiled.__kwdefaults__
            # Last: other threads may call the function meanwhile.
            function.__code__ = compiled.__code__.replace(co_name=function.__name__)
        return called(*args, **kwargs)


def deferred(name: str, compile: Callable[[], tuple[Any, dict[str, Any]]], **scope: Any) -> Any:
    """The first function of a `Deferred`."""
    functions = Deferred(compile)
    function = FunctionType(_begin.__code__, {**scope, "__deferred__": functions}, name)
    functions.functions.append((function, function.__code__))
    return function


def _begin(*args: Any, **kwargs: Any) -> Any:
    # The name is of the function's own scope.
    return __deferred__.begin(args, kwargs)  # type: ignore[name-defined]  # noqa: F821


def define_later(name: str, text: str, modules: str, scope: dict[str, Any]) -> Any:
    """As `define`, but compiled at the first call, with the names that are in `scope` by then."""

    def compile() -> tuple[Any, dict[str, Any]]:
        return define(name, text, modules, dict(scope)), scope

    scope[name] = deferred(name, compile, __name__=scope.get("__name__", __name__))
    return scope[name]
