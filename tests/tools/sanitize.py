"""Runs the kernel tests under compute-sanitizer: python -m tests.tools.sanitize [TOOL...].

A process a test file, several at a time, because everything is ten times as slow there. Each tool
(memcheck, racecheck, initcheck, synccheck) must find nothing.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.tools.markdown import ROOT

TOOLS = ("memcheck", "racecheck", "initcheck")
_SUMMARY = re.compile(r"SUMMARY: (\d+)")


class Outcome(NamedTuple):
    """What one file's run under one tool said."""

    file: str
    found: int | None  # None: it did not come to an end
    tests: str
    seconds: float
    output: str


def run(tool: str, path: Path, limit: float) -> Outcome:
    """Run one test file under one tool."""
    environment = {"KERNEL_DTYPES": "float32,bfloat16", "OMP_NUM_THREADS": "1", **os.environ}
    environment["DEVICE"] = "cuda"
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "3", sys.executable, "-m",
               "pytest", "-q", "-p", "no:cacheprovider", "--timeout=0", str(path)]  # fmt: skip
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit
        )
        output = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    summary = _SUMMARY.findall(output)
    lines = [line for line in output.splitlines() if " passed" in line or " failed" in line]
    seconds = time.monotonic() - start
    found = int(summary[-1]) if summary else None
    return Outcome(path.stem, found, lines[-1] if lines else "", seconds, output)


def main(arguments: list[str]) -> int:
    """Print a line a file and tool; 1 when something was found or did not end."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.sanitize", description=__doc__)
    parser.add_argument("tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=600, help="seconds for one file")
    parser.add_argument("--files", nargs="*", help="names of test files, without test_ and .py")
    options = parser.parse_args(arguments)
    paths = [
        path
        for path in sorted((ROOT / "tests" / "kernels").glob("test_*.py"))
        if "needs_gpu" in path.read_text()
        and (not options.files or path.stem.removeprefix("test_") in options.files)
    ]
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        for tool in options.tools:
            for outcome in pool.map(lambda path: run(tool, path, options.limit), paths):  # noqa: B023
                good = outcome.found == 0 and " failed" not in outcome.tests
                failed |= not good
                end = f"{outcome.tests or 'no end'} ({outcome.seconds:.0f} s)"
                print(f"{tool} {outcome.file:24}{outcome.found!s:>6} found, {end}", flush=True)
                if not good:
                    print(*outcome.output.splitlines()[-40:], sep="\n")
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
