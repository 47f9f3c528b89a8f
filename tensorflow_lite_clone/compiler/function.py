"""A compiled function: which of its captured variants serves a call, and what else happens."""

from __future__ import annotations

import functools
import logging
import threading
import types
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from tensorflow_lite_clone.autograd.anomaly import is_anomaly_enabled
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.autograd.node import Leaf
from tensorflow_lite_clone.autograd.saved import active as saved_hooks
from tensorflow_lite_clone.compiler.captured import Differentiable, Step
from tensorflow_lite_clone.compiler.debug import Folder
from tensorflow_lite_clone.compiler.dynamo.stance import stance
from tensorflow_lite_clone.compiler.signature import (
    StaleError,
    UnstableError,
    UnsuitableError,
    global_state,
    signature,
)
from tensorflow_lite_clone.compiler.state import GuardSet
from tensorflow_lite_clone.compiler.trace import Trace
from tensorflow_lite_clone.core import locks
from tensorflow_lite_clone.core.errors import CaptureError
from tensorflow_lite_clone.cuda._pairs import flatten
from tensorflow_lite_clone.dispatch import capture, hooks
from tensorflow_lite_clone.ops.decorators.autocast import state as autocast
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor

log = logging.getLogger("tensorflow_lite_clone.compile")
RECOMPILE_LIMIT = 8  # captured variants of one function, as PyTorch's recompile_limit
_MAX_ENTRIES = 64  # kinds of calls of one function that are remembered
_MAX_ATTEMPTS = 3  # to capture calls that look the same
_NO_DEVICE = "it works on no device that captures"


class _Inside(threading.local):
    active = False  # a compiled function is being observed or captured in this thread
    trace: Trace | None = None  # it is being observed
    recorder: Any = None  # what records the graphs of one, see `dynamo.recorder`
    disabled = False  # a function that is never captured runs, outside of all others


inside = _Inside()
everyone: weakref.WeakSet[Any] = weakref.WeakSet()
_capturing = locks.lock()


class _Probe:
    """What a call without a graph has shown."""

    def __init__(self, function: Any, trace: Trace, tensors: list[Tensor]) -> None:
        self.trace = trace
        self.guards = GuardSet(function, trace)
        self.tensors = [weakref.ref(tensor) for tensor in tensors]
        self.mutated = {
            i
            for i, tensor in enumerate(tensors)
            if (tensor._storage.root or tensor._storage) in trace.written
        }
        self.kind: type[Step] | type[Differentiable] = Step
        self.backend: Any = None

    def classify(self, tensors: list[Tensor], result: Any) -> str | None:
        """Find out what kind of function it is; why it cannot be captured, or None."""
        trace = self.trace
        if trace.refused is not None:
            return trace.refused
        outputs: list[Any] = []
        flatten(result, outputs)
        graph = any([isinstance(out, Tensor) and out.requires_grad for out in outputs])
        places = {tensor._storage.backend for tensor in (*tensors, *trace.leaves.values())}
        places |= {storage.backend for storage in trace.written}
        for module in trace.modules.values():
            places |= {tensor._storage.backend for tensor in module.parameters()}
        able = [backend for backend in places if backend.graphs is not None]
        if len(able) > 1:  # a step of a device may look at numbers on the host
            able = [backend for backend in able if not backend.graphs.on_host]
        if not able:
            return _NO_DEVICE
        if len(able) > 1:
            return "it works on several devices"
        (self.backend,) = able
        if any([tensor._storage.backend is not self.backend for tensor in tensors]):
            return "an argument is on another device: move it before the call"
        if graph and not trace.passes:
            self.kind = Differentiable
            for module in trace.modules.values():
                if runs_outside(module):
                    return (
                        f"it calls a {type(module).__name__}, and has no backward pass: compile "
                        "the module itself, or a function with the whole step"
                    )
            return "it steps an optimizer and returns a graph" if trace.optimizers else None
        return self.outside(tensors)

    def outside(self, tensors: list[Tensor]) -> str | None:
        """Why a step cannot be captured with these arguments, or None."""
        if self.kind is Step and mode.grad:
            for tensor in tensors:
                if tensor._edge is not None and type(tensor._edge[0]) is not Leaf:
                    return "an argument is part of a graph that was made outside"
        return None


class _CacheEntry:
    """Everything known of calls that look the same."""

    __slots__ = ("attempts", "copied", "variants", "free", "mutated", "observed", "reason")

    def __init__(self) -> None:
        self.observed: list[_Probe] = []
        self.variants: list[Any] = []  # captured, the last one used first
        self.free: set[int] = set()  # arguments that were seen to change
        self.reason: str | None = None  # why such calls are not captured any more
        self.attempts = 0
        self.copied = False  # calls are observed on copies of their arguments
        self.mutated: set[int] = set()  # but for those that they write into


