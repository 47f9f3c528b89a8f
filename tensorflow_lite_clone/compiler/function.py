"""A compiled function: which of its captured forms serves a call, and what else happens."""

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
from tensorflow_lite_clone.autograd.autocast import state as autocast
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
    signature,
    surroundings,
)
from tensorflow_lite_clone.compiler.state import Surroundings
from tensorflow_lite_clone.compiler.trace import Trace
from tensorflow_lite_clone.core import locks
from tensorflow_lite_clone.core.errors import CaptureError
from tensorflow_lite_clone.cuda._pairs import flatten
from tensorflow_lite_clone.dispatch import capture, hooks
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor, new_tensor

log = logging.getLogger("tensorflow_lite_clone.compile")
LIMIT = 8  # captured forms of one function, as PyTorch's recompile_limit
_SITES = 64  # kinds of calls of one function that are remembered
_ATTEMPTS = 3  # to capture calls that look the same
_NOWHERE = "it works on no device that captures"


class _Inside(threading.local):
    active = False  # a compiled function is being observed or captured in this thread
    trace: Trace | None = None  # it is being observed
    recorder: Any = None  # what records the graphs of one, see `dynamo.recorder`
    disabled = False  # a function that is never captured runs, outside of all others


inside = _Inside()
everyone: weakref.WeakSet[Any] = weakref.WeakSet()
_capturing = locks.lock()


class _Observed:
    """What a call without a graph has shown."""

    def __init__(self, function: Any, trace: Trace, tensors: list[Tensor]) -> None:
        self.trace = trace
        self.surroundings = Surroundings(function, trace)
        self.tensors = [weakref.ref(tensor) for tensor in tensors]
        self.mutated = {
            i
            for i, tensor in enumerate(tensors)
            if (tensor._storage.root or tensor._storage) in trace.written
        }
        self.kind: type[Step] | type[Differentiable] = Step
        self.backend: Any = None

    def judge(self, tensors: list[Tensor], result: Any) -> str | None:
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
            return _NOWHERE
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


