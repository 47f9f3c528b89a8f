"""``python -m tests.bench.resident LIBRARY ROW``: memory that a step takes on the CPU.

Prints two numbers of bytes. The first is the most memory that was resident during the first five
calls, less what was resident when the library was imported and the model and its batch made; what
is imported or planned at the first call counts. The second is that peak as a whole. Both are the
kernel's (``VmHWM`` and ``VmRSS`` of Linux; ``ru_maxrss`` of getrusage is the same high water, but a
new process begins it with its parent's). Run it in a process of its own for each row and library.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLS = 5


def status(name: str) -> int:
    """Bytes that Linux has under a name for this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/self/status says nothing of {name}")


def growth(call: Callable[[], Any]) -> tuple[int, int]:
    """How far above the present the high water is after some calls, and where that is."""
    Path("/proc/self/clear_refs").write_text("5")  # the high water becomes what is resident now
    before = status("VmRSS")
    for _ in range(CALLS):
        call()
    peak = status("VmHWM")
    return peak - before, peak


def main() -> None:
    """Measure a row."""
    from tests.bench.cpu_rows import ROWS

    library, key = sys.argv[1:]
    function, arguments = ROWS[key].work(importlib.import_module(library))
    print(*growth(lambda: function(*arguments)))


if __name__ == "__main__":
    main()
