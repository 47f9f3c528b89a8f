"""What runs, noted while it runs; `spans.py` makes events of it afterwards.

Ops are on the program's hot path, so a recorder appends flat lists and computes nothing that can
wait. On a GPU it records events in the stream around each op and reads them when all is over: it
never waits for the device in between.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from threading import get_ident
from typing import Any, Self

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.dispatch.op import TABLE
from tensorflow_lite_clone.nn.modules.hooks import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from tensorflow_lite_clone.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from tensorflow_lite_clone.profiler import frames
from tensorflow_lite_clone.profiler.memory import MemoryRecorder
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.trace import Observer
from tensorflow_lite_clone.utils._op_costs import (
    bytes_of,
    bytes_of_gradient,
    flops_of,
    flops_of_gradient,
)

clock = time.perf_counter_ns

# A span: name, kind, thread, begin, end, event pool, first event, last event, details.
NAME, KIND, THREAD, BEGIN, END, EVENTS, FIRST, LAST, DETAILS = range(9)
# Entries of the kind NODE are no spans: the graph's node, with the sequence number at BEGIN, of the
# op just before, whose name is that at NAME.
NODE = "node"

#: The recorders at work, the newest last: what `record_function` is told to.
recorders: list[Recorder] = []


class Details:
    """What is noted of an op besides its times, if that is wanted."""

    __slots__ = ("bytes", "dtypes", "flops", "is_meta", "shapes", "stack")

    def __init__(self) -> None:
        self.is_meta = False
        self.shapes: list[Any] = []
        self.dtypes: list[str] = []
        self.flops = 0
        self.bytes = 0
        self.stack: tuple = ()


class Recorder(Observer):
    """Context manager that notes what runs inside.

    `device` measures time on GPUs, `kernels` that of each kernel of a ``.cu`` file; `costs` notes
    shapes, floating-point operations and bytes; `memory` what is taken and given back; `stacks`
    the lines of the program; `modules` the calls of modules.
    """

    def __init__(
        self, *, device: bool, kernels: bool, costs: bool, memory: bool, stacks: bool, modules: bool
    ) -> None:
        self.device, self.kernels, self.costs = device, kernels, costs
        self.stacks, self.modules = stacks, modules
        #: All entries one after the other: a list of lists would keep the garbage collector busy.
        self.flat: list[Any] = []
        self.waits: list[tuple[str, int, Any]] = []
        self.memory = MemoryRecorder() if memory else None
        self.fallbacks: Counter[tuple[str, str]] = Counter()
        self.began = 0
        self._calls: defaultdict[int, list[Any]] = defaultdict(list)  # open spans, by thread
        self.origins: dict[Any, tuple[Any, int]] = {}  # per device an event, and when
        if device:
            self.on_launch = self._launching

    # -- beginning and end ----------------------------------------------------------------------

    def __enter__(self) -> Self:
        if self.device:
            for events in _all_events():
                events.synchronize()
                self.origins[events] = events.record(), clock()
        if self.memory is not None:
            self.memory.__enter__()
        self._declined = table.declined.copy()
        super().__enter__()
        recorders.append(self)
        self.began = clock()
        return self

    def registrations(self) -> Iterator[Any]:
        """Follow calls of modules, if wanted, and steps of optimizers."""
        if self.modules:
            yield register_module_forward_pre_hook(self._module_begins)
            yield register_module_forward_hook(self._call_ends, always_call=True)
        yield register_optimizer_step_pre_hook(self._step_begins)
        yield register_optimizer_step_post_hook(self._call_ends)

    def __exit__(self, *exception: object) -> None:
        recorders.remove(self)
        super().__exit__(*exception)
        if self.memory is not None:
            self.memory.__exit__(*exception)
        self.fallbacks = table.declined.copy() - self._declined
        if self.device:
            for events in _all_events():
                events.synchronize()

    def entries(self) -> list[tuple]:
        """What was noted, in the order in which it ended."""
        return list(zip(*[iter(self.flat)] * (DETAILS + 1)))

    # -- ops ------------------------------------------------------------------------------------

    def around_op(self, op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
        """What runs in place of an op: the op, with its times."""
        name, extend = op.name, self.flat.extend
        events = backend.events if self.device else None
        if events is None and not (self.costs or self.memory or self.stacks):

            def timed(*arrays: Any, **parameters: Any) -> Any:
                begin = clock()
                result = call(*arrays, **parameters)
                extend((name, "op", get_ident(), begin, clock(), None, None, None, None))
                return result

            return timed
        describe = partial(self._details, op, backend)

        def noted(*arrays: Any, **parameters: Any) -> Any:
            first = None if events is None else events.record()
            begin = clock()
            result = call(*arrays, **parameters)
            end = clock()
            last = None if events is None else events.record()
            details = describe(arrays, parameters, result, end)
            extend((name, "op", get_ident(), begin, end, events, first, last, details))
            return result

        return noted

    def _details(
        self, op: Any, backend: Any, arrays: tuple, parameters: dict, result: Any, end: int
    ) -> Details:
        details = Details()
        if self.costs:
            given = [array for array in arrays if hasattr(array, "dtype")]
            details.shapes = [list(getattr(array, "shape", ())) for array in arrays]
            details.dtypes = [array.dtype.name for array in given]
            details.flops = flops_of(op, arrays, parameters, result)
            details.bytes = bytes_of(op, arrays, result)
        self._place(details, backend, result, end)
        return details

    def _place(self, details: Details, backend: Any, result: Any, end: int) -> None:
        details.is_meta = not backend.has_values
        if self.stacks:
            details.stack = frames.stack()
        elif self.memory is not None:
            details.stack = frames.stack(1)
        if self.memory is not None:
            self.memory.took(backend, result, end)

    def on_node(self, node: Any) -> None:
        """Note a new node of the graph: the op that just ran has its sequence number."""
        if (op := getattr(node, "op", None)) is not None:  # else it is a user's function
            self.flat.extend((op.name, NODE, 0, node.sequence, 0, None, None, None, None))

    # -- everything else ------------------------------------------------------------------------

    def around_gradient(self, node: Any, call: Callable[[list], Any], grads: list) -> Any:
        """The gradients of a node, with their times."""
        events = node.backend.events if self.device else None
        first = None if events is None else events.record()
        begin = clock()
        results = call(grads)
        end = clock()
        last = None if events is None else events.record()
        details = None
        if self.costs or self.memory or self.stacks:
            details = Details()
            given, found = _arrays(grads), _arrays(results)
            if self.costs:
                details.shapes = [None if g is None else list(g.shape) for g in given]
                details.dtypes = [g.dtype.name for g in given if g is not None]
                needs = tuple([result is not None for result in found])
                details.flops = flops_of_gradient(node, given, needs)
                details.bytes = bytes_of_gradient(node, given, found)
            self._place(details, node.backend, found, end)
        name, thread = node.name(), get_ident()
        self.flat.extend((name, "backward", thread, begin, end, events, first, last, details))
        self.flat.extend((name, NODE, 0, node.sequence, 0, None, None, None, None))
        return results

    def around_write(
        self, op: Any, call: Callable[[], Any], arrays: tuple, parameters: dict
    ) -> None:
        """A write into memory, with its times."""
        details, backend = None, _backend_of(arrays[0])
        if self.costs or self.stacks:
            details = Details()
            details.is_meta = backend is not None and not backend.has_values
            details.shapes = [list(getattr(array, "shape", ())) for array in arrays]
            done: Any = op or TABLE["copy_into"]
            details.flops = flops_of(done, arrays, parameters, arrays[0])
            details.bytes = bytes_of(done, arrays, arrays[0])
            if self.stacks:
                details.stack = frames.stack()
        name = "copy_" if op is None else f"{op.name}_"
        marked = backend is not None and backend.events is not None
        span = self.begin(name, "op", current_events() if marked else None)
        span[DETAILS] = details
        call()
        self.end(span)

    def around_region(self, name: str, call: Callable[[], Any]) -> Any:
        """What the framework does besides ops, with its times."""
        span = self.begin(name, "region", current_events())
        result = call()
        self.end(span)
        return result

    def _launching(self, name: str, file: str, grid: tuple, block: tuple) -> Callable[[], None]:
        """A kernel is launched; gives what is called after."""
        span = self.begin(name, "kernel", current_events() if self.kernels else None)
        span[DETAILS] = file, grid, block
        return partial(self.end, span)

    def on_wait(self, what: str, size: int) -> None:
        """Note what the host waits for, and where."""
        self.waits.append((what, size, frames.innermost()))

    def _module_begins(self, module: Any, args: Any) -> None:
        span = self.begin(f"nn.Module: {type(module).__name__}", "module", current_events())
        span[DETAILS] = module
        self._calls[get_ident()].append((module, span))

    def _step_begins(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        name = f"Optimizer.step#{type(optimizer).__name__}.step"
        self._calls[get_ident()].append((optimizer, self.begin(name, "user", current_events())))

    def _call_ends(self, called: Any, *about: Any) -> None:
        """A hook after calls of modules and steps of optimizers."""
        calls = self._calls[get_ident()]
        while calls:  # else it began before this recorder
            begun, span = calls.pop()
            if begun is called:
                self.end(span)
                break  # calls above it ended by an error

    def begin(self, name: str, kind: str, events: Any) -> list[Any]:
        """A span that begins now; it counts once it has ended."""
        first = events.record() if events is not None and self.device else None
        return [name, kind, get_ident(), clock(), 0, events, first, None, None]

    def end(self, span: list[Any]) -> None:
        """End a span."""
        span[END] = clock()
        if span[FIRST] is not None:
            span[LAST] = span[EVENTS].record()
        self.flat.extend(span)


def _arrays(values: Any) -> list[Any]:
    """The arrays of gradients, which are Tensors with `create_graph` and where they are sparse."""
    values = [x._values() if isinstance(x, Tensor) and x.is_sparse else x for x in values]
    return [x._storage.physical if isinstance(x, Tensor) else x for x in values]


def _all_events() -> list[Any]:
    return [backend.events for backend in backends.loaded() if backend.events is not None]


def current_events() -> Any:
    """The event pool of the current device, if one that has a pool is in use."""
    loaded = _all_events()
    return loaded[0] if len(loaded) == 1 else next((m for m in loaded if m.is_current()), None)


def _backend_of(array: Any) -> Any:
    """A backend whose arrays have the type of this one; None where it is of none."""
    return next((b for b in backends.loaded() if type(array) is b.array_type), None)
