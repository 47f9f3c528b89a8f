"""Compiles what the kernel files declare, and says what breaks a promise. It needs no GPU."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow_lite_clone.kernels.header import instances, kernel_names
from tensorflow_lite_clone.kernels.signature import template_parameters
from tensorflow_lite_clone.kernels.sources import Source, architecture_of

ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


class Report(NamedTuple):
    """What compiling a file for an architecture gave."""

    usage: dict[str, Any]  # instance -> registers, shared, spilled, double
    problems: list[str]


def promises(text: str) -> dict[str, tuple[int, int] | None]:
    """What to compile of a file, and the registers and shared bytes each may use, if it says so.

    Kernels without template parameters need no declaration; ValueError where nothing is declared.
    """
    found: dict[str, tuple[int, int] | None] = {
        name: (registers, shared) for name, registers, shared in instances(text)
    }
    declared = {name.partition("<")[0] for name in found}
    silent = [name for name in kernel_names(text) if name not in declared]
    if templates := [name for name in silent if template_parameters(text, name)]:
        raise ValueError(f"the field Instances names no instance of {', '.join(templates)}")
    return found | dict.fromkeys(silent)


def check_file(path: Path, architecture: str) -> Report:
    """Compile the instances a file declares for one architecture."""
    text = path.read_text(encoding="utf-8")
    try:
        promised = promises(text)
        nvrtc = import_module("tensorflow_lite_clone.backends.cupy.nvrtc")
        warnings, usage = nvrtc.compile_instances(Source(path).text, list(promised), architecture)
    except ValueError as error:
        return Report({}, [str(error)])
    found = list(warnings)
    for name, promise in promised.items():
        used = usage[name]
        if used.spilled:
            found.append(f"{name}: {used.spilled} bytes spilled")
        if promise is not None and used.registers > promise[0]:
            found.append(f"{name}: {used.registers} registers, promised {promise[0]}")
        if promise is not None and used.shared > promise[1]:
            found.append(f"{name}: {used.shared} bytes shared, promised {promise[1]}")
        if used.double and "double" not in name:
            found.append(f"{name}: double-precision instructions")
    return Report({name: tuple(used) for name, used in usage.items()}, found)


def check_files(
    paths: Iterable[Path], architectures: tuple[str, ...], jobs: int
) -> Iterator[tuple[Path, list[Report]]]:
    """Compile files for their architectures in `jobs` processes; yields them in order."""
    paths = [path.resolve() for path in paths]
    # What takes longest begins first, so that no process is left alone with it at the end.
    tasks = [(path, name) for path in paths for name in architectures_for(path, architectures)]
    tasks.sort(key=lambda task: -task[0].stat().st_size)
    # Processes that start afresh, as NVRTC may be in use here already.
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        reports: dict[tuple[Path, str], Future] = {
            task: pool.submit(check_file, *task) for task in tasks
        }
        for path in paths:
            names = architectures_for(path, architectures)
            yield path, [reports[path, name].result() for name in names]


def architectures_for(path: Path, architectures: tuple[str, ...]) -> tuple[str, ...]:
    """What to compile a file for: a file for one architecture is not compiled for others."""
    only = architecture_of(path)
    return architectures if only is None else (only,)


def missing() -> str | None:
    """What the check needs and does not find, or None."""
    try:
        import_module("tensorflow_lite_clone.backends.cupy.nvrtc").nvrtc.getVersion()
    except ImportError as error:
        return str(error)
    except RuntimeError as error:  # no NVRTC
        return str(error)
    return None


def check(
    paths: list[Path], architectures: tuple[str, ...] = ARCHITECTURES, jobs: int | None = None
) -> int:
    """Print what every instance uses, per architecture; 1 when something breaks a promise.

    2 when there is nothing to compile with, or nothing to compile.
    """
    if reason := missing():
        print(
            f"nothing to compile with: {reason}\n"
            "pip install cupy-cuda12x nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12"
        )
        return 2
    if not paths:
        print("there are no .cu files here")
        return 2
    start = time.monotonic()
    count = wrong = 0
    for path, reports in check_files(paths, architectures, jobs or os.cpu_count() or 1):
        compiled_for = architectures_for(path, architectures)
        print(f"\n{path.name} ({', '.join(compiled_for)})")
        names = dict.fromkeys(name for report in reports for name in report.usage)
        for name in names:
            used = [report.usage[name] for report in reports if name in report.usage]
            registers, shared, spilled, _ = zip(*used)
            print(
                f"  {name}: {_series(registers)} registers, {_series(shared)} bytes shared, "
                f"{_series(spilled)} spilled"
            )
        count += len(names)
        for architecture, report in zip(compiled_for, reports):
            for problem in report.problems:
                print(f"  PROBLEM ({architecture}): {problem.replace(chr(10), chr(10) + '    ')}")
            wrong += len(report.problems)
        print(end="", flush=True)
    print(
        f"\n{count} instances of {len(paths)} files for {', '.join(architectures)}: "
        f"{wrong or 'no'} problems, {time.monotonic() - start:.0f} s"
    )
    return 1 if wrong else 0


def _series(values: Iterable[int]) -> str:
    """Equal values once, different ones with slashes."""
    values = list(values)
    return str(values[0]) if len(set(values)) == 1 else "/".join(map(str, values))
