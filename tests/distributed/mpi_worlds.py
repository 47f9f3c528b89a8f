"""Programs that tests start under MPI's launcher.

``python -m tests.distributed.mpi_worlds cases FOLDER`` runs the table of `cases` in a
world over MPI; each process writes what went wrong, by case, to ``FOLDER/RANK.json``. Other first
arguments name other programs of this file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

from tests.distributed.worlds import ROOT

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
    """Run the whole table."""
    from datetime import timedelta

    from tensorflow_lite_clone import distributed as d
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


if __name__ == "__main__":
    {"cases": cases}[sys.argv[1]](*sys.argv[2:])
