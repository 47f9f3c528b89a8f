"""Calls that are wrong, ranks that do not come, and ranks that end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tests.distributed import bad_calls
from tests.distributed.process_groups import ROOT, World, world
from tests.processes import running


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    """What PyTorch and we raise, in each of two processes, by call."""
    meeting = f"file://{tmp_path_factory.mktemp('torch') / 'store'}"
    with ExitStack() as stack:
        processes = [
            stack.enter_context(running(
                [sys.executable, "-m", bad_calls.__name__, meeting, str(rank)],
                cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            ))
            for rank in range(2)
        ]  # fmt: skip
        ours = world(2).run(bad_calls.ours)
        theirs = [json.loads(process.communicate(timeout=60)[0]) for process in processes]
    return theirs, ours


@pytest.mark.parametrize("name", bad_calls.BAD_CALLS)
def test_wrong_calls_raise_as_in_pytorch(name, raised):
    theirs, ours = raised
    for rank in range(2):
        assert theirs[rank][name].endswith("Error"), "PyTorch takes it"
        assert ours[rank][name] == theirs[rank][name]


def waiting_in_vain(rank, size):
    """All but the last rank wait for it; gives the errors, and how long they took to come."""
    group = d.new_group(timeout=timedelta(seconds=1))
    if rank == size - 1:
        return None
    found = []
    for wait in (lambda: d.recv(tlc.ones(2), size - 1, group), lambda: d.barrier(group)):
        start = time.monotonic()
        with pytest.raises(RuntimeError) as caught:
            wait()
        found.append((str(caught.value), time.monotonic() - start))
    return found


def test_what_does_not_come_is_named():
    *answers, _ = world(4).run(waiting_in_vain)
    for received, waited in answers:
        for what, (message, duration) in (("recv", received), ("barrier", waited)):
            assert what in message and "timed out" in message and "rank 3" in message
            assert 0.9 < duration < 10


def end_the_last(rank, size):
    """The last rank ends at once, the others wait for it; gives the error."""
    if rank == size - 1:
        os._exit(3)
    with pytest.raises(RuntimeError) as caught:
        d.all_reduce(tlc.ones(2))
    return str(caught.value)


def test_a_rank_that_ends_is_noticed_at_once():
    broken = World(3, "gloo", timeout=60.0)
    start = time.monotonic()
    *answers, (_, end) = broken.outcomes(end_the_last)
    assert end == "the process has ended with 3"
    for message, error in answers:
        assert error is None, error
        assert "rank 2" in message and "ended" in message
    assert time.monotonic() - start < 40  # less than the time limit; the processes start, too
    broken.close()
