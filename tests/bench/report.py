"""``python -m tests.bench.report FILE...``: a page with tables and two pictures of measurements.

FILE is what ``python -m tests.bench --out FILE`` or ``tests.bench.in_jax`` wrote, on one device;
several are joined, the one with our times first, and ``--out`` keeps the whole. The same files give
the same page and pictures, byte for byte.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import cpu_page, pictures
from tests.bench.markdown import grid, us
from tests.bench.ratios import complete
from tests.bench.ratios import ours as of_ours
from tests.bench.stored import joined, keep

Row = dict[str, Any]
HEADS = (
    "ours eager", "ours captured", "ours NHWC captured", "torch eager", "torch NHWC eager",
    "torch graph", "torch NHWC graph", "torch.compile", "torch.compile NHWC", "torch.compile graph",
    "torch.compile NHWC graph", "JAX",
)  # fmt: skip
METHOD = """\
Contenders of a row that were measured by one process took turns; medians of {rounds} rounds or
more, microseconds, random data. A step is forward, cross-entropy, backward and the optimizer (AdamW
for MNIST, SGD with momentum for the residual networks; in PyTorch `fused=True`) on a fixed batch.
"Captured" and "graph" are replays of one CUDA graph; "NHWC" has model and pictures in
`channels_last`. Convolutions may use TF32 and float32 matrix products may not, as is the default of
both libraries; PyTorch's `cudnn.benchmark` is off, its default. "bf16" steps are within
`autocast(bfloat16)`. "Best" is our fastest time over the fastest of all others; memory is the most
that the allocator held for the row beyond what was there before, for the fastest contender of each
side.
"""
COMPILED = """\
`torch.compile` in its mode `{mode}` had the function, or of a step the loss, with its gradients.
"""
IN_JAX = """\
JAX ran in a process of its own, with XLA's default precision for convolutions and its highest for
products; its "bf16" steps cast pictures and weights. Its backward is the faster of the pull-back
from what its forward keeps and of all gradients anew from the inputs.
"""


def fastest(row: Row, wanted: Callable[[str], bool]) -> float | None:
    """The best time of some contenders."""
    times = [time for name, time in row["times"].items() if wanted(name)]
    return min(times, default=None)


def of_others(name: str) -> bool:
    return not of_ours(name)


def ratio(row: Row) -> float | None:
    """Our best time over the best of the others."""
    ours, theirs = fastest(row, of_ours), fastest(row, of_others)
    return ours / theirs if ours and theirs else None


def memory(row: Row) -> str:
    """MiB at the peak of the fastest contender of each side, ours / torch's."""
    found = []
    for side in ("ours", "torch"):
        names = [name for name in row["peaks"] if name.startswith(side) and name in row["times"]]
        if names:
            peak = row["peaks"][min(names, key=lambda name: row["times"][name])]
            found.append(f"{peak / 2**20:.1f}")
    return " / ".join(found)


def table(rows: list[Row]) -> str:
    """Every row with its goal; the best time of all is bold."""
    heads = [head for head in HEADS if any(head in row["times"] for row in rows)]
    cells = []
    for row in rows:
        best = min(row["times"].values(), default=None)
        times = [row["times"].get(head) for head in heads]
        marked = [f"**{us(t)}**" if t is not None and t == best else us(t) for t in times]
        share = ratio(row)
        goal = f"{row['goal']:g}" if row["goal"] else ""
        cells.append([row["title"], goal, *marked, f"{share:.2f}" if share else "", memory(row)])
    return grid(["work", "goal", *heads, "best", "MiB, ours / torch"], cells)


def missed(rows: list[Row]) -> list[str]:
    """Sentences on goals that were missed, and on contenders that failed."""
    found = []
    for row in rows:
        ours = fastest(row, of_ours)
        if row["goal"] and ours is not None and ours > row["goal"]:
            found.append(f"* {row['title']}: {us(ours)} us, the goal is {row['goal']:g}.")
        for name, why in row["failures"].items():
            found.append(f"* {row['title']}, {name}: not measured ({why.splitlines()[0]}).")
    return found


def page(found: dict[str, Any], folder: str) -> str:
    """The Markdown; pictures are in `folder`, relative to it."""
    versions = ", ".join(f"{name} {value}" for name, value in found["versions"].items())
    rows = found["rows"]
    parts = [
        f"# Training steps and kernels on one {found['gpu']}\n",
        f"Measured on {found['date']}: {versions}.\n",
        METHOD.format(rounds=found["rounds"]),
        *([COMPILED.format(mode=found["compile"])] if found.get("compile") else []),
        *([IN_JAX] if "JAX" in found["versions"] else []),
        table(rows),
        f"![Times of other libraries over ours]({folder}/{pictures.BARS})\n",
        f"![Operations a second by operations a byte]({folder}/{pictures.ROOFLINE})\n",
    ]
    shortcomings = missed(rows)
    if shortcomings:
        parts.append("Missed goals and failures:\n\n" + "\n".join(shortcomings) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Write the page and the pictures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.report", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--out", type=Path, help="JSON file for all of them together")
    parser.add_argument("--page", type=Path, help="Markdown file; without it, it is printed")
    parser.add_argument("--pictures", type=Path, default=Path("docs/benchmarks/pictures"))
    options = parser.parse_args()
    found = joined([json.loads(file.read_text()) for file in options.files])
    if "cpu" in found:
        for row in found["rows"]:
            complete(row)
    keep(found, options.out)
    pictures.draw(found, options.pictures)
    made = cpu_page.page if "cpu" in found else page
    text = made(found, options.pictures.name)
    if options.page:
        options.page.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
