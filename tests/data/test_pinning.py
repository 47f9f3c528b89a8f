"""DataLoader(pin_memory=True) with workers: a thread pins, and all else stays as it was."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils.data import DataLoader, IterableDataset, get_worker_info
from tensorflow_lite_clone.utils.data import _iterators as iterators
from tensorflow_lite_clone.utils.data._utils import pinner

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]
SIZE = 13


class Batch:
    """A batch of one's own that notes which thread has pinned it."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples
        self.thread = ""

    def pin_memory(self) -> Batch:
        if 7 in self.samples:
            raise KeyError("seven is not to be pinned")
        self.thread = threading.current_thread().name
        return self


class Numbers:
    """The numbers below SIZE; 11 fails, 12 ends its process."""

    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, i: int) -> int:
        if i == 11:
            raise ValueError("eleven")
        if i == 12:
            os.kill(os.getpid(), signal.SIGKILL)
        return i


class Parts(IterableDataset):
    """Worker w has w + 1 numbers."""

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(10 * info.id, 11 * info.id + 1))


def stand_in() -> Any:
    """What the thread asks of `torch.cuda`, where there is none."""
    return types.SimpleNamespace(
        current_device=lambda: 0, device=lambda index: contextlib.nullcontext()
    )


@pytest.fixture
def pins(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a GPU were in use."""
    monkeypatch.setattr(iterators, "pinning_helps", lambda: True)
    monkeypatch.setattr(pinner, "cuda", stand_in())


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    yield
    gc.collect()
    assert multiprocessing.active_children() == []
    assert [thread.name for thread in threading.enumerate() if thread.name == "pinning"] == []


def loader(data: Any, **options: Any) -> DataLoader:
    options = {"num_workers": 2, "collate_fn": Batch, "pin_memory": True, **options}
    return DataLoader(data, **options)


def test_batches_come_in_order_and_pinned_by_a_thread(pins: None) -> None:
    found = list(loader(Numbers(), sampler=[5, 4, 3, 2, 1, 0], batch_size=2))
    assert [batch.samples for batch in found] == [[5, 4], [3, 2], [1, 0]]
    assert {batch.thread for batch in found} == {"pinning"}
    (alone,) = loader(Numbers(), sampler=[0], num_workers=0)
    assert alone.thread == threading.current_thread().name


def test_batches_are_pinned_before_they_are_asked_for(pins: None) -> None:
    passing = iter(loader(Numbers(), sampler=[0, 1, 2, 3]))
    next(passing)
    early = len(passing._arrived)  # those that came before the first one
    deadline = time.monotonic() + 10
    while passing._pinner.answers.qsize() < 3 - early and time.monotonic() < deadline:
        time.sleep(0.01)
    assert passing._pinner.answers.qsize() == 3 - early


def test_exceptions_of_workers_and_of_pinning(pins: None) -> None:
    passing = iter(loader(Numbers(), sampler=[6, 7, 8, 11, 9]))
    assert next(passing).samples == [6]
    with pytest.raises(KeyError) as caught:
        next(passing)
    text = str(caught.value)
    assert text.startswith("Caught KeyError in pin memory thread for device 0.\nOriginal Traceback")
    assert "seven is not to be pinned" in text
    assert next(passing).samples == [8]
    with pytest.raises(ValueError, match=r"(?s)Caught ValueError in DataLoader worker.*eleven"):
        next(passing)
    assert [batch.samples for batch in passing] == [[9]]


class Leaving(Batch):
    """A batch that wants to end the program when it is pinned."""

    def pin_memory(self) -> Batch:
        raise SystemExit("enough")


def test_a_thread_that_is_to_exit(pins: None) -> None:
    """Nobody waits for it then."""
    passing = iter(loader(Numbers(), sampler=[0, 1], collate_fn=Leaving, timeout=30))
    for _ in range(2):
        with pytest.raises(SystemExit, match="enough"):
            next(passing)


def test_a_worker_that_dies(pins: None) -> None:
    passing = iter(loader(Numbers(), sampler=[12, 1, 2]))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"exited unexpectedly \(killed by signal: SIGKILL"):
            next(passing)


def test_timeout(pins: None) -> None:
    passing = iter(loader(Slow(), timeout=0.1))
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0.1 seconds"):
        next(passing)


class Slow:
    """A sample takes longer than anybody waits."""

    def __len__(self) -> int:
        return 1

    def __getitem__(self, i: int) -> int:
        time.sleep(1)
        return i


@pytest.mark.parametrize("stay", [False, True])
def test_streams_of_several_lengths(pins: None, stay: bool) -> None:
    batches = loader(Parts(), num_workers=3, persistent_workers=stay)
    for _ in range(2):
        assert [batch.samples for batch in batches] == [[0], [10], [20], [11], [21], [22]]


def test_a_pass_that_is_not_finished(pins: None) -> None:
    """What was on its way is no part of the next pass."""
    batches = loader(Numbers(), sampler=[0, 1, 2, 3, 4], persistent_workers=True)
    assert next(iter(batches)).samples == [0]
    assert [batch.samples for batch in batches] == [[0], [1], [2], [3], [4]]


def test_dropping_an_iterator_ends_thread_and_workers(pins: None) -> None:
    """Though a process that was forked later has copies of what they talk by."""
    passing, later = (iter(loader(Numbers(), sampler=[0, 1, 2])) for _ in range(2))
    next(passing), next(later)
    thread, processes = passing._pinner.thread, [w.process for w in passing._pool.workers]
    del passing
    gc.collect()
    assert not thread.is_alive() and not any([process.is_alive() for process in processes])
    assert next(later).samples == [1]


AT_THE_END = """
import os, threading, time
from tensorflow_lite_clone.utils.data import DataLoader
from tests.data.test_pinning import Batch, Numbers, iterators, pinner, stand_in

begun = threading.Event()

class Late(Batch):
    def pin_memory(self):
        begun.set()
        time.sleep(0.3)
        os.write(1, b"pinned")
        return self

if __name__ == "__main__":
    iterators.pinning_helps, pinner.cuda = lambda: True, stand_in()
    passing = iter(
        DataLoader(Numbers(), sampler=[0], num_workers=1, collate_fn=Late, pin_memory=True)
    )
    begun.wait()
"""


def test_the_end_of_the_program_waits_for_the_thread(tmp_path: Path) -> None:
    """It ends between two batches, not within CUDA."""
    script = tmp_path / "program.py"
    script.write_text(AT_THE_END)
    command = [sys.executable, "-W", "ignore", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "pinned", "")


@pytest.mark.cuda
def test_tensors_on_a_gpu() -> None:
    """They are page-locked, in whatever they are."""
    tlc.zeros(1, device="cuda")
    data = np.arange(24, dtype=np.float32).reshape(12, 2)
    pairs = DataLoader(
        tlc.utils.data.TensorDataset(tlc.from_numpy(data), tlc.arange(12)),
        batch_size=4, num_workers=2, pin_memory=True,
    )  # fmt: skip
    for number, (rows, names) in enumerate(pairs):
        assert rows.is_pinned() and names.is_pinned()
        there = rows.to("cuda", non_blocking=True)
        np.testing.assert_array_equal(there.cpu().numpy(), data[4 * number : 4 * number + 4])
        assert names.tolist() == list(range(4 * number, 4 * number + 4))