class Wrapper:
    """What takes the place of a function: it looks like it, and copies and pickles are it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        if not hasattr(function, "_parameters"):
            functools.update_wrapper(self, function)  # type: ignore[arg-type]
        everyone.add(self)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        return _identity, (self._function,)

    def __repr__(self) -> str:
        return f"<compiled {self._function!r}>"


class Compiled(Wrapper):
    """`function`, captured in graphs of the device; see `torch.compile`."""

    def __init__(
        self,
        function: Callable[..., Any],
        fullgraph: bool = False,
        limit: int | None = None,
        folder: Folder | None = None,
    ) -> None:
        super().__init__(function)
        self._fullgraph, self._folder = fullgraph, folder
        self._limit = RECOMPILE_LIMIT if limit is None else limit
        self._logged: set[str] = set()
        self._lock = locks.reentrant_lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything that was captured."""
        self._entries: dict[tuple, _CacheEntry] = {}
        self._recent: tuple[tuple | None, _CacheEntry | None] = (None, None)  # of the last call
        self._steps: list[Step] = []  # they share a memory pool
        self._pool: Any = None
        self._last: Step | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if inside.active or capture.state.graph is not None or mode.transforms:
            return self._function(*args, **kwargs)
        if stance.name == "force_eager":
            return self._function(*args, **kwargs)
        tensors: list[Tensor] = []
        try:
            key = signature(args, kwargs, tensors), global_state()
        except UnsuitableError as error:
            return self._eagerly(str(error), args, kwargs)
        recent = self._recent
        if key == recent[0]:  # faster than to hash it
            entry = recent[1]
        else:
            entry = self._entries.get(key)
        if entry is None:
            entry = self._new_entry(key)
        if recent[1] is not entry:
            self._recent = key, entry
        with self._lock:  # threads share the variants' memory
            for variant in entry.variants:
                if variant.fits(tensors):
                    if variant.graphs.on_host and hooks.around_op:
                        break
                    if variant is not self._last and not self._activate(entry, variant):
                        break
                    try:
                        return variant.run(tensors)
                    except StaleError:
                        self._drop(entry, variant)
                        variant = None
                    break
            else:
                variant = None
        if variant is not None or entry.reason is not None:
            return self._function(*args, **kwargs)
        return self._capture_or_observe(entry, tensors, args, kwargs)

    def _new_entry(self, key: tuple) -> _CacheEntry:
        """An entry for calls that look like no other; forgets an old one if there are too many."""
        entries = self._entries
        if len(entries) >= _MAX_ENTRIES:
            self._log_once(logging.WARNING, "its arguments are others at nearly every call")
            old = next((old for old, entry in entries.items() if not entry.variants), None)
            if old is not None:
                del entries[old]
        entry = entries[key] = _CacheEntry()
        return entry

    def _activate(self, entry: _CacheEntry, variant: Any) -> bool:
        """Prepare for a variant that was not the last; False if it cannot run now."""
        if type(variant) is Differentiable:
            return not variant.waits
        # Steps share memory: save from this one what the others have left there.
        for other in self._steps:
            if other is not variant:
                other.gradients.copy_out(variant.gradients)
        self._last = variant
        entry.variants.remove(variant)
        entry.variants.insert(0, variant)
        return True

    def _drop(self, entry: _CacheEntry, variant: Any) -> None:
        entry.variants.remove(variant)
        if variant in self._steps:
            self._steps.remove(variant)
        if variant is self._last:
            self._last = None

    # -- calls that no variant serves ---------------------------------------------------------

    def _capture_or_observe(
        self, entry: _CacheEntry, tensors: list, args: tuple, kwargs: dict
    ) -> Any:
        """Capture the call if one like it was observed, else observe it."""
        if saved_hooks or is_anomaly_enabled():
            return self._function(*args, **kwargs)
        probe = next((probe for probe in entry.observed if probe.guards.is_valid()), None)
        if probe is None:
            if len(entry.observed) >= self._limit:
                entry.reason = "what it reads besides its arguments changes from call to call"
                return self._eagerly(entry.reason, args, kwargs)
            return self._observe(entry, tensors, args, kwargs)
        outside = probe.outside(tensors)
        if outside is not None:
            return self._eagerly(outside, args, kwargs)
        if probe.backend.graphs.on_host and hooks.around_op:
            return self._function(*args, **kwargs)
        pinned = self._pins(entry, probe, tensors)
        if sum([len(other.variants) for other in self._entries.values()]) >= self._limit:
            entry.reason = (
                f"recompile_limit reached: {self._limit} forms of it were captured, and calls that "
                "differ from them all are not captured any more"
            )
            return self._eagerly(entry.reason, args, kwargs)
        call = (args, kwargs)
        variant: Any = probe.kind(self._function, probe.backend, call, tensors, pinned, probe.trace)
        try:
            self._capture(variant)
        except UnstableError as error:
            entry.observed.remove(probe)
            entry.attempts += 1
            if entry.attempts < _MAX_ATTEMPTS:
                return self._observe(entry, tensors, args, kwargs)
            entry.reason = str(error)
            return self._eagerly(entry.reason, args, kwargs, error)
        except UnsuitableError as error:
            entry.reason = str(error)
            return self._eagerly(entry.reason, args, kwargs)
        except Exception as error:
            if not (isinstance(error, CaptureError) or entry.copied):
                # Copies of arguments lie elsewhere, and products on those must have run before.
                entry.observed.remove(probe)
                entry.copied, entry.mutated = True, probe.mutated
                return self._observe(entry, tensors, args, kwargs)
            entry.reason = _reason_of(error)
            return self._eagerly(entry.reason, args, kwargs, error)
        entry.variants.insert(0, variant)
        return variant.run(tensors, first=True)

    def _capture(self, variant: Any) -> None:
        if self._pool is None:
            self._pool = variant.graphs.pool()
        with _capturing:
            inside.active = True
            # Casts that are kept in a block around the call are no part of the graph.
            cache, autocast.cache = autocast.cache, {}
            try:
                # What forward keeps for backward must outlive other replays: a pool of its own.
                pool = self._pool if type(variant) is Step else variant.graphs.pool()
                with self._recording(variant.graphs):
                    variant.capture(pool)
            except BaseException:
                variant.undo()
                raise
            finally:
                inside.active, autocast.cache = False, cache
        if type(variant) is Step:
            self._steps.append(variant)
            self._last = variant

    def _recording(self, graphs: Any) -> Any:
        """A context around a capture, which writes down what is captured if that is wanted."""
        if self._folder is None:
            return nullcontext()
        return self._folder.recording(graphs, name_of(self._function))

    def _pins(self, entry: _CacheEntry, probe: _Probe, tensors: list) -> set[int]:
        """Which arguments a capture is to work on where they lie.

        Those that the function writes into; for a step also leaves, whose ``.grad`` it sets, and
        those that were the same tensor in both calls, until another one is given.
        """
        pinned = set(probe.mutated)
        if probe.kind is Step:
            pinned |= {i for i, t in enumerate(tensors) if mode.grad and t._edge is not None}
            for variant in list(entry.variants):
                changed = {i for i, tensor, _ in variant.pins if tensors[i] is not tensor} - pinned
                if changed:
                    entry.free |= changed
                    self._drop(entry, variant)
            if not entry.copied:
                same = {i for i, tensor in enumerate(tensors) if probe.tensors[i]() is tensor}
                pinned |= same - entry.free
        return pinned

    def _observe(self, entry: _CacheEntry, tensors: list, args: tuple, kwargs: dict) -> Any:
        """Run the function as it is, and note what it does."""
        trace = Trace()
        call: Any = args, kwargs
        if entry.copied:
            leaves: list[Any] = []
            rebuild = flatten(call, leaves)
            mutated = {id(tensors[i]) for i in entry.mutated}
            call = rebuild(iter([x if id(x) in mutated else _copy_of(x) for x in leaves]))
        inside.active, inside.trace = True, trace
        try:
            with trace:
                result = self._function(*call[0], **call[1])
            trace.add_roots(self._function, (*args, *kwargs.values()))
        finally:
            inside.active, inside.trace = False, None
        probe = _Probe(self._function, trace, tensors)
        entry.reason = probe.classify(tensors, result)
        if entry.reason is None:
            entry.observed.append(probe)
        elif entry.reason is _NO_DEVICE:
            self._log_once(logging.DEBUG, entry.reason)
        elif self._fullgraph:
            raise RuntimeError(f"{self._name()} cannot be captured: {entry.reason}")
        else:
            self._log_once(logging.WARNING, entry.reason)
        return result

    # -- without a graph ----------------------------------------------------------------------

    def _eagerly(
        self, reason: str, args: tuple, kwargs: dict, error: Exception | None = None
    ) -> Any:
        """Run the function as it is because of `reason`; RuntimeError with ``fullgraph=True``."""
        if self._fullgraph:
            raise RuntimeError(f"{self._name()} cannot be captured: {reason}") from error
        self._log_once(logging.WARNING, reason)
        return self._function(*args, **kwargs)

    def _log_once(self, level: int, reason: str) -> None:
        if reason not in self._logged:
            self._logged.add(reason)
            log.log(level, "%s runs eagerly: %s", self._name(), reason)
            if self._folder is not None:
                self._folder.tell(self._name(), reason)

    def _name(self) -> str:
        return f"'{name_of(self._function)}'"


def name_of(function: Any) -> str:
    """What a function or module is called."""
    name: str = getattr(function, "__qualname__", type(function).__name__)
    return name


def runs_outside(module: Any) -> bool:
    """Whether a module does something at each call that a replay must not leave out.

    It then has a method `_around`, which takes a captured form of its `module`, and gives a
    function that does what its own ``forward`` does besides.
    """
    return hasattr(type(module), "_around")


def _reason_of(error: Exception) -> str:
    """The reason that an exception during a capture gives."""
    failed = capture.state.failed
    where = f" (in op '{failed}')" if failed and failed not in str(error) else ""
    return f"{type(error).__name__}: {error}{where}"


def _copy_of(value: Any) -> Any:
    """A copy of a tensor that takes part in no graph, where a capture would place it."""
    if not isinstance(value, Tensor) or value._edge is not None:
        return value
    storage = value._storage
    graphs = storage.backend.graphs
    if graphs is None:
        return value
    made = graphs.buffer(storage.array)
    graphs.copy_fn(made)(storage.array)
    return new_tensor(Storage(made, storage.backend))


def _identity(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
