"""``python -m tests.bench.report FILE``: a page with a table and two pictures of what was measured.

FILE is what ``python -m tests.bench --device cuda --out FILE`` wrote. The same file gives the same
page and pictures, byte for byte.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench import pictures

Row = dict[str, Any]
HEADS = (
    "ours eager", "ours captured", "ours NHWC captured", "torch eager", "torch NHWC eager",
    "torch graph", "torch NHWC graph", "torch.compile", "torch.compile NHWC", "JAX",
)  # fmt: skip
METHOD = """\
Each row's contenders ran in one process and in turns; medians of {rounds} rounds, microseconds,
random data. A step is forward, cross-entropy, backward and the optimizer (AdamW for MNIST, SGD with
momentum for the residual networks; in PyTorch `fused=True`) on a fixed batch. "Captured" and
"graph" are replays of one CUDA graph; "NHWC" has model and pictures in `channels_last`.
Convolutions may use TF32 and float32 matrix products may not, as is the default of both libraries.
"bf16" steps are within `autocast(bfloat16)`. "Best" is our fastest time over the fastest of all
others; memory is the most that a contender's allocator held for the row beyond what was there
before, the smallest of each side's.
"""
IN_JAX = """\
JAX ran in a process of its own right after, with XLA's default precision for convolutions and its
highest for products; its "bf16" steps cast pictures and weights.
"""


def fastest(row: Row, wanted: Callable[[str], bool]) -> float | None:
    """The best time of some contenders."""
    times = [time for name, time in row["times"].items() if wanted(name)]
    return min(times, default=None)


def of_ours(name: str) -> bool:
    return name.startswith("ours")


def of_others(name: str) -> bool:
    return not of_ours(name)


def us(value: float | None) -> str:
    """Microseconds: with a digit after the point below a hundred."""
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(row: Row) -> float | None:
    """Our best time over the best of the others."""
    ours, theirs = fastest(row, of_ours), fastest(row, of_others)
    return ours / theirs if ours and theirs else None


def memory(row: Row) -> str:
    """MiB at the peak, ours / torch's, as of the contender with the smallest on each side."""
    sides = [
        [peak for name, peak in row["peaks"].items() if name.startswith(side)]
        for side in ("ours", "torch")
    ]
    return " / ".join(f"{min(peaks) / 2**20:.1f}" for peaks in sides if peaks)


def table(rows: list[Row]) -> str:
    """Every row with its goal; the best time of all is bold."""
    heads = [head for head in HEADS if any(head in row["times"] for row in rows)]
    cells = [["work", "goal", *heads, "best", "MiB, ours / torch"]]
    cells.append(["---"] + ["---:"] * (len(cells[0]) - 1))
    for row in rows:
        best = min(row["times"].values(), default=None)
        times = [row["times"].get(head) for head in heads]
        marked = [f"**{us(t)}**" if t is not None and t == best else us(t) for t in times]
        share = ratio(row)
        goal = f"{row['goal']:g}" if row["goal"] else ""
        cells.append([row["title"], goal, *marked, f"{share:.2f}" if share else "", memory(row)])
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


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
    parser.add_argument("file", type=Path)
    parser.add_argument("--page", type=Path, help="Markdown file; without it, it is printed")
    parser.add_argument("--pictures", type=Path, default=Path("docs/benchmarks/pictures"))
    options = parser.parse_args()
    found = json.loads(options.file.read_text())
    pictures.draw(found, options.pictures)
    text = page(found, options.pictures.name)
    if options.page:
        options.page.write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
