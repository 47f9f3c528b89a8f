"""What `layers` found: rows, their sums, and the forms in which they can be had."""

from __future__ import annotations

import csv
import json
import os
from dataclasses import asdict, dataclass
from math import fsum, sqrt
from typing import Any

from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.profiler import _charts
from tensorflow_lite_clone.profiler._text import amount, duration, print_with_rich, size, table


@dataclass(frozen=True)
class Timing:
    """Microseconds of one run: over all trials."""

    mean: float
    median: float
    min: float
    std: float

    @classmethod
    def of(cls, samples: list[float]) -> Timing:
        """The figures of the times of several runs."""
        count = len(samples)
        mean = fsum(samples) / count
        ordered = sorted(samples)
        median = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
        variance = fsum([(x - mean) ** 2 for x in samples]) / max(count - 1, 1)
        return cls(mean, median, ordered[0], sqrt(variance))


@dataclass
class LayerRow:
    """One line of a `LayerReport`; its fields are described there."""

    name: str
    type: str
    role: str
    depth: int
    calls: int
    forward: Timing
    backward: Timing | None
    forward_host: Timing
    backward_host: Timing | None
    forward_device: Timing | None
    backward_device: Timing | None
    parameters: int
    flops: int
    memory: int
    saved: int | None
    shape: list[tuple[int, ...]]
    device: str
    copies: int
    copied: int

    @property
    def time(self) -> float:
        """Microseconds of forward and backward together, by their medians."""
        return self.forward.median + (self.backward.median if self.backward else 0.0)


