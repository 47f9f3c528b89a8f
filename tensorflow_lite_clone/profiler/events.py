"""What a profile notes: spans of time with names, one inside the other, and their sums."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, Self

#: The events that are noted now, None while nothing is profiled; and the spans that are open.
_noted: list[EventList | None] = [None]
_open: list[FunctionEvent] = []


class FunctionEvent:
    """One span; times are in microseconds."""

    count = 1

    def __init__(self, name: str, input_shapes: list | None = None, own: bool = False) -> None:
        self.key = self.name = name
        self.input_shapes = input_shapes or []
        self.is_user_annotation = own
        self.start = 0.0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0

    def __enter__(self) -> Self:
        _open.append(self)
        self.start = time.perf_counter() * 1e6
        return self

    def __exit__(self, *error: object) -> None:
        self.cpu_time_total = time.perf_counter() * 1e6 - self.start
        self.self_cpu_time_total += self.cpu_time_total
        _open.pop()
        if _open:
            _open[-1].self_cpu_time_total -= self.cpu_time_total

    @property
    def cpu_time(self) -> float:
        """The mean duration."""
        return self.cpu_time_total / self.count


class EventList(list):
    """Events, or their sums by name."""

    def key_averages(self, group_by_input_shape: bool = False) -> EventList:
        """One event for all of a name (and of the same shapes), with their `count` and sums."""
        sums: dict[Any, FunctionEvent] = {}
        for event in self:
            key = (event.key, str(event.input_shapes) if group_by_input_shape else "")
            if key not in sums:
                shapes = event.input_shapes if group_by_input_shape else None
                sums[key] = FunctionEvent(event.key, shapes, event.is_user_annotation)
                sums[key].count = 0
            total = sums[key]
            total.count += event.count
            total.cpu_time_total += event.cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
        return EventList(sums.values())

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum([event.self_cpu_time_total for event in self]))

    def table(self, sort_by: str | None = None, row_limit: int = 100, **widths: Any) -> str:
        """The events in a table, the largest `sort_by` (an attribute of theirs) first.

        Keywords that steer the widths of PyTorch's columns are accepted.
        """
        events = sorted(self, key=lambda e: -getattr(e, sort_by)) if sort_by else list(self)
        head = ("Name", "Self CPU %", "Self CPU", "CPU total", "CPU time avg", "# of Calls")
        shapes = any([event.input_shapes for event in events])
        whole = self.self_cpu_time_total or 1.0
        rows = [head + ("Input Shapes",) * shapes]
        for event in events[: row_limit if row_limit >= 0 else None]:
            part = f"{100 * event.self_cpu_time_total / whole:.2f}%"
            times = (event.self_cpu_time_total, event.cpu_time_total, event.cpu_time)
            row = (event.key, part, *map(_duration, times), str(event.count))
            rows.append(row + (str(event.input_shapes),) * shapes)
        widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rule = "  ".join(["-" * width for width in widest])
        lines = ["  ".join([f"{c:>{w}}" for c, w in zip(r, widest, strict=True)]) for r in rows]
        lines = [rule, lines[0], rule, *lines[1:], rule]
        return "\n".join([*lines, f"Self CPU time total: {_duration(self.self_cpu_time_total)}\n"])

    def __str__(self) -> str:
        return self.table()


def _duration(microseconds: float) -> str:
    for factor, unit in ((1e6, "s"), (1e3, "ms")):
        if microseconds >= factor:
            return f"{microseconds / factor:.3f}{unit}"
    return f"{microseconds:.3f}us"


class record_function:
    """Context in which what runs is one event `name` of a profile; also a decorator."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> Self:
        self.event = _begin(self.name)
        return self

    def __exit__(self, *error: object) -> None:
        if self.event is not None:
            self.event.__exit__()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return recorded


def _begin(name: str) -> FunctionEvent | None:
    if _noted[0] is None:
        return None
    event = FunctionEvent(name, own=True)
    _noted[0].append(event)
    return event.__enter__()


def note(events: EventList | None) -> None:
    """Let `record_function` and `around` add to `events` from now on, or to none."""
    _noted[0] = events


def around(op: Any, backend: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of the dispatcher: an event for every op."""

    def noted(*arrays: Any, **parameters: Any) -> Any:
        events = _noted[0]
        if events is None:
            return call(*arrays, **parameters)
        event = FunctionEvent(op.name, [list(getattr(x, "shape", ())) for x in arrays])
        events.append(event)
        with event:
            return call(*arrays, **parameters)

    return noted
