"""Tables of events as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorflow_lite_clone.profiler._text import print_with_rich, size

_TIMES = {"s": 1e6, "ms": 1e3, "us": 1.0}


def duration(microseconds: float, unit: str | None = None) -> str:
    """A time as PyTorch's tables have it: in the unit that suits it, or in "s", "ms" or "us"."""
    if unit is None:
        size = abs(microseconds)
        unit = "s" if size >= 1e6 else "ms" if size >= 1e3 else "us"
    return f"{microseconds / _TIMES[unit]:.3f}{unit}"


def operations(count: float) -> str:
    """Floating-point operations in the unit that suits them, as ``1.234 GFLOPs``."""
    for unit, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if abs(count) >= factor:
            return f"{count / factor:.3f} {unit}FLOPs"
    return f"{count:.0f} FLOPs" if count else "--"


def layout(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 0) -> str:
    """Rows under their headings and between rules; the column `left` is not flushed right."""
    lines = [list(head), *[list(row) for row in rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "  ".join(["-" * width for width in widths])
    text = [
        "  ".join(
            [f"{c:<{w}}" if i == left else f"{c:>{w}}" for i, (c, w) in enumerate(zip(row, widths))]
        ).rstrip()
        for row in lines
    ]
    return "\n".join([rule, text[0], rule, *text[1:], rule])


def shortened(text: str, width: int | None) -> str:
    """A text of at most so many characters."""
    return text if width is None or len(text) <= width else f"{text[: max(width - 3, 1)]}..."


def columns(
    events: Any, widths: tuple[int, int, int], unit: str | None
) -> list[tuple[str, Callable[[Any], str]]]:
    """The headings of what was recorded, each with the function that gives an event's entry."""
    name_width, shapes_width, source_width = widths
    timed = [event for event in events if event.kind != "kernel"]
    host = sum([event.self_cpu_time_total for event in timed]) or 1.0
    device = sum([event.self_device_time_total for event in timed])
    time = lambda name: lambda event: duration(getattr(event, name), unit)
    part = lambda name, whole: lambda event: f"{100 * getattr(event, name) / whole:.2f}%"
    has = lambda name: any([getattr(event, name) for event in events])
    found: list[tuple[str, Callable[[Any], str]]] = [
        ("Name", lambda event: shortened(event.key, name_width)),
        ("Self CPU %", part("self_cpu_time_total", host)),
        ("Self CPU", time("self_cpu_time_total")),
        ("CPU total %", part("cpu_time_total", host)),
        ("CPU total", time("cpu_time_total")),
        ("CPU time avg", time("cpu_time")),
    ]
    if device:
        found += [
            ("Self CUDA", time("self_device_time_total")),
            ("Self CUDA %", part("self_device_time_total", device)),
            ("CUDA total", time("device_time_total")),
            ("CUDA time avg", time("device_time")),
        ]
    for title, name in (("CPU Mem", "cpu_memory_usage"), ("CUDA Mem", "device_memory_usage")):
        for heading, attribute in ((title, name), (f"Self {title}", f"self_{name}")):
            if has(name):
                found.append((heading, lambda event, a=attribute: size(getattr(event, a))))  # type: ignore[misc]
    found.append(("# of Calls", lambda event: str(event.count)))
    if has("input_shapes"):
        shapes = lambda event: shortened(str(event.input_shapes), shapes_width)
        found.append(("Input Shapes", shapes))
    if has("stack"):
        last = lambda event: event.stack[0] if event.stack else ""
        found.append(("Source Location", lambda event: last(event)[-source_width:]))
    if has("flops"):
        found.append(("Total FLOPs", lambda event: operations(event.flops)))
    if has("bytes"):
        found.append(("Total Bytes", lambda event: size(event.bytes) if event.bytes else "--"))
    if has("roof"):
        found.append(("Roof", lambda event: f"{100 * event.roof:.1f}%" if event.roof else "--"))
    if has("kernels"):
        found.append(("Kernels", lambda event: shortened(_kernels(event), name_width)))
    return found


def _kernels(event: Any) -> str:
    return ", ".join(dict.fromkeys([launch.file or launch.name for launch in event.kernels]))


class Layout:
    """Which events a table shows, in which order and with which columns; see `EventList.table`."""

    def __init__(
        self,
        events: Any,
        sort_by: str | None,
        row_limit: int,
        widths: tuple[int, int, int] = (55, 80, 75),  # of names, shapes and lines
        header: str | None = None,
        top_level: bool = False,
        unit: str | None = None,
    ) -> None:
        if sort_by is not None:
            name = sort_by.replace("cuda_", "device_")
            events = sorted(events, key=lambda event: getattr(event, name), reverse=True)
        shown = [e for e in events if not (top_level and e.cpu_parent is not None)]
        shown = shown[:row_limit] if row_limit >= 0 else shown
        chosen = columns(events, widths, unit)
        self.header = header
        self.titles = [title for title, _ in chosen]
        self.rows = [[entry(event) for _, entry in chosen] for event in shown]
        timed = [event for event in events if event.kind != "kernel"]
        host = sum([event.self_cpu_time_total for event in timed])
        device = sum([event.self_device_time_total for event in timed])
        self.sums = [f"Self CPU time total: {duration(host, unit)}"]
        if device:
            self.sums.append(f"Self CUDA time total: {duration(device, unit)}")

    def text(self) -> str:
        """Plain text."""
        above = [self.header] if self.header else []
        return "\n".join([*above, layout(self.titles, self.rows), *self.sums, ""])

    def print(self) -> None:
        """On standard output: by `rich` if that is a terminal and has it."""
        if not print_with_rich(self.titles, self.rows, self.sums, words=1, title=self.header):
            print(self.text())
