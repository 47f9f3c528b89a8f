"""Programs that tests start under MPI's launcher, by their names."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tests.distributed.process_groups import ROOT

OPTIONS = ("--allow-run-as-root", "--oversubscribe", "--bind-to", "none")


def launcher() -> str | None:
    """MPI's launcher: beside Python, or on the path."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("mpirun", path=beside) or shutil.which("mpirun")


def launch(size: int, program: str, *args: str, limit: float = 60.0) -> subprocess.CompletedProcess:
    """Run a program of this file in some processes."""
    start = launcher()
    assert start is not None
    return subprocess.run(
        [start, *OPTIONS, "-n", str(size), sys.executable, "-m", __name__, program, *args],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=limit,
    )


def cases(folder: str) -> None:
    """Run the whole table; each process writes what went wrong, by case, to a file of its own."""
    from tests.distributed.cases import CASES, run

    d.init_process_group("mpi", timeout=timedelta(seconds=10))
    rank, size = d.get_rank(), d.get_world_size()
    errors = {}
    for name in CASES:
        try:
            run(rank, size, name)
        except BaseException:
            errors[name] = traceback.format_exc()
        else:
            errors[name] = ""
    Path(folder, f"{rank}.json").write_text(json.dumps(errors))
    d.destroy_process_group()


def raises() -> None:
    """One process raises while the others wait for it."""
    d.init_process_group("mpi")
    if d.get_rank() == 1:
        raise ValueError("rank one has failed")
    d.barrier()


def late() -> None:
    """One process does not come, and the other goes on to its end all the same."""
    d.init_process_group("mpi", timeout=timedelta(seconds=0.5))
    if d.get_rank() == 1:
        time.sleep(60)
    try:
        d.all_reduce(tlc.ones(2))
    except RuntimeError as error:
        print(f"caught: {error}", flush=True)
    try:
        d.barrier()
    except RuntimeError as error:
        print(f"after it: {error}", flush=True)


def killed() -> None:
    """One process is killed."""
    d.init_process_group("mpi")
    if d.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    d.barrier()


def twice() -> None:
    """Groups over gloo, which are over MPI here; and then a world again, which is not closed."""
    os.environ.pop("OMPI_COMM_WORLD_LOCAL_SIZE", None)  # as on several hosts: no address is told
    d.init_process_group("gloo")
    assert "MASTER_ADDR" not in os.environ
    x = tlc.tensor([d.get_rank() + 1])
    d.all_reduce(x)
    engine = type(d.group.WORLD.engine("cpu")).__name__
    print(f"sum {x.item()} of {d.get_world_size()} by {engine}", flush=True)
    d.destroy_process_group()
    d.init_process_group("cpu:mpi")
    shared = d.group.WORLD.store
    shared.set(f"key {d.get_rank()}", "value")
    shared.wait([f"key {rank}" for rank in range(d.get_world_size())])
    print(f"{d.get_rank()} has seen all", flush=True)
    d.barrier()  # the store ends with the first process


PROGRAMS: dict[str, Callable[..., None]] = {
    program.__name__: program for program in (cases, raises, late, killed, twice)
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