@dataclass(repr=False)
class LayerReport:
    """Where the time and the memory of a model go; made by `layers`.

    `rows` add up to the whole, `total` (means do, medians nearly); they are in the order of
    execution. A row is, by its `role`, a module without children (``"layer"``), what a module with
    children does between them, such as adding a residual (``"own"``, named ``"block (own)"``), or
    the ``"loss"``. `containers` are the modules with children: sums of the rows below them by name.
    A module that is called several times, or under several parents, has one row, and its `calls`
    are counted.

    Fields of a row:

    * `forward`, `backward`: a `Timing` of microseconds per run. They are those of the host,
      ``forward_host``, unless every module has to do with one and the same GPU (`clock` is then
      ``"device"``): then they are ``forward_device``, between marks in the GPU's current stream, in
      which gaps count to the layer that the GPU waits for. In a mixed model the host's time of a
      layer on a GPU is that of launching it; who waits for it, by copying a result back, has the
      wait. Rows that have to do with a GPU have both times.
      `backward` is that of the nodes that were recorded while the module ran, with summing up
      their gradients. It is None without a backward pass.
    * `parameters`: how many numbers the module itself has, those that are shared counted once.
    * `flops`: floating-point operations of its forward, counted as `utils.flop_counter` does: those
      of products of matrices, convolutions and attention.
    * `memory`: bytes of the tensors that it gives, but for memory that its inputs, its children's
      outputs or its parameters have already. So an in-place or view-making module has 0.
    * `saved`: bytes that the graph keeps for backward and that no earlier row keeps: inputs and
      results that nodes saved, without parameters, buffers and the model's inputs. None without a
      backward pass. What nodes note in other ways (a random mask, sizes) is not counted.
    * `shape`: of each tensor that its first call gave.
    * `device`: that of its outputs, ``"cpu -> cuda:0"`` if its inputs are elsewhere.
    * `copies`, `copied`: copies between devices while it ran (forward and backward), and bytes.

    Runs that nobody watches are timed as a whole before and after the others. What watching adds to
    them, `watching` microseconds a call, is taken off the times: so the rows add up to a run that
    is not watched.
    """

    model: str
    rows: list[LayerRow]
    containers: list[LayerRow]
    total: LayerRow
    trials: int
    clock: str
    watching: float
    lines: list[LayerRow]  # rows and containers as they are shown

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return f"<LayerReport of {self.model}: {len(self.rows)} rows, {duration(self.total.time)}>"

    def table(self) -> str:
        """The report as plain text: medians, containers above what is in them."""
        return table(*self._cells())

    def print(self) -> None:
        """Write the table to standard output: through `rich` if that is a terminal and has it."""
        titles, body, remarks = self._cells()
        looks = {"container": "bold", "own": "dim", "total": "bold"}
        styles = [looks.get(line.role) for line in [*self.lines, self.total]]
        if not print_with_rich(titles, body, remarks, words=2, styles=styles):
            print(self.table())

    def _cells(self) -> tuple[list[str], list[list[str]], list[str]]:
        """Titles, lines and remarks of the table."""
        lines = [*self.lines, self.total]
        column_kinds = {
            "Backward": self.total.backward is not None,
            "Host": any([line.forward_device for line in lines]),
            "Saved": self.total.saved is not None,
            "Copies": self.total.copies > 0,
        }
        column_kinds["GPU"] = column_kinds["Host"]
        whole = self.total.time or 1.0
        columns: dict[str, Any] = {
            "Layer": lambda line: "  " * line.depth + line.name.rpartition(".")[2],
            "Type": lambda line: line.type,
            "Calls": lambda line: str(line.calls),
            "Forward": lambda line: duration(line.forward.median),
            "Backward": lambda line: duration(line.backward.median),
            "%": lambda line: f"{100 * line.time / whole:.1f}",
            "Host": lambda line: duration(line.forward_host.median),
            "GPU": lambda line: duration(line.forward_device and line.forward_device.median),
            "Params": lambda line: amount(line.parameters),
            "FLOPs": lambda line: amount(line.flops),
            "Memory": lambda line: size(line.memory),
            "Saved": lambda line: size(line.saved),
            "Copies": lambda line: f"{line.copies}, {size(line.copied)}" if line.copies else "",
            "Output": lambda line: " ".join(["x".join(map(str, s)) or "1" for s in line.shape]),
            "Device": lambda line: line.device,
        }
        titles = [title for title in columns if column_kinds.get(title, True)]
        body = [[columns[title](line) for title in titles] for line in lines]
        return titles, body, self._remarks()

    def _remarks(self) -> list[str]:
        whose = "the GPU's" if self.clock == "device" else "the host's"
        return [
            f"{self.model}: medians of {self.trials} runs, {whose} time. "
            f"Watching added {duration(self.watching)} per call, which is subtracted."
        ]

    # -- files --------------------------------------------------------------------------------

    def as_dict(self) -> dict[str, Any]:
        """Everything, as `to_json` writes it."""
        return {
            "model": self.model,
            "trials": self.trials,
            "clock": self.clock,
            "watching": self.watching,
            "total": asdict(self.total),
            "rows": [asdict(line) for line in self.rows],
            "containers": [asdict(line) for line in self.containers],
        }

    def to_json(self, path: str | os.PathLike) -> None:
        """Write total, rows and containers as JSON; the file is whole or not there."""
        with whole_file(path) as file:
            json.dump(self.as_dict(), file, indent=1)
            file.write("\n")

    def to_csv(self, path: str | os.PathLike) -> None:
        """Write the lines of the table, with all their figures; the file is whole or not there.

        A timing has four columns, such as ``forward_median``; they are empty where there is none.
        Lines whose ``role`` is ``container`` or ``total`` are sums of others.
        """
        with whole_file(path) as file:
            writer = csv.writer(file)
            for number, line in enumerate([*self.lines, self.total]):
                flat = _flat(line)
                if not number:
                    writer.writerow(flat)
                writer.writerow(flat.values())

    def plot(self, path: str | os.PathLike, what: str = "time") -> None:
        """Draw the rows as bars, in the order of execution, coloured by the type of module.

        `what` is ``"time"`` (forward, and backward in a lighter tone) or ``"memory"`` (bytes given,
        and saved for backward in a lighter tone). The ending of `path` says how it is drawn (.png,
        .svg, .pdf). Of many rows the smallest are drawn as one. Needs matplotlib.
        """
        _charts.layer_bars(self, path, what)


_TIMINGS = [name for name, kind in LayerRow.__annotations__.items() if "Timing" in kind]


def _flat(line: LayerRow) -> dict[str, Any]:
    """A line's fields as words and numbers."""
    flat: dict[str, Any] = {}
    for name, value in asdict(line).items():
        if name in _TIMINGS:
            for figure in ("mean", "median", "min", "std"):
                flat[f"{name}_{figure}"] = None if value is None else value[figure]
        elif name == "shape":
            flat[name] = " ".join(["x".join(map(str, shape)) for shape in value])
        else:
            flat[name] = value
    return flat
