"""The table for a GPU: each row by ours, torch and JAX, printed as it comes and kept as JSON."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.bench.contenders import entered
from tests.bench.measure import costs, measured
from tests.bench.rows import chosen
from tests.bench.stored import Table, joined, keep, today

JAX_SECONDS = 300  # the most that all of its rows may take


def run(options: argparse.Namespace) -> None:
    """Measure, print and store."""
    others = set(options.against.split(",")) - {""}
    if others - {"torch", "jax"}:
        raise SystemExit(f"--against {options.against}: expected torch, jax or both")
    try:
        rows = chosen(options.only, options.all)
        contenders = entered("torch" in others, options.compile, options.contenders)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    found = about()
    found["rounds"], found["compile"], found["rows"] = options.rounds, options.compile, []
    print(f"{found['gpu']}, torch {found['versions']['torch']}; microseconds, medians")
    for key, row in rows.items():
        result = measured(row, contenders, options.rounds)
        result = {"key": key, "title": row.title, "goal": row.goal, "unit": row.unit, **result}
        ours = any(contender.lib is tlc for contender in contenders.values())
        result["flops"], result["bytes"] = costs(row) if ours else (row.flops, row.bytes)
        found["rows"].append(result)
        tell(result)
        keep(found, options.out)
    if "jax" in others:
        keep(with_jax(found, options.rounds), options.out)


def about() -> dict[str, Any]:
    """Where and when it is measured, and the peak rates of the device."""
    roof = tlc.profiler.roof("cuda")
    return {
        "gpu": torch.cuda.get_device_name(),
        "date": today(),
        "versions": {
            "tensorflow_lite_clone": tlc.version.__version__,
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "CUDA": torch.version.cuda,
            "cuDNN": torch.backends.cudnn.version(),
        },
        "roof": {"bytes": roof.copy_bytes_per_second, **roof.flops},
    }


def tell(row: dict[str, Any]) -> None:
    """Print a row."""
    goal = f"goal {row['goal']}" if row["goal"] else ""
    print(f"{row['title']}  {goal}")
    for name, value in row["times"].items():
        peak = row["peaks"].get(name)
        memory = f"{peak / 2**20:10.1f} MiB" if peak is not None else ""
        print(f"    {name:22}{value:12.1f}{memory}", flush=True)
    for name, why in row["failures"].items():
        print(f"    {name:22}{why}", flush=True)


def with_jax(found: Table, rounds: int) -> Table:
    """The table with the same rows under JAX, in processes of its own, after the others."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "jax.json"
        command = [sys.executable, "-m", "tests.bench.in_jax"]
        command += [row["key"] for row in found["rows"]]
        command += ["--rounds", str(rounds), "--out", str(file)]
        until = time.monotonic() + JAX_SECONDS
        try:
            for _ in found["rows"]:  # it ends at a row that fails
                if not subprocess.run(command, timeout=until - time.monotonic()).returncode:
                    break
        except subprocess.TimeoutExpired:
            print(f"JAX had no more than {JAX_SECONDS} s")
        return joined([found, json.loads(file.read_text())]) if file.exists() else found
