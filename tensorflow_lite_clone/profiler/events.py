"""What a profile found: events, and their sums by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from tensorflow_lite_clone.profiler import recorder
from tensorflow_lite_clone.profiler.table import Layout, duration
from tensorflow_lite_clone.profiler.trace import write_chrome_trace, write_stacks


class Interval(NamedTuple):
    """A span of time in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


class Launch(NamedTuple):
    """One launch of a kernel; `file` is its ``.cu`` file, `duration` in microseconds on the GPU."""

    name: str
    file: str
    duration: float


class _Event:
    """What single events and their sums share; times are in microseconds, memory in bytes.

    Times and memory on "device" are those of a GPU. What is "self" leaves out what ran inside.
    """

    key: str
    count: int
    kind: str

    def __init__(self) -> None:
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.device_memory_usage = self.self_device_memory_usage = 0
        self.flops = 0
        self.bytes = 0
        self.ideal_time_total = 0.0  # what the device's peaks would allow, if they are known
        self.input_shapes: Any = []
        self.stack: list[str] = []
        self.kernels: list[Launch] = []
        self.file = ""  # of a kernel
        self.is_async = self.is_remote = self.is_legacy = False
        self.node_id = -1
        self.overload_name = ""
        self.use_device: str | None = None

    @property
    def cpu_time(self) -> float:
        """The mean time on the host."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The mean time on the device."""
        return self.device_time_total / self.count if self.count else 0.0

    @property
    def roof(self) -> float:
        """The share of the device's peak that was reached; 0 where it is not known."""
        time = self.device_time_total or self.cpu_time_total
        return self.ideal_time_total / time if time else 0.0

    @property
    def is_user_annotation(self) -> bool:
        """Whether it comes from a `record_function`."""
        return self.kind == "user"

    @property
    def scope(self) -> int:
        """PyTorch's number of the kind of event: 0 ops, 1 gradients, 7 the program's own."""
        return {"backward": 1, "user": 7}.get(self.kind, 0)

    # PyTorch's older names
    cuda_time = property(lambda self: self.device_time)
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)
    cuda_memory_usage = property(lambda self: self.device_memory_usage)
    self_cuda_memory_usage = property(lambda self: self.self_device_memory_usage)
    cpu_time_str = property(lambda self: duration(self.cpu_time))
    cpu_time_total_str = property(lambda self: duration(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: duration(self.self_cpu_time_total))
    device_time_str = property(lambda self: duration(self.device_time))
    device_time_total_str = property(lambda self: duration(self.device_time_total))
    self_device_time_total_str = property(lambda self: duration(self.self_device_time_total))


class FunctionEvent(_Event):
    """One span of time.

    `kind` is "op", "backward" (a node's gradients), "kernel", "module", "region" (a data loader's
    batch, a graph's replay) or "user" (a `record_function`, an optimizer's step). `sequence_nr`
    connects an op and its gradients, -1 without.
    """

    count = 1

    def __init__(self, name: str, kind: str, thread: int, time_range: Interval, id: int) -> None:
        super().__init__()
        self.name = self.key = name
        self.kind, self.thread, self.time_range, self.id = kind, thread, time_range, id
        self.cpu_time_total = self.self_cpu_time_total = time_range.elapsed_us()
        self.sequence_nr = -1
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.device_index: int | None = None
        self.device_range: Interval | None = None  # when it ran there
        self.is_meta = False  # what it counts did not happen, so no time compares with it
        self.input_dtypes: list[str] = []
        self.lines: tuple = ()  # `stack`, unformatted
        self.grid: tuple = ()
        self.block: tuple = ()

    @property
    def trace_name(self) -> str:
        """The name in a trace."""
        return self.name

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} kind={self.kind} "
            f"cpu_time={self.cpu_time_str} device_time={self.device_time_str} "
            f"thread={self.thread} input_shapes={self.input_shapes} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Event):
    """The sum of events with one name."""

    def __init__(self) -> None:
        super().__init__()
        self.key, self.kind, self.count = "", "op", 0
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> Self:
        """Add an event, or another sum."""
        if not self.count:
            self.key, self.kind, self.file = other.key, other.kind, other.file
            self.input_shapes, self.stack = other.input_shapes, other.stack
        self.count += other.count
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.kernels = self.kernels + other.kernels
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} "
            f"self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"self_device_time={self.self_device_time_total_str} "
            f"device_time={self.device_time_str} input_shapes={self.input_shapes}>"
        )


_SUMS = (
    "cpu_time_total",
    "self_cpu_time_total",
    "device_time_total",
    "self_device_time_total",
    "cpu_memory_usage",
    "self_cpu_memory_usage",
    "device_memory_usage",
    "self_device_memory_usage",
    "flops",
    "bytes",
    "ideal_time_total",
)


class EventList(list):
    """Events, or their sums by name."""

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """A sum for all events of a name (and of the same shapes, and innermost stack entries)."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            key = event.key, event.kind, shapes, tuple(event.stack[:group_by_stack_n])
            total = sums.setdefault(key, FunctionEventAvg())
            total.add(event)
            if not group_by_input_shapes:
                total.input_shapes = []
            total.stack = event.stack[:group_by_stack_n]
        return EventList(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """One sum of all events."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    @property
    def self_cpu_time_total(self) -> float:
        return float(sum([event.self_cpu_time_total for event in self]))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events in a table, the largest `sort_by` (an attribute of theirs) first.

        Columns that nothing was recorded for are left out. `time_unit` is "s", "ms" or "us"; by
        default each time has the unit that suits it.
        """
        widths = max_name_column_width, max_shapes_column_width, max_src_column_width
        options = widths, header, top_level_events_only, time_unit
        return Layout(self, sort_by, row_limit, *options).text()

    def print(self, sort_by: str | None = None, row_limit: int = 100) -> None:
        """Print the table: in colours on a terminal where `rich` is installed."""
        Layout(self, sort_by, row_limit).print()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as JSON that ``chrome://tracing`` and Perfetto show."""
        write_chrome_trace(self, path)

    supported_export_stacks_metrics = staticmethod(
        lambda: ["self_cpu_time_total", "self_cuda_time_total", "self_device_time_total"]
    )

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the lines of the program with their times, as flame-graph tools read them.

        ValueError for another `metric` than ``supported_export_stacks_metrics()`` names.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(
                "metric should be one of: " + str(self.supported_export_stacks_metrics())
            )
        write_stacks(self, path, metric)

    def __str__(self) -> str:
        return self.table()


class record_function:
    """Context in which what runs is one event `name` of a profile; also a decorator.

    `args` is shown with it in traces.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._spans: list[tuple[Any, list[Any]]] = []

    def __enter__(self) -> Self:
        events = recorder.current_events() if recorder.recorders else None
        self._spans = [(r, r.begin(self.name, "user", events)) for r in recorder.recorders]
        return self

    def __exit__(self, *error: object) -> None:
        for source, span in self._spans:
            source.end(span)
        self._spans = []

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return function(*args, **kwargs)

        return recorded
