"""Profiles as files: traces for ``chrome://tracing`` and Perfetto, stacks for flame graphs."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from tensorflow_lite_clone.core.files import whole_file

_HOST, _DEVICE = 0, 1


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, compressed if it ends with ``.gz``, whole or not at all."""
    data = text.encode()
    with whole_file(path, "wb") as file:
        file.write(gzip.compress(data) if os.fspath(path).endswith(".gz") else data)


def write_chrome_trace(
    events: Iterable[Any], path: str, memory: Iterable[Any] = (), metadata: Any = None
) -> None:
    """Write events, and memory in use, in the Trace Event Format (Google, 2016)."""
    content = {
        "schemaVersion": 1,
        "displayTimeUnit": "ms",
        "traceEvents": [*_spans(events), *_counters(memory), *_names()],
        **(metadata or {}),
    }
    write_text(path, json.dumps(content))


def _names() -> Iterator[dict[str, Any]]:
    for process, name in ((_HOST, "host"), (_DEVICE, "GPU")):
        yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}


def _spans(events: Iterable[Any]) -> Iterator[dict[str, Any]]:
    kinds = {"op": "cpu_op", "backward": "cpu_op", "user": "user_annotation"}
    for event in events:
        entry = {
            "ph": "X",
            "cat": kinds.get(event.kind, event.kind),
            "name": event.trace_name,
            "args": _arguments(event),
        }
        if event.kind != "kernel":
            start, length = event.time_range.start, event.cpu_time_total
            yield {**entry, "pid": _HOST, "tid": event.thread, "ts": start, "dur": length}
        if event.device_range is not None and event.kind in ("op", "backward", "kernel", "region"):
            start, length = event.device_range.start, event.device_time_total
            place = {"pid": _DEVICE, "tid": event.device_index}
            yield {**entry, "cat": "kernel", **place, "ts": start, "dur": length}


def _arguments(event: Any) -> dict[str, Any]:
    found = {
        "Input Dims": event.input_shapes,
        "Input type": event.input_dtypes,
        "Call stack": ";".join(event.stack),
        "FLOPs": event.flops,
        "Bytes": event.bytes,
        "File": event.file,
        "grid": event.grid,
        "block": event.block,
        "Sequence number": event.sequence_nr if event.sequence_nr >= 0 else None,
    }
    return {name: value for name, value in found.items() if value}


def _counters(memory: Iterable[Any]) -> Iterator[dict[str, Any]]:
    for change in memory:
        yield {
            "ph": "C",
            "name": f"memory of {change.device}",
            "pid": _HOST,
            "ts": change.time_us,
            "args": {"bytes": change.total_bytes},
        }


def write_stacks(events: Iterable[Any], path: str, metric: str) -> None:
    """Write a line for each stack: its entries, outermost first, and its time in microseconds."""
    lines = []
    for event in events:
        value = int(getattr(event, metric))
        if event.stack and value > 0:
            entries = [entry.replace(";", ",").replace(" ", "_") for entry in event.stack]
            lines.append(f"{';'.join(reversed(entries))} {value}\n")
    write_text(path, "".join(lines))
