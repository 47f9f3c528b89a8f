"""Runs the kernel tests under compute-sanitizer: python -m tests.tools.sanitize [TOOL...].

A process a few dozen tests, several at a time, because everything is many times as slow there.
Each tool (memcheck, racecheck, initcheck, synccheck) must find nothing in the kernels of kernels/.
CuPy's own and cuBLAS' are looked at by initcheck alone, which has to know what they have written.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

from tensorflow_lite_clone.kernels.header import kernel_names
from tests.tools.markdown import ROOT

TOOLS = ("memcheck", "racecheck", "initcheck")
_FOLDER = ROOT / "tests" / "kernels"
# Products launch cuBLAS' kernels alone: those fail under racecheck, and initcheck does not see what
# their bulk copies write. Of a copy in a graph it looks at the source before the graph has run.
_LEFT_OUT = {
    "racecheck": ("test_gemm",),
    "initcheck": ("test_gemm", "test_words.py::test_captured", "::test_a_tensor_lent_in_a_capture"),
}
_SUMMARY = re.compile(r"SUMMARY: (\d+)")
_RESULT = re.compile(r"^\d+ (?:passed|failed|skipped|error).* in [\d.]+s", re.MULTILINE)
_TESTS = re.compile(r"(\d+) (passed|failed|skipped|errors?)\b")
_PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


class Outcome(NamedTuple):
    """What a run of some tests of one file under one tool said."""

    file: str
    found: int | None  # None: it did not come to an end
    tests: Counter[str]
    output: str

    @property
    def good(self) -> bool:
        return self.found == 0 and not self.tests.keys() & {"failed", "error", "errors"}


def our_kernels() -> list[str]:
    """Names of the kernels to look at, or what the names of generated ones begin with."""
    files = [*(ROOT / "kernels").glob("*.cu"), *(ROOT / "kernels").glob("*.cuh")]
    files.append(_FOLDER / "test_mma.py")
    names = {name for path in files for name in kernel_names(path.read_text())}
    return sorted(names | {"pointwise_"})


def environment(tool: str | None = None) -> dict[str, str]:
    """Two widths of elements show it; memory from the driver, as a pool hides overruns."""
    given = {"KERNEL_DTYPES": "float32,bfloat16", "OMP_NUM_THREADS": "1", **os.environ}
    given["DEVICE"] = "cuda"
    if tool in ("memcheck", "initcheck"):
        given["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    return given


def collected(paths: list[Path]) -> list[str]:
    """The names of all tests in some files."""
    done = subprocess.run(
        [*_PYTEST, "--collect-only", *map(str, paths)],
        cwd=ROOT, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if "::" in line]


def batches(tool: str, names: list[str], size: int) -> list[tuple[str, list[str]]]:
    """The tests for a tool, up to `size` of one file at a time: (file, names)."""
    tests: dict[str, list[str]] = {}
    for name in names:
        if not any(part in name for part in _LEFT_OUT.get(tool, ())):
            tests.setdefault(Path(name.partition("::")[0]).stem, []).append(name)
    return [
        (file, names[i : i + size])
        for file, names in tests.items()
        for i in range(0, len(names), size)
    ]


def run(tool: str, file: str, tests: list[str], limit: float) -> Outcome:
    """Run some tests of one file under one tool."""
    command = ["compute-sanitizer", "--tool", tool, "--print-limit", "3"]
    if tool != "initcheck":
        for name in our_kernels():
            command += ["--kernel-name", f"kernel_substring={name}"]
    try:
        done = subprocess.run(
            [*command, *_PYTEST, "--timeout=0", *tests],
            cwd=ROOT, env=environment(tool), capture_output=True, text=True, timeout=limit,
        )  # fmt: skip
        output = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        output = error.stdout.decode() if isinstance(error.stdout, bytes) else error.stdout or ""
    summary = _SUMMARY.findall(output)
    result = "".join(_RESULT.findall(output))
    counts = Counter({word: int(number) for number, word in _TESTS.findall(result)})
    return Outcome(file, int(summary[-1]) if summary else None, counts, output)


def excerpt(output: str) -> list[str]:
    """What the tool found, with the first lines of Python's stack, and how the tests ended."""
    lines = output.splitlines()
    said = [line for line in lines if line.startswith("=====") and "Host Frame" not in line]
    tests = [line for line in lines if ".py:" in line and "tests/" in line or " in test_" in line]
    return [*said[:40], *tests[:8], *lines[-10:]]


def main(arguments: list[str]) -> int:
    """Print a line a process and tool; 1 when something was found or did not end."""
    parser = argparse.ArgumentParser(prog="python -m tests.tools.sanitize", description=__doc__)
    parser.add_argument("tools", nargs="*", default=list(TOOLS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--size", type=int, default=24, help="tests for one process")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one process")
    parser.add_argument("--files", nargs="*", help="names of test files, without test_ and .py")
    options = parser.parse_args(arguments)
    paths = [
        path
        for path in sorted(_FOLDER.glob("test_*.py"))
        if "needs_gpu" in path.read_text()
        and (not options.files or path.stem.removeprefix("test_") in options.files)
    ]
    every = collected(paths)
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        for tool in options.tools:
            start = time.monotonic()
            total: Counter[str] = Counter()
            work = [(tool, *batch, options.limit) for batch in batches(tool, every, options.size)]
            for running in as_completed([pool.submit(run, *batch) for batch in work]):
                outcome = running.result()
                failed |= not outcome.good
                total += outcome.tests
                passed = outcome.tests["passed"]
                seconds = f"{time.monotonic() - start:.0f} s"
                print(
                    f"{tool} {outcome.file}: {passed} passed, {outcome.found} found, {seconds}",
                    flush=True,
                )
                if not outcome.good:
                    print(*excerpt(outcome.output), sep="\n", flush=True)
            tests = ", ".join(f"{number} {word}" for word, number in total.items())
            print(f"{tool}: {tests} ({time.monotonic() - start:.0f} s)", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
