"""``python -m tests.bench.breakdown ROW...``: the kernels of a training step, with their times.

Our step is one graph, torch's is eager or (``--graph``) a graph. Both are seen by torch's profiler,
which reads the driver's records of the whole process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.profiler

import tensorflow_lite_clone as tlc
from tests.bench.contenders import CONTENDERS
from tests.bench.rows import ROWS

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


class Line(NamedTuple):
    """One kernel's part of a step."""

    name: str
    shape: str
    launches: float
    microseconds: float


def records(call: Callable[[], Any], steps: int) -> list[dict[str, Any]]:
    """What ran on the device in so many calls, in order."""
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(steps):
            call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    found = [event for event in events if event.get("cat") in DEVICE_WORK]
    return sorted(found, key=lambda event: event["ts"])


def shape_of(event: dict[str, Any]) -> str:
    """Grid and block of a launch."""
    given = event.get("args", {})
    grid, block = given.get("grid"), given.get("block")
    if not grid:
        return f"{given.get('bytes', '')} bytes"
    return f"{'x'.join(map(str, grid))} of {'x'.join(map(str, block))}"


def lines(events: Iterable[dict[str, Any]], steps: int, *, by_shape: bool) -> list[Line]:
    """The kernels, those that take the most time first."""
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        sums[event["name"], shape_of(event) if by_shape else ""].append(event["dur"])
    found = [
        Line(name, shape, len(times) / steps, sum(times) / steps)
        for (name, shape), times in sums.items()
    ]
    return sorted(found, key=lambda line: -line.microseconds)


def table(title: str, events: list[dict[str, Any]], steps: int, *, by_shape: bool) -> str:
    """The lines as Markdown under a sentence on the whole."""
    total = sum(event["dur"] for event in events) / steps
    end = max(event["ts"] + event["dur"] for event in events)
    span = (end - events[0]["ts"]) / steps
    text = [
        f"## {title}\n",
        f"{len(events) / steps:.0f} launches, {total:.1f} us in kernels of a step of {span:.1f} us "
        "(under the profiler).\n",
        "| us | launches | us each | kernel | grid of block |",
        "| --- | --- | --- | --- | --- |",
    ]
    for line in lines(events, steps, by_shape=by_shape):
        name = line.name.replace("|", " ")[:110]
        each = line.microseconds / line.launches
        text.append(
            f"| {line.microseconds:.1f} | {line.launches:.0f} | {each:.1f} | `{name}` "
            f"| {line.shape} |"
        )
    return "\n".join(text) + "\n"


def main() -> None:
    """Print a table for each row and contender."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.breakdown", description=__doc__)
    parser.add_argument("rows", nargs="+", choices=sorted(ROWS), metavar="ROW")
    parser.add_argument("--contenders", nargs="+", choices=sorted(CONTENDERS))
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--by_shape", action="store_true", help="a line for each size of launch")
    options = parser.parse_args()
    for name in options.rows:
        for contender in options.contenders or ["ours captured"]:
            call = CONTENDERS[contender].make(ROWS[name])
            for _ in range(5):
                call()
            tlc.cuda.synchronize()
            events = records(call, options.steps)
            title = f"{ROWS[name].title}: {contender}"
            print(table(title, events, options.steps, by_shape=options.by_shape), flush=True)


if __name__ == "__main__":
    main()
