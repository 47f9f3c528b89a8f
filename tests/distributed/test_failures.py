"""Calls that are wrong, ranks that do not come, and ranks that end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as d
from tests.distributed import bad_calls
from tests.distributed.worlds import ROOT, World, world


@pytest.fixture(scope="module")
def raised(tmp_path_factory):
    """What PyTorch and we raise, in each of two processes, by call."""
    meeting = f"file://{tmp_path_factory.mktemp('torch') / 'store'}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", bad_calls.__name__, meeting, str(rank)],
            cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )
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


@pytest.fixture
def own_world():
    """Makes a world for a test alone, which may break it."""
    made = []

    def make(size, timeout):
        made.append(World(size, "gloo", timeout))
        return made[-1]

    yield make
    for each in made:
        each.close()


def all_but_the_last(rank, size):
    """Wait in vain; gives the error and how long it took."""
    if rank == size - 1:
        return None
    start = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        d.all_reduce(tlc.ones(2))
    return str(caught.value), time.monotonic() - start


def receive_in_vain(rank, size):
    """Wait for a message that nobody sends."""
    if rank:
        return None
    with pytest.raises(RuntimeError) as caught:
        d.recv(tlc.ones(2), 1)
    return str(caught.value)


def test_what_does_not_come_is_named(own_world):
    three = own_world(3, timeout=0.5)
    message, *_ = three.run(receive_in_vain)
    assert "timed out" in message and "rank 1" in message
    *answers, _ = three.run(all_but_the_last)
    for message, duration in answers:
        assert "all_reduce" in message and "timed out" in message
        assert "rank 2" in message
        assert 0.4 < duration < 10


def end_the_last(rank, size):
    """The last rank ends at once, the others wait for it."""
    if rank == size - 1:
        os._exit(3)
    return all_but_the_last(rank, size)


def test_a_rank_that_ends_is_noticed_at_once(own_world):
    *answers, (_, end) = own_world(3, timeout=60.0).outcomes(end_the_last)
    assert end == "the process has ended with 3"
    for answer, error in answers:
        assert error is None, error
        message, duration = answer
        assert "rank 2" in message and "ended" in message
        assert duration < 10
