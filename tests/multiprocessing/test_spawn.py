"""Several processes that succeed or fail together."""

from __future__ import annotations

import inspect
import multiprocessing
import pickle
import sys
import time

import pytest
import torch.multiprocessing as theirs
from parameterized import parameterized

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.multiprocessing as ours
from tests.multiprocessing import work

# Python 3.12 and later warn of every fork beside threads (those of torch, here).
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")


def shared(count):
    return [tlc.zeros(2, device="cpu").share_memory_() for _ in range(count)]


def test_names_and_signatures():
    assert set(theirs.__all__) <= set(ours.__all__)
    for name in ("spawn", "start_processes"):
        mine, other = (inspect.signature(getattr(lib, name)) for lib in (ours, theirs))
        assert [(p.name, p.default) for p in mine.parameters.values()] == [
            (p.name, p.default) for p in other.parameters.values()
        ]
    assert ours.Process is multiprocessing.Process


def test_all_succeed():
    tensors = shared(2)
    assert ours.spawn(work.fill, (tensors,), nprocs=2) is None
    assert [t.tolist() for t in tensors] == [[1, 1], [2, 2]]


def test_without_joining():
    tensors = shared(2)
    context = ours.start_processes(work.fill, (tensors,), nprocs=2, join=False, start_method="fork")
    assert type(context) is ours.ProcessContext
    assert context.pids() == [process.pid for process in context.processes]
    while not context.join():
        pass
    assert context.join()
    assert [t.tolist() for t in tensors] == [[1, 1], [2, 2]]


def test_spawn_only_spawns():
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        context = ours.spawn(work.fill, (shared(1),), join=False, start_method="fork")
    assert isinstance(context, ours.SpawnContext)
    assert not context.join(timeout=0)
    assert isinstance(context.processes[0], multiprocessing.get_context("spawn").Process)
    while not context.join():
        pass


FAILURES = {
    "raise": ("ProcessRaisedException", "Process 1 terminated with the following error"),
    "exit": ("ProcessExitedException", "process 1 terminated with exit code 3"),
    "kill": ("ProcessExitedException", "process 1 terminated with signal SIGKILL"),
}


@parameterized.expand(FAILURES)
def test_the_first_failure_ends_all(how):
    kind, text = FAILURES[how]
    start = time.monotonic()
    errors = []
    for lib in (ours, theirs):
        with pytest.raises(Exception, match=text) as caught:
            lib.start_processes(work.fails, (how,), nprocs=3, start_method="fork")
        assert type(caught.value).__name__ == kind
        errors.append(caught.value)
    mine, other = errors
    assert time.monotonic() - start < 20
    assert multiprocessing.active_children() == []
    assert mine.error_index == other.error_index == 1
    assert ("ValueError: bad luck" in mine.msg) == ("ValueError: bad luck" in other.msg)
    if how != "raise":
        assert (str(mine), mine.exit_code, mine.signal_name) == (
            str(other), other.exit_code, other.signal_name,
        )  # fmt: skip
    again = pickle.loads(pickle.dumps(mine))
    assert (str(again), vars(again)) == (str(mine), vars(mine))


def test_lives_where_torchs_does():
    module = sys.modules["tensorflow_lite_clone.multiprocessing.spawn"]
    assert module.ProcessException is ours.ProcessException
    assert tlc.multiprocessing is ours
