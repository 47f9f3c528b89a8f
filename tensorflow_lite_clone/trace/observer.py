"""Watching what a program runs: one way in, and one way out, for all hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from threading import get_ident
from typing import Any, Self

from tensorflow_lite_clone.dispatch import hooks

#: The methods of observers, and the lists of their names; ``around_op`` has functions of its own.
_LISTS: dict[str, list[Any]] = {
    "around_write": hooks.around_write,
    "around_function": hooks.around_function,
    "around_gradient": hooks.around_gradient,
    "around_region": hooks.around_region,
    "on_launch": hooks.on_launch,
    "on_wait": hooks.on_wait,
    "on_node": hooks.on_node,
    "on_storage": hooks.on_storage,
    "on_memory_write": hooks.on_memory_write,
}


class Observer:
    """Context manager that is called with what runs, from when it is entered until it is left.

    A subclass defines those of the methods below that it needs, or an instance sets them. What
    they are called with stands at the list of `dispatch.hooks` that each is entered in. All
    threads are seen; `is_here` tells the one that has entered.

    Example::

        class Names(Observer):
            def on_op(self, op, backend, arrays, parameters, result):
                print(op.name)
    """

    on_op: Any = None  # after every op, where there is no `around_op`
    around_op: Any = None
    around_write: Any = None
    around_function: Any = None
    around_gradient: Any = None
    around_region: Any = None
    on_launch: Any = None
    on_wait: Any = None
    on_node: Any = None
    on_storage: Any = None
    on_memory_write: Any = None
    _thread = 0
    _exit: ExitStack | None = None

    def registrations(self) -> Iterable[Any]:
        """Handles of further hooks (of modules, of optimizers), which are removed at the end."""
        return ()

    def is_here(self) -> bool:
        """Whether this thread is the one that has entered the observer, which is not left yet."""
        return get_ident() == self._thread

    def __enter__(self) -> Self:
        if self._exit is not None:
            raise RuntimeError(f"this {type(self).__name__} is watching already")
        with ExitStack() as stack:
            for name, entries in _LISTS.items():
                hook: Callable[..., Any] | None = getattr(self, name)
                if hook is not None:
                    entries.append(hook)
                    stack.callback(entries.remove, hook)
            for handle in self.registrations():
                stack.callback(handle.remove)
            wrapper = self.around_op or (self.on_op and self._with_on_op)
            if wrapper:
                hooks.add(wrapper)
                stack.callback(hooks.remove, wrapper)
            self._exit = stack.pop_all()
        self._thread = get_ident()
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._exit is not None
        self._thread = 0
        self._exit.close()
        self._exit = None

    def _with_on_op(self, op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        def observed(*arrays: Any, **parameters: Any) -> Any:
            result = call(*arrays, **parameters)
            self.on_op(op, backend, arrays, parameters, result)
            return result

        return observed
