"""The study's table, of what its programs wrote with ``--log``.

    python -m examples.cifar.table baseline.json ddp.json

It is in Markdown, a line for each file.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLUMNS = (
    "program",
    "processes",
    "test accuracy",
    "seconds of an epoch",
    "seconds in all",
    "peak memory of each GPU",
    "machine",
    "library",
)


def row(found: dict[str, Any]) -> tuple[str, ...]:
    """The cells of one program's result."""
    memory = ", ".join(f"{size / 2**20:.0f} MiB" for size in found["peak_memory"])
    return (
        found["program"],
        str(found["processes"]),
        f"{found['accuracies'][-1]:.2%}",
        f"{statistics.median(found['seconds']):.2f}",
        f"{found['seconds_in_all']:.1f}",
        memory or "no GPU",
        found["machine"],
        found["library"],
    )


def table(results: Sequence[dict[str, Any]]) -> str:
    """A table in Markdown with a line for each result."""
    rows = [COLUMNS, *map(row, results)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = ["| " + " | ".join(map(str.ljust, cells, widths)) + " |" for cells in rows]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG")
    logs = parser.parse_args().logs
    print(table([json.loads(path.read_text()) for path in logs]))


if __name__ == "__main__":
    main()
