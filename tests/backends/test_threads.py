"""Work in parts: they cover what there is, errors arrive, BLAS gets its threads back."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from tensorflow_lite_clone.backends.numpy import threads
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.core.flags import flags


@pytest.fixture
def three() -> Iterator[None]:
    before, flags.threads = flags.threads, 3
    yield
    flags.threads = before


@pytest.mark.parametrize(("size", "least", "parts"), [
    (10, 1, 3), (10, 4, 2), (10, 6, 1), (2, 1, 2), (1, 1, 1), (0, 1, 1), (7, 0, 3),
])  # fmt: skip
def test_parallel_for_covers_the_range(three: None, size: int, least: int, parts: int) -> None:
    seen, met = [], threading.Barrier(parts)

    def work(start: int, stop: int) -> None:
        met.wait(10)  # all are done beside each other
        seen.append((start, stop))

    threads.parallel_for(work, size, least)
    ends = sorted(seen)
    assert len(ends) == parts
    assert [a for a, _ in ends] == [0, *[b for _, b in ends[:-1]]]
    assert ends[-1][1] == size


def test_parallel_for_raises_after_all_parts(three: None) -> None:
    done = []

    def work(start: int, stop: int) -> None:
        if start == 1:
            raise ValueError("of another thread")
        done.append(start)

    with pytest.raises(ValueError, match="of another thread"):
        threads.parallel_for(work, 3, 1)
    assert sorted(done) == [0, 2]
    threads.parallel_for(lambda start, stop: done.append(start), 3, 1)
    assert len(done) == 5


@pytest.mark.skipif(not hasattr(os, "kill"), reason="no signals here")
def test_parallel_for_interrupted_waits_for_all_parts(three: None) -> None:
    """They still write to memory that would be handed to others."""
    done, go = [], threading.Event()

    def work(start: int, stop: int) -> None:
        if start:
            go.wait(10)
            time.sleep(0.1)
            done.append(start)

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        go.set()

    threading.Timer(0.2, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        threads.parallel_for(work, 3, 1)
    assert sorted(done) == [1, 2]


def test_nested_parallel_for_runs_in_its_own_thread(three: None) -> None:
    seen = []

    def work(start: int, stop: int) -> None:
        here = threading.get_ident()
        threads.parallel_for(lambda *part: seen.append((part, threading.get_ident() == here)), 3, 1)

    threads.parallel_for(work, 3, 1)
    assert seen == [((0, 3), True)] * 3


@pytest.mark.skipif(threads._processor is None, reason="threads cannot be kept on processors")
def test_parallel_for_pins_workers_to_their_own_processors(three: None) -> None:
    before = os.sched_getaffinity(0)
    flags.threads = 2
    if len(before) < 2:
        pytest.skip("there is one processor")
    for _ in range(2):  # a thread that is new, and one that is known
        masks: dict[int, set[int]] = {}
        threads.parallel_for(lambda i, _, to=masks: to.update({i: os.sched_getaffinity(0)}), 2, 1)
        mine, other = masks[0], masks[1]
        assert mine and other and not mine & other and mine | other <= before
        assert os.sched_getaffinity(0) == before
    flags.threads = len(before) + 1  # not one for each: they have what they had
    threads.parallel_for(lambda start, stop: None, flags.threads, 1)
    assert os.sched_getaffinity(0) == before


def _numbers() -> list[int]:
    """Of threads that NumPy's BLAS has."""
    import threadpoolctl

    with_numpy = np.__file__.rpartition("/numpy/")[0] + "/numpy"
    return [
        found["num_threads"]
        for found in threadpoolctl.threadpool_info()
        if found["user_api"] == "blas" and found["filepath"].startswith(with_numpy)
    ]


def test_blas_has_one_thread_in_the_parts_and_its_own_after(three: None) -> None:
    import threadpoolctl

    with threadpoolctl.threadpool_limits(2):
        before, within = _numbers(), []
        threads.parallel_for(lambda start, stop: within.append(_numbers()), 3, 1, products=True)
        assert before == _numbers()
    if not before:
        pytest.skip("NumPy's BLAS did not come with NumPy")
    assert within == [[1] * len(before)] * 3


def test_blas_has_one_thread_as_long_as_somebody_asks_for_it() -> None:
    import threadpoolctl

    with threadpoolctl.threadpool_limits(2):
        before = _numbers()
        first, second = threads.blas_single_threaded(), threads.blas_single_threaded()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert _numbers() == [1] * len(before)
        second.__exit__(None, None, None)
        assert _numbers() == before


def test_infinities_give_no_warnings_in_other_threads(three: None) -> None:
    x = np.zeros(3, np.float32)
    threads.parallel_for(lambda start, stop: np.divide(1, x[start:stop]), 3, 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_process_starts_its_own_workers(three: None) -> None:
    threads.parallel_for(lambda start, stop: None, 3, 1)
    child = os.fork()
    if child == 0:
        seen: list[int] = []
        threads.parallel_for(lambda start, stop: seen.append(start), 3, 1)
        os._exit(0 if len(seen) == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_workspace_is_reused_but_not_twice_at_once() -> None:
    with workspace(8, np.dtype(np.float32)) as first, workspace(8, np.dtype(np.float64)) as second:
        assert not np.shares_memory(first, second)
        address = first.ctypes.data
    with (
        workspace(4, np.dtype(np.float32)) as again,
        workspace(1 << 23, np.dtype(np.float64)) as large,
    ):
        assert again.ctypes.data == address
        assert large.nbytes == 1 << 26
