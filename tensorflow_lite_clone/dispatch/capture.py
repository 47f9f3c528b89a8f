"""Whether this thread captures a graph of device work, and which op it is running.

Work that waits for the device or copies between it and the host cannot be captured: backends call
`crossing` before they do either, so that profilers see it, that the message names what was asked
for, and that the capture can be ended in good order.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tensorflow_lite_clone.core.errors import CaptureError
from tensorflow_lite_clone.dispatch import hooks

if TYPE_CHECKING:
    from tensorflow_lite_clone.core.protocols import Backend

_PACKAGE = __name__.partition(".")[0]


class _Capturing(threading.local):
    graph: Any = None  # the one that is being captured in this thread
    op: str | None = None  # the op that is running
    failed: str | None = None  # the innermost op that raised an exception


state = _Capturing()
#: The graphs that any thread captures.
running: WeakSet[Any] = WeakSet()
#: Each is called before a capture begins, and before it ends.
on_boundary: list[Callable[[], None]] = []


def cross_boundary() -> None:
    """Call what is to be called where a capture begins or ends."""
    for call in on_boundary:
        call()


def begin(graph: Any) -> None:
    """Note that this thread captures `graph` from now on."""
    if state.graph is not None:
        raise RuntimeError("a graph is being captured in this thread already")
    state.graph, state.op, state.failed = graph, None, None
    running.add(graph)
    hooks.add(_noting)


def end() -> None:
    """Note that the capture is over."""
    running.discard(state.graph)
    state.graph = state.op = None
    hooks.remove(_noting)


def crossing(what: str, size: int = 0) -> None:
    """Tell profilers of a wait, or a copy of `size` bytes; CaptureError if this thread captures.

    `what` says what is done, as in "reads a value back".
    """
    for waiting in tuple(hooks.on_wait):
        waiting(what, size)
    if state.graph is None:
        return
    where = f" (in op '{state.op}')" if state.op else ""
    raise CaptureError(
        f"operation not permitted when stream is capturing: '{_asked_for()}'{where} {what}"
    )


def forbid(what: str) -> None:
    """CaptureError if this thread captures: what the host does here is for every call."""
    if state.graph is not None:
        crossing(what)


def _noting(op: Any, backend: Backend, call: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arrays: Any, **parameters: Any) -> Any:
        if state.graph is None:  # another thread captures
            return call(*arrays, **parameters)
        outer, state.op = state.op, op.name
        try:
            return call(*arrays, **parameters)
        except Exception:
            state.failed = state.failed or op.name
            raise
        finally:
            state.op = outer

    return noted


def _asked_for() -> str:
    """The function of this package that was called from outside of it."""
    frame: Any = sys._getframe(2)  # the backend's method, which may be another package's
    name = _called(frame)
    frame = frame.f_back
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        name = _called(frame)
        frame = frame.f_back
    return name


def _called(frame: Any) -> str:
    """The name of the function that a frame runs; of a decorator's wrapper, what it wraps."""
    code = frame.f_code
    if code.co_name == "wrapper" and "function" in code.co_freevars:
        return str(frame.f_locals["function"].__name__)
    if "__forwarder__" in frame.f_globals:  # which has no code of its own yet
        return str(frame.f_globals["__forwarder__"].function.__name__)
    return str(code.co_name)
