"""From a recorder's spans to events: which is inside which, and what each took by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.profiler import frames, recorder
from tensorflow_lite_clone.profiler.events import EventList, FunctionEvent, Interval, Launch
from tensorflow_lite_clone.profiler.memory import MemoryEvent
from tensorflow_lite_clone.profiler.recorder import Details, Recorder

_LOOK_BACK = 16  # spans, for the op whose node is being noted


def events_of(source: Recorder) -> EventList:
    """All spans of a recorder, which forgets them, as events, in the order in which they began."""
    names: dict[int, str] = {}
    counts: dict[str, int] = {}
    found: list[FunctionEvent] = []
    spans = _with_numbers(source.entries())
    spans.sort(key=lambda pair: (pair[0][recorder.BEGIN], -pair[0][recorder.END]))
    for span, number in spans:
        name, kind, thread, begin, end = span[: recorder.EVENTS]
        when = Interval((begin - source.began) / 1e3, (end - source.began) / 1e3)
        event = FunctionEvent(name, kind, thread, when, len(found))
        event.sequence_nr = number
        _describe(event, span[recorder.DETAILS], names, counts)
        _measure(event, span, source.origins, source.began)
        found.append(event)
    source.flat.clear()
    _nest(found)
    _inherit_stacks(found)
    return EventList(found)


def _with_numbers(entries: list[tuple]) -> list[tuple[tuple, int]]:
    """Spans with the sequence numbers of their nodes, -1 without."""
    found: list[tuple[tuple, int]] = []
    for entry in entries:
        if entry[recorder.KIND] != recorder.NODE:
            found.append((entry, -1))
            continue
        # Between an op and its node may be kernels, and the write of an op in place.
        for place in range(len(found) - 1, max(-1, len(found) - _LOOK_BACK), -1):
            span = found[place][0]
            name = span[recorder.NAME]
            if name.rstrip("_") == entry[recorder.NAME]:
                found[place] = span, entry[recorder.BEGIN]
            elif span[recorder.KIND] == "kernel" or name == "copy_":
                continue
            break
    return found


def _describe(
    event: FunctionEvent, details: Any, names: dict[int, str], counts: dict[str, int]
) -> None:
    if type(details) is Details:
        event.input_shapes = details.shapes
        event.input_dtypes = details.dtypes
        event.flops = details.flops
        event.bytes = details.bytes
        event.is_meta = details.is_meta
        event.lines = details.stack
        event.stack = [frames.described(line) for line in details.stack]
    elif event.kind == "kernel":
        file, event.grid, event.block = details
        event.file = os.path.basename(file)
    elif event.kind == "module":  # counted by class, as PyTorch's profiler does
        key = id(details)
        if key not in names:
            number = counts[event.name] = counts.get(event.name, -1) + 1
            names[key] = f"{event.name}_{number}"
        event.name = event.key = names[key]


def _measure(event: FunctionEvent, span: Any, origins: dict, began: int) -> None:
    """Read the events around a span."""
    events, first, last = span[recorder.EVENTS], span[recorder.FIRST], span[recorder.LAST]
    if first is None or last is None:
        return
    event.device_index = events.index
    event.device_time_total = event.self_device_time_total = events.microseconds(first, last)
    origin, when = origins.get(events, (None, 0))
    if origin is not None:
        start = (when - began) / 1e3 + events.microseconds(origin, first)
        event.device_range = Interval(start, start + event.device_time_total)
    events.recycle([first, last])


def _nest(events: list[FunctionEvent]) -> None:
    """Find for each event the one around it, in its thread, and take its time from that one's."""
    open_in: dict[int, list[FunctionEvent]] = {}
    for event in events:
        stack = open_in.setdefault(event.thread, [])
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        parent = event.cpu_parent = stack[-1] if stack else None
        if parent is not None:
            parent.cpu_children.append(event)
        if event.kind == "kernel":  # the device's work, and its op's own
            event.cpu_time_total = event.self_cpu_time_total = 0.0
            if parent is not None:
                parent.kernels.append(Launch(event.name, event.file, event.device_time_total))
            continue
        if parent is not None:
            parent.self_cpu_time_total -= event.cpu_time_total
            if event.device_index == parent.device_index:
                parent.self_device_time_total -= event.device_time_total
        stack.append(event)


def _inherit_stacks(events: list[FunctionEvent]) -> None:
    """A gradient's lines are those of the op whose gradient it is."""
    forward = {e.sequence_nr: e for e in events if e.kind == "op" and e.sequence_nr >= 0}
    for event in events:
        if event.kind == "backward" and event.sequence_nr in forward:
            source = forward[event.sequence_nr]
            event.lines, event.stack = source.lines, source.stack


def memory_events(source: Recorder, events: EventList) -> list[MemoryEvent]:
    """What a recorder heard of memory; each change is added to the events that were under way.

    Memory that a gradient took counts for the line of the op whose gradient it is.
    """
    if source.memory is None:
        return []
    totals = dict(source.memory.before)
    found = [
        MemoryEvent(0.0, name, size, size, "before the profile") for name, size in totals.items()
    ]
    finders: dict[int, Callable[[float], FunctionEvent | None]] = {}
    takers: dict[Any, str] = {}
    for change in source.memory.heard:
        time = (change.time - source.began) / 1e3
        if change.thread not in finders:
            finders[change.thread] = _finder(events, change.thread)
        event = finders[change.thread](time)
        where = frames.place(change.line)
        around = event
        while around is not None:
            if around.kind == "backward" and around.lines:
                where = f"{frames.place(around.lines[0])} (gradient)"
            _count(around, change.device, change.size, around is event)
            around = around.cpu_parent
        key = change.device, change.key
        if change.size > 0:
            takers[key] = where
        else:
            where = takers.pop(key, "before the profile")
        totals[change.device] = totals.get(change.device, 0) + change.size
        found.append(MemoryEvent(time, change.device, change.size, totals[change.device], where))
    return found


def _count(event: FunctionEvent, device: str, size: int, innermost: bool) -> None:
    kind = "device" if device.startswith("cuda") else "cpu"
    for name in (f"{kind}_memory_usage", *([f"self_{kind}_memory_usage"] if innermost else [])):
        setattr(event, name, getattr(event, name) + size)


def _finder(events: EventList, thread: int) -> Callable[[float], FunctionEvent | None]:
    """A function that gives a thread's innermost event at times, which must rise."""
    coming = iter([event for event in events if event.thread == thread])
    upcoming = next(coming, None)
    stack: list[FunctionEvent] = []

    def innermost(time: float) -> FunctionEvent | None:
        nonlocal upcoming
        while upcoming is not None and upcoming.time_range.start <= time:
            stack.append(upcoming)
            upcoming = next(coming, None)
        while stack and stack[-1].time_range.end < time:
            stack.pop()
        return stack[-1] if stack else None

    return innermost
