"""The page of measurements on a CPU: means, a table for each group, and pictures of the ratios."""

from __future__ import annotations

from typing import Any

from tests.bench import pictures
from tests.bench.markdown import grid, us
from tests.bench.ratios import BASE, means, ours

Row = dict[str, Any]
ORDER = (
    "ours eager", "ours compiled", "ours numba eager", "ours numba compiled", BASE, "torch.compile",
)  # fmt: skip
METHOD = """\
{threads} threads for each library, in one process and in turns, {rounds} rounds or more; a turn
begins when the threads of the other one rest. Times are medians in microseconds, float32, random
data. A ratio is ours over PyTorch's eager time: the median of the ratios of the rounds; below 1
ours is faster. A mean is geometric, over the rows of a group.

"Forward" is without a graph, "forward+backward" a call with its graph and all gradients. A step is
forward, cross-entropy, backward and the optimizer by its defaults (SGD with momentum for residual
networks, else AdamW) on a fixed batch; "compiled" is `torch.compile` of the whole step, in PyTorch
of its loss.{numba}
"""
NUMBA = ' "Numba" is ours with that package installed, the other columns of ours are without it.'
COMPILED = "`torch.compile` in its mode `{mode}`.\n"
MEMORY = """\
The most memory that was resident during the first five steps, beyond what was when the library was
imported and the model and its batch made, in MiB; behind it that peak as a whole. Each row and
library had a process of its own.
"""
TENSORGRAD = """\
The last column has what [tensorgrad](https://github.com/akv17/tensorgrad) (`BENCHMARK.md` of
3764e8d) says of itself: its time over that of PyTorch then and there; forward+backward are sums.
"""
NOTES = {"memory": MEMORY, "tensorgrad-forward": TENSORGRAD}


def page(found: dict[str, Any], folder: str) -> str:
    """The Markdown; pictures are in `folder`, relative to it."""
    versions = ", ".join(f"{name} {value}" for name, value in found["versions"].items())
    rows = found["rows"]
    numba = NUMBA if "numba" in found["versions"] else ""
    parts = [
        f"# Functions, training steps and memory on a CPU beside PyTorch: {found['cpu']}\n",
        f"Measured on {found['date']}: {versions}.\n",
        METHOD.format(threads=found["threads"], rounds=found["rounds"], numba=numba),
        *([COMPILED.format(mode=found["compile"])] if found.get("compile") else []),
        "## Means of the ratios\n",
        mean_table(rows),
        f"![Ratios of functions]({folder}/{pictures.FUNCTIONS})\n",
        f"![Ratios of steps, inference and memory]({folder}/{pictures.STEPS})\n",
    ]
    for group in dict.fromkeys(row["group"] for row in rows):
        members = [row for row in rows if row["group"] == group]
        parts += [f"## {group}\n", *([NOTES[group]] if group in NOTES else []), table(members)]
    failures = [
        f"* {row['title']}, {name}: {why.splitlines()[0]}"
        for row in rows
        for name, why in row["failures"].items()
    ]
    if failures:
        parts += ["## Not measured\n", "\n".join(failures) + "\n"]
    return "\n".join(parts)


def mean_table(rows: list[Row]) -> str:
    """A line for each group, with the rows that have more than PyTorch's time, and the worst."""
    cells = []
    for (group, name), mean in means(rows).items():
        members = [row for row in rows if row["group"] == group and name in row["ratios"]]
        above = sum(row["ratios"][name] > 1 for row in members)
        worst = max(members, key=lambda row: row["ratios"][name])
        largest = f"{worst['ratios'][name]:.2f} {worst['title']}"
        cells.append([group, name, f"{mean:.2f}", f"{above} of {len(members)}", largest])
    return grid(["group", "ours", "mean", "above 1", "largest"], cells)


def table(rows: list[Row]) -> str:
    """Times, or memory, and ratios of a group."""
    measured = {name for row in rows for name in (*row["times"], *row["peaks"])}
    names = [name for name in ORDER if name in measured]
    mine = [name for name in names if ours(name)]
    published = any(row.get("published") for row in rows)
    heads = ["work", *names, *[f"{name} / torch" for name in mine]]
    cells = []
    for row in rows:
        ratios = [f"{row['ratios'][n]:.2f}" if n in row["ratios"] else "" for n in mine]
        line = [row["title"].replace("|", " "), *[value(row, name) for name in names], *ratios]
        cells.append([*line, f"{row['published']:.1f}"] if published else line)
    return grid([*heads, "tensorgrad / torch"] if published else heads, cells)


def value(row: Row, name: str) -> str:
    """What a contender took: microseconds, or MiB."""
    if name in row["peaks"]:
        return f"{row['peaks'][name] / 2**20:.1f} ({row['wholes'][name] / 2**20:.0f})"
    time = row["times"].get(name)
    return f"{time:.2f}" if time is not None and time < 10 else us(time)
