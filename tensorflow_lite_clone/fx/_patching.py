"""Functions that tracing does not enter: while it runs, others stand in their places."""

from __future__ import annotations

import builtins
import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tensorflow_lite_clone.fx._compatibility import compatibility
from tensorflow_lite_clone.fx.node import map_aggregate
from tensorflow_lite_clone.fx.proxy import Proxy

_T = TypeVar("_T", bound="str | Callable[..., Any]")
_ABSENT = object()

#: (id of the dictionary of a module, name there) -> the dictionary, of functions by `wrap`.
wrapped_functions: dict[tuple[int, str], dict[str, Any]] = {}
#: Class and name of methods that tracing does not enter.
wrapped_methods: list[tuple[type, str]] = []


@compatibility(is_backward_compatible=True)
def wrap(fn_or_name: _T) -> _T:
    """Let tracing note calls of a function of this module, and not enter it; returns what it gets.

    As a decorator, or with the name of a function that the module has, such as ``"len"``. To be
    called at the top level of a module: NotImplementedError elsewhere. RuntimeError for what is
    neither a function nor a name.

    >>> torch.fx.wrap("len")
    'len'
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def find_proxy(*values: Any) -> Proxy | None:
    """A proxy among values, also in collections."""
    found: list[Proxy] = []
    map_aggregate(values, lambda value: found.append(value) if isinstance(value, Proxy) else None)
    return found[-1] if found else None


def noting(function: Callable[..., Any], method: str | None = None) -> Callable[..., Any]:
    """A function that notes its call where a proxy is an argument, and else is `function`.

    It is noted as a call of a `method` of its first argument if that is given.
    """

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        if method is not None:
            return proxy.tracer.create_proxy("call_method", method, args, kwargs)
        noted = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        noted.node.meta["is_wrapped"] = True
        return noted

    return wrapped


class Patcher:
    """A block in which attributes of classes and names of modules are others."""

    def __init__(self) -> None:
        self._undo: list[tuple[Callable[[], None], Callable[[], None]]] = []
        self._seen: set[int] = set()

    def patch(self, names: dict[str, Any], name: str, value: Callable[..., Any]) -> None:
        """Let a name in a dictionary of globals be another function, unless it is one already."""
        before = names.get(name, _ABSENT)
        if getattr(before, "_fx_notes", False):
            return
        value._fx_notes = True  # type: ignore[attr-defined]

        def undo() -> None:
            if before is _ABSENT:
                names.pop(name, None)
            else:
                names[name] = before

        self._do(lambda: names.__setitem__(name, value), undo)

    def patch_method(self, cls: type, name: str, value: Callable[..., Any]) -> None:
        """Let a class have another method."""
        before = vars(cls).get(name, _ABSENT)

        def undo() -> None:
            if before is _ABSENT:
                delattr(cls, name)
            else:
                setattr(cls, name, before)

        self._do(lambda: setattr(cls, name, value), undo)

    def _do(self, do: Callable[[], None], undo: Callable[[], None]) -> None:
        do()
        self._undo.append((do, undo))

    def patch_wrapped(self) -> None:
        """Let all functions and methods that were wrapped note their calls."""
        for (_, name), names in [*wrapped_functions.items()]:
            function = names.get(name, getattr(builtins, name, None))
            self.patch(names, name, noting(function))  # type: ignore[arg-type]
        for cls, name in wrapped_methods:
            self.patch_method(cls, name, noting(getattr(cls, name), name))

    def patch_functions(self, names: dict[str, Any], functions: set[int]) -> None:
        """Let those among `functions`, by their ids, note their calls where globals have them."""
        if id(names) in self._seen:
            return
        self._seen.add(id(names))
        for name, value in [*names.items()]:
            if not name.startswith("_") and id(value) in functions and callable(value):
                self.patch(names, name, noting(value))

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """A block in which all is as it was."""
        for _, undo in reversed(self._undo):
            undo()
        try:
            yield
        finally:
            for do, _ in self._undo:
                do()

    def __enter__(self) -> Patcher:
        active.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        active.remove(self)
        while self._undo:
            self._undo.pop()[1]()
        self._seen.clear()


#: Blocks that are entered, the innermost last.
active: list[Patcher] = []


@contextlib.contextmanager
def maybe_revert_all_patches() -> Iterator[None]:
    """A block in which nothing is traced."""
    if not active:
        yield
        return
    with active[-1].suspended():
        yield
