"""Pictures of what `tests.bench` measured, as SVG files that depend on nothing but the figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

Row = dict[str, Any]
BARS, ROOFLINE = "times.svg", "roofline.svg"
FUNCTIONS, STEPS = "functions.svg", "steps.svg"
GROUPS = {
    "ours": ("ours captured", "ours NHWC captured"),
    "torch eager": ("torch eager", "torch NHWC eager"),
    "torch graph": ("torch graph", "torch NHWC graph"),
    "torch.compile": (
        "torch.compile", "torch.compile NHWC", "torch.compile graph", "torch.compile NHWC graph",
    ),
    "JAX": ("JAX",),
}  # fmt: skip
SHADES = ("#1b6ca8", "#7fb2d9", "#d98a29", "#f0c48a", "#9a9a9a", "#6f6f6f", "#c9c9c9", "#444444")
COLOURS = ("#1b6ca8", "#c9c9c9", "#9a9a9a", "#6f6f6f", "#d98a29")
ROOFS = {"bfloat16": "bf16", "tf32": "TF32", "float32": "float32"}
LONGEST = 4  # bars end there, with their number
MARKS = {"bfloat16": "s", "tf32": "o", "float32": "^"}


def draw(found: dict[str, Any], folder: Path) -> None:
    """Write both pictures of a device."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"svg.hashsalt": "tests.bench", "svg.fonttype": "none", "font.size": 9}
    with matplotlib.rc_context(settings):
        for name, make in (ON_CPU if "cpu" in found else ON_GPU).items():
            make(found).savefig(folder / name, metadata={"Date": None}, bbox_inches="tight")


def best(row: Row, names: tuple[str, ...]) -> float | None:
    return min((row["times"][name] for name in names if name in row["times"]), default=None)


def bars(found: dict[str, Any]) -> Figure:
    """For each row how long the others take, in units of our captured time."""
    rows = [row for row in found["rows"] if best(row, GROUPS["ours"])]
    shown = [name for name, of in GROUPS.items() if any(best(row, of) for row in rows)][1:]
    figure = Figure(figsize=(8, 1 + 0.4 * len(rows)))
    axes = figure.subplots()
    height = 0.8 / max(1, len(shown))
    for number, name in enumerate(shown):
        colour = COLOURS[list(GROUPS).index(name)]
        for place, row in enumerate(rows):
            time, ours = best(row, GROUPS[name]), best(row, GROUPS["ours"])
            if time is None or ours is None:
                continue
            where, ratio = place + (number + 0.5) * height - 0.4, time / ours
            axes.barh(where, min(ratio, LONGEST), height, color=colour)
            if ratio > LONGEST:
                axes.text(LONGEST, where, f" {ratio:.1f}", va="center", fontsize=6)
        axes.barh(0, 0, color=colour, label=name)
    axes.axvline(1, color=COLOURS[0], linewidth=1.5, label="ours")
    axes.set_yticks(range(len(rows)), [row["title"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0, LONGEST * 1.08)
    axes.set_xlabel("time over ours, ours as a graph; longer is slower")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
    axes.set_title(f"{found['gpu']}, {found['date']}", loc="left")
    return figure


def roofline(found: dict[str, Any]) -> Figure:
    """Rates reached, ours and the best other's, under the peaks of memory and arithmetic."""
    roof = found["roof"]
    figure = Figure(figsize=(8, 5.5))
    axes = figure.subplots()
    rows = [row for row in found["rows"] if row["flops"] and row["bytes"]]
    rows = [row for row in rows if best(row, GROUPS["ours"])]
    spread = [row["flops"] / row["bytes"] for row in rows] + [1.0, 1000.0]
    ends = min(spread) / 2, max(spread) * 2
    for unit, label in ROOFS.items():
        if not roof.get(unit):
            continue
        knee = roof[unit] / roof["bytes"]
        places = [ends[0], min(max(knee, ends[0]), ends[1]), ends[1]]
        heights = [min(roof["bytes"] * x, roof[unit]) / 1e12 for x in places]
        axes.plot(places, heights, color="black", linewidth=0.8)
        axes.annotate(label, (ends[1], heights[-1]), textcoords="offset points", xytext=(4, -3))
    for number, row in enumerate(rows, 1):
        place, mark = row["flops"] / row["bytes"], MARKS[row["unit"]]
        ours = best(row, GROUPS["ours"])
        others = tuple(name for name in row["times"] if not name.startswith("ours"))
        for time, colour in ((best(row, others), "none"), (ours, COLOURS[0])):
            if time is not None:
                axes.scatter(
                    place, row["flops"] / time / 1e6, marker=mark, s=28, facecolors=colour,
                    edgecolors=COLOURS[0] if colour != "none" else "#6f6f6f", linewidths=0.9,
                )  # fmt: skip
        assert ours is not None
        axes.annotate(
            str(number), (place, row["flops"] / ours / 1e6), textcoords="offset points",
            xytext=(4, 3), fontsize=7,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations a byte")
    axes.set_ylabel("TFLOP/s (filled: ours, hollow: the best other)")
    axes.set_title(f"{found['gpu']}, lines: measured peaks of copies and products", loc="left")
    legend = "\n".join(f"{number}  {row['title']}" for number, row in enumerate(rows, 1))
    axes.text(1.1, 1, legend, transform=axes.transAxes, va="top", fontsize=7)
    return figure


def functions(found: dict[str, Any]) -> Figure:
    """Ratios of single functions, forward and with gradients."""
    return ratios(found, lambda group: "-" in group or group == "overhead")


def steps(found: dict[str, Any]) -> Figure:
    """Ratios of optimizers, steps, inference and memory."""
    return ratios(found, lambda group: "-" not in group and group != "overhead")


def ratios(found: dict[str, Any], shown: Callable[[str], bool]) -> Figure:
    """A bar for each ratio of the rows of some groups, away from the line where both are equal."""
    lines: dict[str, dict[str, float]] = {}
    for row in found["rows"]:
        if shown(row["group"]):
            _, _, part = row["group"].partition("-")
            label = row["title"].removesuffix(f" {part}")
            if row["group"] == "memory":
                label += ", memory"
            bars = lines.setdefault(label, {})
            for name, ratio in row["ratios"].items():
                bars[f"{name} {part}".strip()] = ratio
    series = list(dict.fromkeys(name for line in lines.values() for name in line))
    figure = Figure(figsize=(8, 1 + 0.3 * len(lines)))
    axes = figure.subplots()
    height = 0.8 / max(1, len(series))
    for number, name in enumerate(series):
        colour = SHADES[number % len(SHADES)]
        for place, line in enumerate(lines.values()):
            if name in line:
                where = place + (number + 0.5) * height - 0.4
                axes.barh(where, line[name] - 1, height, left=1, color=colour)
        axes.barh(0, 0, left=1, color=colour, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.set_yticks(range(len(lines)), list(lines))
    axes.set_ylim(max(1, len(lines)) - 0.5, -0.5)
    axes.set_xlabel("ours / torch eager; to the left ours takes less")
    if lines:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1))
    axes.set_title(f"{found['cpu']}, {found['date']}", loc="left")
    return figure


ON_GPU = {BARS: bars, ROOFLINE: roofline}
ON_CPU = {FUNCTIONS: functions, STEPS: steps}
