"""A function whose calls are recorded, and what is kept of them."""

from __future__ import annotations

import builtins
import functools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.compiler.dynamo.errors import (
    BackendCompilerFailed,
    FailOnRecompileLimitHit,
    TorchDynamoException,
    Unsupported,
)
from tensorflow_lite_clone.compiler.dynamo.graphs import GraphCompileReason, module_of
from tensorflow_lite_clone.compiler.dynamo.recorder import Recorder, suspended
from tensorflow_lite_clone.compiler.dynamo.settings import config, counters
from tensorflow_lite_clone.compiler.dynamo.sources import Sources
from tensorflow_lite_clone.compiler.dynamo.stance import stance
from tensorflow_lite_clone.compiler.dynamo.steps import State
from tensorflow_lite_clone.compiler.function import Wrapper, inside, name_of
from tensorflow_lite_clone.compiler.signature import global_state
from tensorflow_lite_clone.core import interception, late_bound
from tensorflow_lite_clone.core.errors import PACKAGE_FOLDER
from tensorflow_lite_clone.core.torch_function import state as modes
from tensorflow_lite_clone.dispatch import capture, hooks
from tensorflow_lite_clone.tensor import Tensor

log = logging.getLogger("tensorflow_lite_clone.compile")


class Cache:
    """What was recorded of a function's calls, and what a backend has made of it.

    Calls from one place of the function's code on, in the same global state, are one tree of
    `State`s. `limit` is how many graphs may begin at a place.
    """

    def __init__(self, name: str, backend: Any, fullgraph: bool, limit: int | None) -> None:
        self.name = name
        self.backend = backend
        self.fullgraph = fullgraph
        self._limit = limit
        self._roots: dict[Any, State] = {}
        self._compiled: Counter[Any] = Counter()
        self._warned: set[Any] = set()

    @property
    def limit(self) -> int:
        """How many graphs may begin at a place."""
        return config.recompile_limit if self._limit is None else self._limit

    def clear(self) -> None:
        """Forget all calls."""
        self._roots.clear()
        self._compiled.clear()
        self._warned.clear()

    def root(self, site: Any, ambient: Any) -> State:
        """Where what begins at a place is kept."""
        key = site, ambient, global_state()
        root = self._roots.get(key)
        if root is None:
            root = self._roots[key] = State(0)
        return root

    def full(self, site: Any) -> bool:
        """Whether no more graphs may begin at a place."""
        if stance.name == "fail_on_recompile":
            raise RuntimeError(
                f"{self.name} would have to be compiled anew, and the stance is fail_on_recompile"
            )
        return stance.name == "eager_on_recompile" or self._compiled[site] >= self.limit

    def refuse(self, site: Any) -> None:
        """Say that the limit is reached: a warning, or an error where that is asked for."""
        if stance.name == "eager_on_recompile":
            return
        text = f"recompile_limit reached: {self.limit} graphs of {self.name} were compiled"
        if self.fullgraph or config.fail_on_recompile_limit_hit:
            raise FailOnRecompileLimitHit(f"Hard failure due to fullgraph=True: {text}")
        if site not in self._warned:
            self._warned.add(site)
            log.warning("%s, and calls that differ from them all run eagerly", text)

    def compile(
        self, segment: Any, live: Any, site: Any, reason: str | None, stack: list[Any]
    ) -> Callable[..., Any]:
        """What computes the values `live` of recorded calls: made by the backend, and kept."""
        module = module_of(segment, live)
        if self.full(site):
            compiled: Any = module.forward
        else:
            self._compiled[site] += 1
            compiled = self._by_backend(module, segment, reason, stack)
        segment.state.compiled[tuple(live)] = compiled
        return compiled

    def _by_backend(self, module: Any, segment: Any, reason: str | None, stack: list[Any]) -> Any:
        count = sum([node.op.startswith("call_") for node in module.graph.nodes])
        counters["stats"]["calls_captured"] += count
        counters["stats"]["unique_graphs"] += 1
        if reason is not None:
            counters["graph_break"][reason] += 1
        module.compile_subgraph_reason = GraphCompileReason(
            reason or "return_value", stack, reason is not None
        )
        try:
            compiled = self.backend(module, [*segment.inputs.values()])
            if not callable(compiled):
                raise AssertionError(
                    "a backend of torch.compile returns a callable, but got "
                    f"{type(compiled).__name__}"
                )
        except TorchDynamoException:
            raise
        except Exception as error:
            if config.suppress_errors:
                log.warning("%s runs eagerly: its backend failed", self.name, exc_info=True)
                return module.forward
            raise BackendCompilerFailed(self.backend, error) from error
        return compiled


