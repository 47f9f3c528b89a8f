"""The table for a CPU: each row by ours and torch, printed as it comes and kept as JSON."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy
import threadpoolctl
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import backends
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tests.bench.contenders import Contender, entered
from tests.bench.cpu_rows import MEMORY, chosen, table
from tests.bench.measure import measured
from tests.bench.ratios import BASE, means
from tests.bench.stored import keep, today
from tests.bench.tensorgrad import published

ACCELERATOR = "numba"
SECONDS = 120  # the most that a process of its own may take


def run(options: argparse.Namespace) -> None:
    """Measure, print and store."""
    if options.against not in ("", "torch"):
        raise SystemExit(f"--against {options.against}: on the CPU there is torch")
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    tuning.compiled_after = 0  # as after many calls
    try:
        rows = chosen(table(tlc), options.only, options.groups)
        contenders = entered(bool(options.against), options.compile, options.contenders, "cpu")
    except ValueError as error:
        raise SystemExit(str(error)) from None
    found = about()
    found["rounds"], found["compile"], found["rows"] = options.rounds, options.compile, []
    print(f"{found['cpu']}, {found['threads']} threads, medians of {options.rounds} rounds")
    print(", ".join(f"{name} {version}" for name, version in found["versions"].items()))
    group = ""
    for key, row in rows.items():
        if row.group != group:
            group = row.group
            print(f"\n{group}: {'MiB' if group == MEMORY else 'microseconds'}, ratio to torch")
        if group == MEMORY:
            result = resident(key.removeprefix(f"{MEMORY}-"), contenders)
        else:
            result = measured(row, contenders, options.rounds, "cpu")
        result = {name: renamed(value) for name, value in result.items()}
        result = {"key": key, "title": row.title, "group": group, **result}
        result["published"] = published(key)
        found["rows"].append(result)
        tell(result)
        keep(found, options.out)
    print()
    for (group, name), mean in means(found["rows"]).items():
        print(f"{group:28}{name:24}geometric mean{mean:8.3f}")


def about() -> dict[str, Any]:
    """Where and when it is measured."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    versions = {
        "tensorflow_lite_clone": tlc.version.__version__,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "torch": torch.__version__,
        **blas(),
    }
    if accelerated():
        versions[ACCELERATOR] = metadata.version(ACCELERATOR)
    return {
        "cpu": f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores",
        "threads": torch.get_num_threads(),
        "date": today(),
        "versions": versions,
    }


def blas() -> dict[str, str]:
    """NumPy's library for products, and for which processor its kernels are."""
    folder = str(Path(numpy.__file__).parents[1])
    return {
        library["internal_api"]: f"{library['version']} ({library.get('architecture')})"
        for library in threadpoolctl.threadpool_info()
        if library["user_api"] == "blas" and library["filepath"].startswith(folder + "/numpy")
    }


def accelerated() -> bool:
    return ACCELERATOR in backends.load("cpu").accelerators


def renamed(by_contender: dict[str, Any]) -> dict[str, Any]:
    """Ours under the name of the accelerator that took part."""
    if not accelerated():
        return by_contender
    return {
        name.replace("ours", f"ours {ACCELERATOR}"): value for name, value in by_contender.items()
    }


def resident(key: str, contenders: dict[str, Contender]) -> dict[str, Any]:
    """Bytes that a step takes by eager contender, each in a process: `tests.bench.resident`."""
    peaks, wholes, failures = {}, {}, {}
    for name, contender in contenders.items():
        if not name.endswith("eager"):
            continue
        command = [sys.executable, "-m", "tests.bench.resident", contender.lib.__name__, key]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            failures[name] = (done.stderr.strip() or "ended").splitlines()[-1][:300]
        else:
            peaks[name], wholes[name] = map(int, done.stdout.split())
    ratios = {n: peak / peaks[BASE] for n, peak in peaks.items() if n != BASE and BASE in peaks}
    return {"times": {}, "ratios": ratios, "peaks": peaks, "wholes": wholes, "failures": failures}


def tell(row: dict[str, Any]) -> None:
    """Print a row."""
    values = row["times"] or {name: peak / 2**20 for name, peak in row["peaks"].items()}
    parts = [f"{name} {value:.{1 if value >= 100 else 2}f}" for name, value in values.items()]
    ratios = " ".join(f"{ratio:.2f}" for ratio in row["ratios"].values())
    print(f"{row['title']:52}{ratios:>12}   {', '.join(parts)}", flush=True)
    for name, why in row["failures"].items():
        print(f"    {name}: {why}", flush=True)
