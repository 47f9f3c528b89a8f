"""`profile`: which ops ran, how often, and how long Python and NumPy took over them."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Self

from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.profiler.events import (
    EventList,
    FunctionEvent,
    around,
    note,
    record_function,
)

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
    """What may be measured; here only CPU is."""

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
    """The time that the CPU takes; a GPU's timeline is what NVIDIA's tools show."""
    return {ProfilerActivity.CPU}


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
        name = f"{worker}.{time.time_ns()}.pt.trace.json"
        profiled.export_chrome_trace(os.path.join(dir_name, name))

    return write


class profile:
    """Context that notes every op that runs, and what is in a `record_function`.

    A span lasts as long as the host takes: on a GPU, until the kernel is launched. Backward passes
    are noted where their formulas call other ops. `schedule(step)` says what is done in each step,
    which `step` ends; `on_trace_ready` is called with this at the end of each recorded cycle. The
    other arguments steer what PyTorch measures beside this and are accepted.
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
        **options: Any,
    ) -> None:
        self.activities = set(activities or supported_activities())
        self.schedule = schedule or _always
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._events = EventList()
        self._step: record_function | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin with the first step."""
        hooks.add(around)
        self._begin_step()

    def stop(self) -> None:
        """End; what was recorded and not yet handed over goes to `on_trace_ready`."""
        self._end_step()
        hooks.remove(around)
        note(None)
        recorded = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recorded and self.on_trace_ready:
            self.on_trace_ready(self)
        self.current_action = ProfilerAction.NONE

    def step(self) -> None:
        """End one step of the program and begin the next."""
        self._end_step()
        if self.current_action is ProfilerAction.RECORD_AND_SAVE and self.on_trace_ready:
            self.on_trace_ready(self)
        self.step_num += 1
        self._begin_step()

    def _begin_step(self) -> None:
        before, self.current_action = self.current_action, self.schedule(self.step_num)
        if self.current_action in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            note(None)
            return
        if before is not ProfilerAction.RECORD:
            self._events = EventList()
        note(self._events)
        if self.record_steps:
            self._step = record_function(f"ProfilerStep#{self.step_num}")
            self._step.__enter__()

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.__exit__()
            self._step = None

    def events(self) -> EventList:
        """All spans, in the order in which they began."""
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, **groups: Any) -> EventList:
        """The spans' sums by name (and by shapes, if they were recorded)."""
        return self._events.key_averages(group_by_input_shape and self.record_shapes)

    def export_chrome_trace(self, path: str) -> None:
        """Write the spans as JSON in the form that ``chrome://tracing`` reads."""
        spans = [_as_trace(event) for event in self._events]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": spans, "displayTimeUnit": "ms"}, file)


def _as_trace(event: FunctionEvent) -> dict[str, Any]:
    place = {"pid": os.getpid(), "tid": 0, "ts": event.start, "dur": event.cpu_time_total}
    shapes = {"Input Dims": event.input_shapes}
    kind = "user_annotation" if event.is_user_annotation else "cpu_op"
    return {"ph": "X", "cat": kind, "name": event.name, **place, "args": shapes}
