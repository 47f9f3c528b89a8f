"""`profile`: what ran, how often, how long it took on the host and on the device, and what it used.

The interface is PyTorch's; beside it there are `waits`, `fallbacks`, `kernels` and `report`.
"""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from tensorflow_lite_clone import cuda
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.profiler import frames
from tensorflow_lite_clone.profiler._text import size
from tensorflow_lite_clone.profiler.events import EventList, record_function
from tensorflow_lite_clone.profiler.memory import MemoryEvent
from tensorflow_lite_clone.profiler.memory_report import (
    MemoryLine,
    memory_by_line,
    memory_timeline,
)
from tensorflow_lite_clone.profiler.recorder import Recorder
from tensorflow_lite_clone.profiler.roofline import add_ideal_times
from tensorflow_lite_clone.profiler.spans import events_of, memory_events
from tensorflow_lite_clone.profiler.table import layout
from tensorflow_lite_clone.profiler.trace import write_chrome_trace

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What may be measured; here CPU and CUDA are."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What a profile does in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def kineto_available() -> bool:
    """False: the library that PyTorch measures with is not here."""
    return False


def supported_activities() -> set[ProfilerActivity]:
    """The host's time, and a GPU's where there is one."""
    found = {ProfilerActivity.CPU}
    return found | {ProfilerActivity.CUDA} if cuda.is_available() else found


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """What to do in each step: after `skip_first`, cycles of `wait`, `warmup` and `active` steps.

    There are `repeat` cycles, or no end of them; with `skip_first_wait` the first has no `wait`.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


_default_schedule_fn = _always


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """A function for `on_trace_ready` that writes a trace of each cycle into a folder."""
    worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def write(profiled: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        profiled.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:
    """Context that notes what runs: ops, gradients, kernels, optimizer steps, data loading.

    `activities` says whose time is measured, by default all that is supported. `schedule(step)`
    says what is done in each step, which `step` ends; `on_trace_ready` is called with this at the
    end of each recorded cycle, and what it cannot write is a warning, not an error in the program.
    `record_shapes` notes the shapes of inputs, `with_flops` also floating-point operations, bytes,
    and the share of the device's measured peak (see `roof`); `profile_memory` what is taken and
    given back, by op and by line; `with_stack` the program's lines; `with_modules` calls of
    modules; `with_kernels` times every kernel of a ``.cu`` file by itself. Several profiles may be
    under way. Further options of PyTorch's are accepted.

    A GPU's time is that between events in its stream before and after an op: where the GPU waits
    for the host, its waiting counts.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        with_kernels: bool = False,
        acc_events: bool = False,
        **options: Any,
    ) -> None:
        # not `supported_activities`, which would look for a GPU: one that is in use is known
        every = {ProfilerActivity.CPU, ProfilerActivity.CUDA}
        self.activities = set(activities) if activities else every
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops = with_stack, with_flops
        self.with_modules, self.with_kernels = with_modules, with_kernels
        self.acc_events = acc_events
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._metadata: dict[str, Any] = {}
        self._recorder: Recorder | None = None
        self._step: record_function | None = None
        self._events: EventList | None = None
        self._memory: list[MemoryEvent] = []
        self._roofed = False  # whether the events know what the device's peaks would allow
        self._last: Recorder | None = None  # the one that `_events` come from

    # -- steps ------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        self._begin_step()

    def stop(self) -> None:
        """End; what was recorded and not yet handed over goes to `on_trace_ready`."""
        self._end_step()
        recorded = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._end_recording(recorded)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """End one step of the program and begin the next."""
        self._end_step()
        if self.current_action is ProfilerAction.RECORD_AND_SAVE:
            self._end_recording(True)
        self.step_num += 1
        self._begin_step()

    def _begin_step(self) -> None:
        before, self.current_action = self.current_action, self.schedule(self.step_num)
        if self.current_action is ProfilerAction.NONE:
            self._end_recording(before is ProfilerAction.RECORD)
            return
        recording = self.current_action is not ProfilerAction.WARMUP
        if before is ProfilerAction.WARMUP and recording:
            self._end_recording(False)
        if self._recorder is None:
            self._recorder = Recorder(
                device=ProfilerActivity.CUDA in self.activities,
                kernels=self.with_kernels,
                costs=self.record_shapes or self.with_flops,
                memory=self.profile_memory,
                stacks=self.with_stack,
                modules=self.with_modules,
            )
            self._recorder.__enter__()
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def _end_recording(self, keep: bool) -> None:
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        recorder.__exit__()
        if not keep:
            return
        earlier = self._events if self.acc_events else None
        self._last = recorder
        self._events = events_of(recorder)
        self._roofed = False
        self._memory = memory_events(recorder, self._events)
        if earlier:
            self._events[:0] = earlier
        if self.on_trace_ready:
            try:
                self.on_trace_ready(self)
            except OSError as error:
                warnings.warn(
                    f"the profile could not be handed over: {error}", stacklevel=level_outside()
                )

    # -- what was found -----------------------------------------------------------------------

    def events(self) -> EventList:
        """All events, in the order in which they began; RuntimeError before there are any."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        if self.with_flops and not self._roofed:
            self._roofed = True
            add_ideal_times(self._events)
        return self._events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The events' sums by name (and by shapes and lines, if they were recorded)."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def kernels(self) -> EventList:
        """The launches of kernels, summed by name; timed with `with_kernels`."""
        return EventList([e for e in self.key_averages() if e.kind == "kernel"])

    def memory_events(self) -> list[MemoryEvent]:
        """What was taken and given back, in order, with `profile_memory`."""
        return self._memory

    def memory_by_line(self) -> list[MemoryLine]:
        """What each line of the program took; see `memory_by_line`."""
        return memory_by_line(self._memory)

    def fallbacks(self) -> dict[tuple[str, str], int]:
        """How often an override declined, so that the generic form ran, by op and backend."""
        self.events()
        return dict(self._last.fallbacks)  # type: ignore[union-attr]

    def waits(self) -> list[tuple[str, str, int, int]]:
        """Where the host waited for a device or copied: ``(what, file:line, count, bytes)``."""
        self.events()
        found: dict[tuple[str, str], list[int]] = {}
        for what, nbytes, line in self._last.waits:  # type: ignore[union-attr]
            entry = found.setdefault((what, frames.place(line)), [0, 0])
            entry[0] += 1
            entry[1] += nbytes
        return [(what, where, *entry) for (what, where), entry in found.items()]  # type: ignore[misc]

    def report(self, row_limit: int = 20) -> str:
        """All that was found, as text: the table, kernels, fallbacks and waits."""
        sums = self.key_averages()
        device = any([event.device_time_total for event in sums])
        order = "self_device_time_total" if device else "self_cpu_time_total"
        ops = EventList([event for event in sums if event.kind != "kernel"])
        parts = [ops.table(sort_by=order, row_limit=row_limit)]
        kernels = self.kernels()
        if kernels:
            rows = [[k.key, k.file, str(k.count), k.device_time_total_str] for k in kernels]
            parts.append("Kernels\n" + layout(("Name", "File", "Launches", "CUDA total"), rows))
        if self.fallbacks():
            rows = [[op, name, str(count)] for (op, name), count in self.fallbacks().items()]
            head = ("Op", "Backend", "Declined")
            parts.append("Overrides that left a call to the generic form\n" + layout(head, rows))
        if self.waits():
            rows = [[what, where, str(n), size(nbytes)] for what, where, n, nbytes in self.waits()]
            parts.append("The host\n" + layout(("What", "Line", "Times", "Bytes"), rows))
        if self._memory:
            lines = self.memory_by_line()[:row_limit]
            rows = [[line.where, line.device, *map(size, line[2:])] for line in lines]
            titles = "Line", "Device", "Taken", "Given back", "Held at the peak"
            parts.append("Memory\n" + layout(titles, rows))
        return "\n\n".join(parts) + "\n"

    # -- files ----------------------------------------------------------------------------------

    def add_metadata(self, key: str, value: str) -> None:
        """Add an entry to traces."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Add an entry to traces that is JSON itself."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_chrome_trace(self, path: str) -> None:
        """Write the events, and memory in use, as JSON that ``chrome://tracing`` and Perfetto
        show; compressed if `path` ends with ``.gz``. OSError where it cannot be written."""
        write_chrome_trace(self.events(), path, self._memory, self._metadata)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Draw the memory in use over time; see `memory_timeline`. Needs `profile_memory`."""
        memory_timeline(self._memory, path, device)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks and their times for flame graphs; needs `with_stack`."""
        self.events().export_stacks(path, metric)