class _Site:
    """Everything known of calls that look the same."""

    __slots__ = ("attempts", "copied", "forms", "free", "mutated", "observed", "reason")

    def __init__(self) -> None:
        self.observed: list[_Observed] = []
        self.forms: list[Any] = []  # captured, the last one used first
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
            functools.update_wrapper(self, function)
        everyone.add(self)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        return self if owner is None else types.MethodType(self, owner)  # type: ignore[arg-type]

    def __reduce__(self) -> Any:
        return _itself, (self._function,)

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
        self._limit = LIMIT if limit is None else limit
        self._told: set[str] = set()
        self._lock = locks.reentrant_lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything that was captured."""
        self._sites: dict[tuple, _Site] = {}
        self._recent: tuple[tuple | None, _Site | None] = (None, None)  # of the last call
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
            key = signature(args, kwargs, tensors), surroundings()
        except UnsuitableError as error:
            return self._eagerly(str(error), args, kwargs)
        recent = self._recent
        if key == recent[0]:  # faster than to hash it
            site = recent[1]
        else:
            site = self._sites.get(key)
        if site is None:
            site = self._new_site(key)
        if recent[1] is not site:
            self._recent = key, site
        with self._lock:  # threads share the forms' memory
            for form in site.forms:
                if form.fits(tensors):
                    if form.graphs.on_host and hooks.around_op:  # who would see nothing of a replay
                        break
                    if form is not self._last and not self._turn_to(site, form):
                        break
                    try:
                        return form.run(tensors)
                    except StaleError:
                        self._drop(site, form)
                        form = None
                    break
            else:
                form = None
        if form is not None or site.reason is not None:
            return self._function(*args, **kwargs)
        return self._first(site, tensors, args, kwargs)

    def _new_site(self, key: tuple) -> _Site:
        """A site for calls that look like no other; forgets an old one if there are too many."""
        sites = self._sites
        if len(sites) >= _SITES:
            self._tell(logging.WARNING, "its arguments are others at nearly every call")
            old = next((old for old, site in sites.items() if not site.forms), None)
            if old is not None:
                del sites[old]
        site = sites[key] = _Site()
        return site

    def _turn_to(self, site: _Site, form: Any) -> bool:
        """Prepare for a form that was not the last; False if it cannot run now."""
        if type(form) is Differentiable:
            return not form.waits
        # Steps share memory: save from this one what the others have left there.
        for other in self._steps:
            if other is not form:
                other.gradients.move_out(form.gradients)
        self._last = form
        site.forms.remove(form)
        site.forms.insert(0, form)
        return True

    def _drop(self, site: _Site, form: Any) -> None:
        site.forms.remove(form)
        if form in self._steps:
            self._steps.remove(form)
        if form is self._last:
            self._last = None

    # -- calls that no form serves ------------------------------------------------------------

    def _first(self, site: _Site, tensors: list, args: tuple, kwargs: dict) -> Any:
        """Capture the call if one like it was observed, else observe it."""
        if saved_hooks or is_anomaly_enabled():
            return self._function(*args, **kwargs)
        seen = next((seen for seen in site.observed if seen.surroundings.hold()), None)
        if seen is None:
            if len(site.observed) >= self._limit:
                site.reason = "what it reads besides its arguments changes from call to call"
                return self._eagerly(site.reason, args, kwargs)
            return self._observe(site, tensors, args, kwargs)
        outside = seen.outside(tensors)
        if outside is not None:
            return self._eagerly(outside, args, kwargs)
        if seen.backend.graphs.on_host and hooks.around_op:
            return self._function(*args, **kwargs)
        pinned = self._pins(site, seen, tensors)
        if sum([len(other.forms) for other in self._sites.values()]) >= self._limit:
            site.reason = (
                f"recompile_limit reached: {self._limit} forms of it were captured, and calls that "
                "differ from them all are not captured any more"
            )
            return self._eagerly(site.reason, args, kwargs)
        call = (args, kwargs)
        form: Any = seen.kind(self._function, seen.backend, call, tensors, pinned, seen.trace)
        try:
            self._capture(form)
        except UnstableError as error:
            site.observed.remove(seen)
            site.attempts += 1
            if site.attempts < _ATTEMPTS:
                return self._observe(site, tensors, args, kwargs)
            site.reason = str(error)
            return self._eagerly(site.reason, args, kwargs, error)
        except UnsuitableError as error:
            site.reason = str(error)
            return self._eagerly(site.reason, args, kwargs)
        except Exception as error:
            if not (isinstance(error, CaptureError) or site.copied):
                # Copies of arguments lie elsewhere, and products on those must have run before.
                site.observed.remove(seen)
                site.copied, site.mutated = True, seen.mutated
                return self._observe(site, tensors, args, kwargs)
            site.reason = _why(error)
            return self._eagerly(site.reason, args, kwargs, error)
        site.forms.insert(0, form)
        return form.run(tensors, first=True)

    def _capture(self, form: Any) -> None:
        if self._pool is None:
            self._pool = form.graphs.pool()
        with _capturing:
            inside.active = True
            # Casts that are kept in a block around the call are no part of the graph.
            cache, autocast.cache = autocast.cache, {}
            try:
                # What forward keeps for backward must outlive other replays: a pool of its own.
                pool = self._pool if type(form) is Step else form.graphs.pool()
                with self._recording(form.graphs):
                    form.capture(pool)
            except BaseException:
                form.undo()
                raise
            finally:
                inside.active, autocast.cache = False, cache
        if type(form) is Step:
            self._steps.append(form)
            self._last = form

    def _recording(self, graphs: Any) -> Any:
        """A context around a capture, which writes down what is captured if that is wanted."""
        if self._folder is None:
            return nullcontext()
        return self._folder.recording(graphs, name_of(self._function))

    def _pins(self, site: _Site, seen: _Observed, tensors: list) -> set[int]:
        """Which arguments a capture is to work on where they lie.

        Those that the function writes into; for a step also leaves, whose ``.grad`` it sets, and
        those that were the same tensor in both calls, until another one is given.
        """
        pinned = set(seen.mutated)
        if seen.kind is Step:
            pinned |= {i for i, t in enumerate(tensors) if mode.grad and t._edge is not None}
            for form in list(site.forms):
                changed = {i for i, tensor, _ in form.pins if tensors[i] is not tensor} - pinned
                if changed:
                    site.free |= changed
                    self._drop(site, form)
            if not site.copied:
                same = {i for i, tensor in enumerate(tensors) if seen.tensors[i]() is tensor}
                pinned |= same - site.free
        return pinned

    def _observe(self, site: _Site, tensors: list, args: tuple, kwargs: dict) -> Any:
        """Run the function as it is, and note what it does."""
        trace = Trace()
        call: Any = args, kwargs
        if site.copied:
            leaves: list[Any] = []
            rebuild = flatten(call, leaves)
            held = {id(tensors[i]) for i in site.mutated}
            call = rebuild(iter([x if id(x) in held else _copied(x) for x in leaves]))
        inside.active, inside.trace = True, trace
        try:
            with trace:
                result = self._function(*call[0], **call[1])
            trace.add_roots(self._function, (*args, *kwargs.values()))
        finally:
            inside.active, inside.trace = False, None
        seen = _Observed(self._function, trace, tensors)
        site.reason = seen.judge(tensors, result)
        if site.reason is None:
            site.observed.append(seen)
        elif site.reason is _NOWHERE:
            self._tell(logging.DEBUG, site.reason)
        elif self._fullgraph:
            raise RuntimeError(f"{self._name()} cannot be captured: {site.reason}")
        else:
            self._tell(logging.WARNING, site.reason)
        return result

    # -- without a graph ----------------------------------------------------------------------

    def _eagerly(
        self, reason: str, args: tuple, kwargs: dict, error: Exception | None = None
    ) -> Any:
        """Run the function as it is because of `reason`; RuntimeError with ``fullgraph=True``."""
        if self._fullgraph:
            raise RuntimeError(f"{self._name()} cannot be captured: {reason}") from error
        self._tell(logging.WARNING, reason)
        return self._function(*args, **kwargs)

    def _tell(self, level: int, reason: str) -> None:
        if reason not in self._told:
            self._told.add(reason)
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


def _why(error: Exception) -> str:
    """The reason that an exception during a capture gives."""
    failed = capture.state.failed
    where = f" (in op '{failed}')" if failed and failed not in str(error) else ""
    return f"{type(error).__name__}: {error}{where}"


def _copied(value: Any) -> Any:
    """A copy of a tensor that takes part in no graph, where a capture would place it."""
    if not isinstance(value, Tensor) or value._edge is not None:
        return value
    storage = value._storage
    graphs = storage.backend.graphs
    if graphs is None:
        return value
    made = graphs.buffer(storage.array)
    graphs.copier(made)(storage.array)
    return new_tensor(Storage(made, storage.backend))


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function
