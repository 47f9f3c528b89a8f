"""Hooks around what a program runs: profilers, capture and tracing use them.

They cost nothing, or one truth test, while there are none. A hook sees all threads. Lists of hooks
are copied before they are gone through: another thread may take its own away meanwhile.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend

Call = Callable[..., Any]
#: Asked once for each op and backend: ``wrapper(op, backend, call)`` gives what runs in place of
#: ``call(*arrays, **parameters)``. While there are any, views are made by ops too.
around_op: list[Callable[[Any, Any, Call], Call]] = []
#: Each is called as ``writer(op, call, arrays, parameters)`` in place of ``call()``, which does
#: `op` in the memory of the first array, or, where `op` is None, copies the second array (or
#: number) into it.
around_write: list[Callable[..., Any]] = []
#: Each is called as ``watcher(name, call, tensors, parameters)`` in place of ``call()``, where many
#: ops together have a name of their own, and gives what `call` gives, a tuple of tensors.
around_function: list[Callable[..., Any]] = []
#: Each is called as ``hook(node, call, grads)`` in place of ``call(grads)``, which gives the
#: gradients of a node's inputs from those of its outputs (arrays, or Tensors with `create_graph`).
around_gradient: list[Callable[..., Any]] = []
#: Each is called as ``launching(name, file, grid, block)`` before a kernel is launched, and what it
#: gives is called after; `file` is the kernel's ``.cu`` file.
on_launch: list[Callable[[str, str, tuple, tuple], Callable[[], None]]] = []
#: Each is called as ``region(name, call)`` in place of ``call()``: what a data loader does for the
#: next batch, the replay of a captured graph.
around_region: list[Callable[[str, Call], Any]] = []
#: Each is called as ``waiting(what, size)`` before the host waits for a device or copies that many
#: bytes to or from it.
on_wait: list[Callable[[str, int], None]] = []
#: Each is called before a program seeds random numbers, or reads or sets the state of their source.
on_seed: list[Callable[[], None]] = []
#: Each is called with every new node of the graph.
on_node: list[Callable[[Any], None]] = []
#: Each is called with every storage that is made outside of ops.
on_storage: list[Callable[[Any], None]] = []
#: Each is called with the root of every storage whose memory is written in place, after the write.
on_memory_write: list[Callable[[Any], None]] = []

#: Held while what runs for ops and words is looked up and kept, and while that changes: a thread
#: that has looked something up before a change must not keep it after.
changing = threading.RLock()
if hasattr(os, "register_at_fork"):  # a new process has no thread that would give it back
    os.register_at_fork(
        before=changing.acquire, after_in_parent=changing.release, after_in_child=changing.release
    )


def add(wrapper: Callable[[Any, Any, Call], Call]) -> None:
    """Let `wrapper` give what runs in place of every op from now on, outside of earlier ones."""
    with changing:
        around_op.append(wrapper)
        forget()


def remove(wrapper: Callable[[Any, Any, Call], Call]) -> None:
    """Let ops run without `wrapper` again; ValueError if it was not added."""
    with changing:
        around_op.remove(wrapper)
        forget()


def wrapped(op: Any, backend: Backend, call: Call) -> Call:
    """What runs in place of `call`, and from now on whenever `op` runs on `backend`."""
    with changing:
        for wrapper in around_op:
            call = wrapper(op, backend, call)
        op.calls[backend] = call
        _resolved.add(op)
    return call


#: Ops for which something runs on a backend.
_resolved: set[Any] = set()


def forget() -> None:
    """Let what runs for each op be asked for again."""
    with changing:
        while _resolved:
            _resolved.pop().calls.clear()


def writing(op: Any, call: Call, arrays: tuple, parameters: dict) -> None:
    """Do a write inside of all writers, the newest outermost."""
    for writer in tuple(around_write):
        call = partial(writer, op, call, arrays, parameters)
    call()


def run_function(name: str, call: Callable[[], tuple], tensors: tuple, parameters: dict) -> tuple:
    """What many ops give that together are the function `name` of some tensors."""
    last = around_function[-1:]  # one look: another thread may take it away meanwhile
    results: tuple = last[0](name, call, tensors, parameters) if last else call()
    return results


def run_region(name: str, call: Call) -> Any:
    """What `call` gives, inside of all hooks, the newest outermost."""
    for region in tuple(around_region):
        call = partial(region, name, call)
    return call()


def tell_launch(name: str, file: str, grid: tuple, block: tuple) -> list[Callable[[], None]]:
    """Tell all `on_launch` of a kernel; gives what is to be called after it is launched."""
    return [launching(name, file, grid, block) for launching in tuple(on_launch)]


def run_backward(node: Any, call: Callable[[list], Any], grads: list) -> Any:
    """The gradients of a node's inputs, inside of all hooks, the newest outermost."""
    for hook in tuple(around_gradient):
        call = partial(hook, node, call)
    return call(grads)