class Recorded(Wrapper):
    """`function`, whose calls are recorded in graphs that `backend` compiles."""

    def __init__(
        self,
        function: Callable[..., Any],
        backend: Any,
        fullgraph: bool = False,
        limit: int | None = None,
    ) -> None:
        super().__init__(function)
        self.cache = Cache(f"'{name_of(function)}'", backend, fullgraph, limit)
        called = getattr(function, "forward", function)
        while hasattr(called, "__wrapped__"):
            called = called.__wrapped__
        called = getattr(called, "__func__", called)
        code = getattr(called, "__code__", None)
        own = code is not None and not code.co_filename.startswith(PACKAGE_FOLDER)
        self._code = code if own else None

    def reset(self) -> None:
        """Forget everything that was recorded."""
        self.cache.clear()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if inside.active or mode.transforms or capture.state.graph is not None:
            return self._function(*args, **kwargs)
        if config.disable or stance.name == "force_eager":
            return self._function(*args, **kwargs)
        _see_calls()
        named: Mapping[str, Any] = {"fn": self._function, "args": args, **kwargs}
        recorder = Recorder(self.cache, Sources(self._code, named))
        counters["frames"]["total"] += 1
        with _inside(recorder), recorder:
            try:
                result = self._function(*args, **kwargs)
            except (Unsupported, FailOnRecompileLimitHit):
                recorder.abandon()
                raise
            except BaseException:
                recorder.finish(None)  # what was to be written is written
                raise
            recorder.finish(result)
        counters["frames"]["ok"] += 1
        return result


class _inside:  # noqa: N801  a block, such as contextlib's
    """A block in which a recorder sees what this thread does, and hears of what it prints."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __enter__(self) -> None:
        inside.recorder, inside.active = self._recorder, True
        with _lock:
            _recorders.append(self._recorder)
            if len(_recorders) == 1:
                _printer.append(builtins.print)
                builtins.print = _print

    def __exit__(self, *error: object) -> None:
        with _lock:
            _recorders.remove(self._recorder)
            if not _recorders:
                builtins.print = _printer.pop()
        inside.recorder, inside.active = None, False


_lock = threading.Lock()
_recorders: list[Recorder] = []
_printer: list[Callable[..., None]] = []


def _print(*values: Any, **options: Any) -> None:
    """Python's ``print``; a graph ends before it, so that a program prints in its own order."""
    printer = _printer[0] if _printer else _ORIGINAL
    recorder = inside.recorder
    if recorder is None or recorder not in modes.modes:  # a backend prints
        return printer(*values, **options)
    kinds = ["Tensor" if isinstance(value, Tensor) else type(value).__name__ for value in values]
    reason = (
        "Failed to trace builtin operator\n"
        f"  Explanation: what `print` with arguments of the types {kinds} does is part of no graph"
    )
    recorder.break_graph(reason, None, values)
    with suspended(recorder):
        return printer(*values, **options)


_ORIGINAL = builtins.print


def graph_break(msg: str = "") -> None:
    """Let the graph that is being recorded end here, and another one begin."""
    if inside.recorder is not None:
        reason = "Call to `torch._dynamo.graph_break()`"
        inside.recorder.break_graph(f"{reason}: {msg}" if msg else reason)


@functools.cache
def _see_calls() -> None:
    """Let public functions ask modes from now on, also between calls: that takes a while."""
    interception.intercept()
    hooks.on_seed.append(_before_seeding)


def _before_seeding() -> None:
    recorder = inside.recorder
    if recorder is not None and recorder in modes.modes:
        recorder.break_graph("random numbers are seeded, or the state of their source is read")


@late_bound.apply_recorded.provide
def apply_recorded(function: Any, args: tuple) -> Any:
    """What a `Function` of the program gives as one call of a graph; else NotImplemented."""
    recorder = inside.recorder
    return NotImplemented if recorder is None else recorder.apply(function, args)
