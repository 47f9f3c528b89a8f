"""What a captured graph is made of, as files for a reader: sources, expressions, times."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import cupy

from tensorflow_lite_clone.backends.cupy import benchmark, device_facts
from tensorflow_lite_clone.backends.cupy.benchmark import ArrayLayout
from tensorflow_lite_clone.backends.cupy.fusion import deferred, drawing, launch
from tensorflow_lite_clone.backends.cupy.fusion.deferred import Step
from tensorflow_lite_clone.backends.cupy.fusion.source import Text
from tensorflow_lite_clone.dispatch import capture, hooks

_MAX_NAME = 40  # of a file's name
_ABOUT = """\
One line a launch, in the order in which it was captured; the files `graph_N.dot` have the graphs as
CUDA sees them, with copies and the kernels of other libraries. A generated kernel links to its
source, and the file of the same name that ends in `.dot` draws its expressions. Times are those of
one of {launches} launches in a row, over other memory of the same layout: what fits into the
device's cache may be read faster than a copy reads.
"""


class _Launch(NamedTuple):
    """A kernel that was launched."""

    name: str
    file: str
    grid: tuple
    block: tuple
    text: Text | None  # of a generated one
    formulas: tuple[str, ...]  # what it was joined from
    ready: Step | None  # what launches it, without memory


class CaptureLog:
    """Context manager: takes down what this thread launches while it captures graphs.

    Outside of it nothing is noted and nothing is slower.
    """

    def __init__(self, index: int) -> None:
        self._device = cupy.cuda.Device(index)
        self._thread = threading.get_ident()
        self._graphs: list[tuple[Any, list[_Launch]]] = []
        self._step: tuple[tuple[str, ...], Step] | None = None  # what is about to be launched
        self._text: Text | None = None

    def __enter__(self) -> CaptureLog:
        deferred.on_joined.append(self._joined)
        launch.on_generated_launch.append(self._written)
        hooks.on_launch.insert(0, self._launching)
        return self

    def __exit__(self, *exception: object) -> None:
        hooks.on_launch.remove(self._launching)
        launch.on_generated_launch.remove(self._written)
        deferred.on_joined.remove(self._joined)

    def _is_captured(self) -> bool:
        return threading.get_ident() == self._thread and capture.state.graph is not None

    def _joined(self, step: Step, group: list[Step]) -> None:
        if self._is_captured():
            names = tuple([member.name for member in group])
            self._step = names, benchmark.without_memory(step)

    def _written(self, text: Text) -> None:
        if self._is_captured():
            self._text = text

    def _launching(self, name: str, file: str, grid: tuple, block: tuple) -> Callable[[], None]:
        if not self._is_captured():
            return lambda: None
        (formulas, ready), self._step = self._step or ((), None), None
        text, self._text = self._text, None
        made = _Launch(name, file, grid, block, text, formulas, ready)
        graph = capture.state.graph

        def end() -> None:  # after the kernels that had to be launched before
            if not self._graphs or self._graphs[-1][0] is not graph:
                self._graphs.append((graph, []))
            self._graphs[-1][1].append(made)

        return end

    def write(self, folder: Path, title: str) -> None:
        """Write what was captured into a folder, and measure it; waits for the device."""
        folder.mkdir(parents=True, exist_ok=True)
        with self._device:
            _Pages(folder, title).write(self._graphs)


class _Pages:
    """The files of one record."""

    def __init__(self, folder: Path, title: str) -> None:
        self.folder, self.title = folder, title
        self.speed = benchmark.copy_speed()
        self._files: dict[str, str] = {}  # by source
        self._drawn: set[str] = set()
        self._times: dict[Any, float | None] = {}
        self._number = 0

    def write(self, graphs: list[tuple[Any, list[_Launch]]]) -> None:
        """Write all files."""
        copies = f", which copies {self.speed / 1e9:.0f} GB/s" if self.speed else ""
        lines = [f"# {self.title}", "", _ABOUT.format(launches=benchmark.LAUNCHES)]
        lines += [f"Device: {device_facts.here().name}{copies} (bytes read and bytes written).", ""]
        for place, (graph, launches) in enumerate(graphs, 1):
            (self.folder / f"graph_{place}.dot").write_text(graph.dot())
            lines += [
                f"## Graph {place}",
                "",
                "| # | kernel | formulas | reads | writes | MB | us | of copy speed |",
                "| --- | --- | --- | --- | --- | --- | --- | --- |",
                *[self._line(made) for made in launches],
                "",
                self._sum(launches),
                "",
                *self._by_kernel(launches),
                "",
            ]
        (self.folder / "kernels.md").write_text("\n".join(lines))

    def _sum(self, launches: list[_Launch]) -> str:
        formulas = [made for made in launches if made.ready is not None]
        moved = sum([benchmark.bytes_of(made.ready) for made in formulas if made.ready])
        time = sum([self._time(made) or 0.0 for made in formulas])
        return (
            f"{len(launches)} launches, {len(formulas)} of them of formulas, which move "
            f"{moved / 1e6:.1f} MB in {1e6 * time:.0f} us."
        )

    def _by_kernel(self, launches: list[_Launch]) -> list[str]:
        """How often each kernel is launched, those that take longest and are most first."""
        counts: Counter[str] = Counter()
        times: defaultdict[str, float] = defaultdict(float)
        for made in launches:
            name = made.name if made.text is None else self._files[made.text.code]
            counts[name] += 1
            times[name] += self._time(made) or 0.0
        return [
            "| kernel | launches | us |",
            "| --- | --- | --- |",
            *[
                f"| `{name}` | {counts[name]} | {_microseconds(times[name])} |"
                for name in sorted(counts, key=lambda name: (-times[name], -counts[name]))
            ],
        ]

    def _line(self, made: _Launch) -> str:
        """A line of the table, after its files are written."""
        self._number += 1
        if made.text is None:
            where = f" of {Path(made.file).name}" if made.file else ""
            size = f", {_times(made.grid)} blocks of {_times(made.block)}" if made.grid else ""
            return f"| {self._number} | `{made.name}`{where}{size} | | | | | | |"
        said = _listed(made.formulas)
        name = self._files.get(made.text.code)
        if name is None:
            name = "_".join(dict.fromkeys(made.formulas)) or made.name
            name = f"{self._number:03d}_{name[:_MAX_NAME]}"
            self._files[made.text.code] = name
            (self.folder / f"{name}.cu").write_text(made.text.code)
        kernel, ready = f"[{name}]({name}.cu)", made.ready
        if ready is None:  # within an op that is no formula
            return f"| {self._number} | {kernel} | | | | | | |"
        read, written = list(map(str, ready.operands)), list(map(str, ready.results))
        if name not in self._drawn:
            self._drawn.add(name)
            graph = drawing.dot(said, ready.trace, read, written)
            (self.folder / f"{name}.dot").write_text(graph)
        time, moved = self._time(made), benchmark.bytes_of(ready)
        entries = [
            str(self._number),
            kernel,
            said,
            ", ".join([read[symbol.value] for symbol in ready.trace.operands]),
            ", ".join(written),
            f"{moved / 1e6:.2f}",
            _microseconds(time),
            f"{moved / time / self.speed:.0%}" if time and self.speed else "",
        ]
        return f"| {' | '.join(entries)} |"

    def _time(self, made: _Launch) -> float | None:
        """Seconds of a formula's launch; the same for the same kernel over the same layouts."""
        ready, text = made.ready, made.text
        if ready is None or text is None:
            return None
        key = text.code, *[v.layout if isinstance(v, ArrayLayout) else v for v in ready.operands]
        if key not in self._times:
            self._times[key] = benchmark.seconds(ready)
        return self._times[key]


def _listed(names: tuple[str, ...]) -> str:
    """Names with commas between them, how often where one follows itself."""
    runs = [(name, len(list(run))) for name, run in groupby(names)]
    return ", ".join([name if count == 1 else f"{name} ({count} times)" for name, count in runs])


def _microseconds(seconds: float | None) -> str:
    return f"{1e6 * seconds:.1f}" if seconds else ""


def _times(sizes: tuple) -> str:
    return " x ".join(map(str, sizes))
