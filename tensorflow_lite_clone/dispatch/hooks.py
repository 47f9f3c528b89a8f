"""Hooks around every op: profiler, autocast, capture. They cost one truth test when absent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Each hook is called as ``hook(op, call, arrays, parameters)`` and returns ``call``'s result.
active: list[Callable[..., Any]] = []
#: Each is called as ``writer(op, arrays, parameters)`` before `op` is done in the memory of the
#: first array, or, where `op` is None, before the second array (or number) is copied into it.
writers: list[Callable[..., Any]] = []
#: Each is called as ``watcher(name, call, tensors, parameters)`` in place of ``call()``, where many
#: ops together have a name of their own, and gives what `call` gives, a tuple of tensors.
functions: list[Callable[..., Any]] = []


def run_hooked(op: Any, call: Callable[..., Any], arrays: tuple, parameters: dict) -> Any:
    """Run `call` inside all active hooks, the newest outermost."""
    for hook in active:
        call = _around(hook, op, call)
    return call(*arrays, **parameters)


def _around(hook: Callable[..., Any], op: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arrays, **parameters: hook(op, call, arrays, parameters)


def writing(op: Any, arrays: tuple, parameters: dict) -> None:
    """Tell all writers of a write that follows."""
    for writer in writers:
        writer(op, arrays, parameters)


def run_function(name: str, call: Callable[[], tuple], tensors: tuple, parameters: dict) -> tuple:
    """What many ops give that together are the function `name` of some tensors."""
    if not functions:
        return call()
    results: tuple = functions[-1](name, call, tensors, parameters)
    return results
