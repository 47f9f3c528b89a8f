"""Functions compiled from templates, as `dataclasses` writes ``__init__``.

A call through a helper costs what an op on a small tensor costs, and a helper written out by hand
where it is called drifts. So what many functions do alike is a text, which is filled in for each.
Tracebacks and `inspect.getsource` show the lines; the file's name says what they are made from.
"""

from __future__ import annotations

import linecache
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


def define_later(name: str, text: str, modules: str, scope: dict[str, Any]) -> Any:
    """As `define`, but compiled at the first call: the package imports faster.

    It has the names that are in `scope` by then.
    """
    definition = _Definition()
    own = {"__name__": scope.get("__name__", __name__), "__definition__": definition}
    definition.function = scope[name] = FunctionType(_begin.__code__, own, name)
    definition.text, definition.modules, definition.scope = text, modules, scope
    return definition.function


def give(
    function: Any, code: CodeType, defaults: Any, keyword_defaults: Any, names: dict[str, Any]
) -> None:
    """Let a function be what was compiled for it; `names` are what the code uses.

    The code comes last: other threads may call the function meanwhile.
    """
    function.__globals__.update(names)
    function.__defaults__, function.__kwdefaults__ = defaults, keyword_defaults
    function.__code__ = code


class _Definition:
    """What a function is compiled from at its first call."""

    __slots__ = ("function", "modules", "scope", "text")

    function: Any
    text: str
    modules: str
    scope: dict[str, Any]

    def complete(self) -> Any:
        """The function, with its own code."""
        function = self.function
        made = define(function.__name__, self.text, self.modules, dict(self.scope))
        function.__doc__ = made.__doc__
        give(function, made.__code__, made.__defaults__, made.__kwdefaults__, self.scope)
        return function


def _begin(*args: Any, **kwargs: Any) -> Any:
    # The name is of the function's own scope.
    return __definition__.complete()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
