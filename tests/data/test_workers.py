"""DataLoader with worker processes: PyTorch's order and draws, and no hanging."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
import torch.utils.data as theirs
from parameterized import parameterized
from torch._utils import ExceptionWrapper

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.utils.data as ours
from tensorflow_lite_clone.utils.data._utils.channel import SHARED_BYTES, Channel
from tests.data.test_datasets import plain
from tests.processes import running

LIBRARIES = ((tlc, ours), (torch, theirs))
SIZE = 13

pytestmark = [
    # Python 3.12 and later warn of every fork beside threads (those of torch, here).
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning"),
    # More workers than processors are no matter here.
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    gc.collect()
    assert multiprocessing.active_children() == []


class Draws:
    """Samples that show which random streams a worker has."""

    def __init__(self, lib):
        self.lib = lib

    def __len__(self):
        return SIZE

    def __getitem__(self, i):
        return i, self.lib.rand(2), random.random(), np.random.rand(), np.random.randint(1 << 30)


def epochs(lib, data, own, options):
    lib.manual_seed(3)
    generator = None if own is None else lib.Generator().manual_seed(own)
    loader = data.DataLoader(Draws(lib), generator=generator, num_workers=2, **options)
    batches = [[plain(batch) for batch in loader] for _ in range(2)]
    iterator = iter(loader)
    batches.append([plain(next(iterator)) for _ in range(2)])
    streams = [lib.rand(2).tolist()]
    if generator is not None:
        streams.append(lib.rand(2, generator=generator).tolist())
    return batches, streams


@parameterized.expand(
    [
        (own, options)
        for own in (None, 5)
        for options in (
            {"batch_size": 3},
            {"batch_size": 3, "shuffle": True},
            {"batch_size": 3, "shuffle": True, "drop_last": True},
            {"batch_size": 2, "shuffle": True, "prefetch_factor": 1},
            {"batch_size": 3, "shuffle": True, "persistent_workers": True},
            {"batch_size": None},
        )
    ]
)
def test_order_and_draws(own, options):
    mine, reference = (epochs(lib, data, own, options) for lib, data in LIBRARIES)
    assert mine == reference


def parted_stream(data):
    """A stream that gives worker w, of any number, numbers of its own."""

    class Stream(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            assert info.dataset is self and info.num_workers == 3
            return iter(range(100 * info.id, 100 * info.id + 2 + 3 * info.id))

    return Stream()


@parameterized.expand([(size, keep) for size in (1, 2, None) for keep in (False, True)])
def test_streams(size, keep):
    results = []
    for _, data in LIBRARIES:
        loader = data.DataLoader(
            parted_stream(data), batch_size=size, num_workers=3, persistent_workers=keep
        )
        results.append([[plain(batch) for batch in loader] for _ in range(2)])
    assert results[0] == results[1]


class Worker:
    """Samples that tell which worker read them."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = ours.get_worker_info()
        return info.id, info.num_workers, info.seed, os.getpid(), getattr(self, "mark", None)


def mark(worker_id):
    ours.get_worker_info().dataset.mark = 10 + worker_id


def test_worker_info_and_init():
    assert ours.get_worker_info() is None
    tlc.manual_seed(0)
    loader = ours.DataLoader(
        Worker(), batch_size=None, num_workers=2, worker_init_fn=mark, collate_fn=tuple
    )
    rows = list(loader)
    assert [row[:2] + row[4:] for row in rows] == [(0, 2, 10), (1, 2, 11)] * 2
    assert rows[1][2] == rows[0][2] + 1
    assert len({row[3] for row in rows} | {os.getpid()}) == 3


def test_persistent_workers_live_on():
    loader = ours.DataLoader(
        Worker(), batch_size=None, num_workers=2, collate_fn=tuple, persistent_workers=True
    )
    assert {row[3] for row in loader} == {row[3] for row in loader}
    next(iter(loader))  # a pass that ends early must not leak into the next
    assert [row[0] for row in loader] == [0, 1, 0, 1]
    del loader


class Fails:
    """Fails in its own way at index 5."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            self.how()
        return i


def raiser(error):
    def how():
        raise error

    return how


def raise_local():
    class LocalError(Exception):
        pass

    raise LocalError("here")


class TwoArguments(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


@parameterized.expand(
    [
        ("value", raiser(ValueError("boom")), ValueError, "ValueError: boom"),
        ("key", raiser(KeyError("name")), KeyError, "KeyError: 'name'"),
        ("two", raiser(TwoArguments(1, 2)), RuntimeError, "TwoArguments: (1, 2)"),
        ("local", raise_local, RuntimeError, "LocalError: here"),
        ("stop", raiser(StopIteration()), StopIteration, "StopIteration"),
    ]
)
def test_exceptions(name, how, kind, text):
    iterator = iter(ours.DataLoader(Fails(how), batch_size=None, num_workers=2))
    assert [next(iterator) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(kind) as caught:
        next(iterator)
    message = str(caught.value)
    assert message.startswith("Caught ")
    assert (
        " in DataLoader worker process 1.\nOriginal Traceback (most recent call last):" in message
    )
    assert message.rstrip().endswith(text)
    assert "\n" in message
    # The pass goes on behind it.
    assert list(iterator) == [6, 7]


def test_a_failed_pass_leaves_no_worker():
    """The exception and its traceback do not keep the iterator until the collector comes."""
    gc.collect()
    gc.disable()
    try:
        for number in (0, 5):
            with contextlib.suppress(ValueError):
                for _ in ours.DataLoader(Fails(raiser(ValueError(number))), num_workers=2):
                    pass
            assert multiprocessing.active_children() == []
    finally:
        gc.enable()


def test_an_interrupted_program_leaves_no_worker():
    """Ctrl-C reaches the program and its workers at once."""
    program = """
import multiprocessing, time
from tensorflow_lite_clone.utils.data import DataLoader
class Slow:
    def __len__(self): return 100
    def __getitem__(self, i):
        time.sleep(0.05)
        return i
for batch in DataLoader(Slow(), num_workers=2):
    print(*[child.pid for child in multiprocessing.active_children()], flush=True)
"""
    with running(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        workers = [int(pid) for pid in process.stdout.readline().split()]
        assert len(workers) == 2
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == -signal.SIGINT
    assert errors.count("KeyboardInterrupt") == 1  # the workers say nothing
    assert not any(alive(pid) for pid in workers)


def message(kind, call):
    """The first two lines and the last of what `call` raises."""
    with pytest.raises(kind) as caught:
        call()
    lines = str(caught.value).splitlines()
    return lines[:2] + lines[-1:]


@parameterized.expand([(ValueError, "boom"), (KeyError, "name")])
def test_exceptions_read_as_in_torch(kind, text):
    mine = message(kind, lambda: list(ours.DataLoader(Fails(raiser(kind(text))), num_workers=1)))
    try:
        raise kind(text)
    except kind:
        wrapped = ExceptionWrapper(where="in DataLoader worker process 0")
    assert mine == message(kind, wrapped.reraise)


def test_a_batch_that_cannot_be_pickled():
    loader = ours.DataLoader(range(2), num_workers=1, collate_fn=lambda batch: lambda: batch)
    with pytest.raises(Exception, match="Caught .* in DataLoader worker process 0") as caught:
        next(iter(loader))
    assert "pickle" in str(caught.value)


def test_init_that_fails():
    loader = ours.DataLoader(range(4), num_workers=1, worker_init_fn=raiser_of_id)
    with pytest.raises(ValueError, match="worker 0"):
        next(iter(loader))


def raiser_of_id(worker_id):
    raise ValueError(f"worker {worker_id}")


@parameterized.expand(
    [
        ("killed", lambda: os.kill(os.getpid(), signal.SIGKILL), "SIGKILL"),
        ("exit", lambda: os._exit(3), "exit code 3"),
        ("sys.exit", lambda: sys.exit(4), "exit code 4"),
    ]
)
def test_a_worker_that_dies(name, how, cause):
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited") as caught:
        list(ours.DataLoader(Fails(how), batch_size=None, num_workers=2))
    assert cause in str(caught.value)
    assert time.monotonic() - start < 4


def test_timeout():
    loader = ours.DataLoader(Fails(lambda: time.sleep(2)), num_workers=1, timeout=0.2)
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(loader)


def test_dropping_an_iterator_ends_its_workers():
    iterator = iter(ours.DataLoader(range(1000), num_workers=2))
    next(iterator)
    assert len(multiprocessing.active_children()) == 2
    gc.collect()
    start = time.monotonic()
    del iterator
    assert multiprocessing.active_children() == []
    assert time.monotonic() - start < 10  # at once, but for a busy machine


def test_exhaustion_ends_the_workers():
    iterator = iter(ours.DataLoader(range(4), num_workers=2))
    assert len(list(iterator)) == 4
    assert multiprocessing.active_children() == []
    with pytest.raises(StopIteration):
        next(iterator)


def test_two_loaders_at_once():
    loaders = [ours.DataLoader(range(k, k + 6), num_workers=2) for k in (0, 100)]
    pairs = [(int(a), int(b)) for a, b in zip(*loaders)]
    assert pairs == [(k, 100 + k) for k in range(6)]


def test_in_any_order():
    class Slow:
        def __len__(self):
            return 8

        def __getitem__(self, i):
            time.sleep(0.3 if i == 0 else 0)
            return i

    loader = ours.DataLoader(Slow(), batch_size=None, num_workers=2, in_order=False)
    seen = list(loader)
    assert sorted(seen) == list(range(8))
    assert seen[0] != 0


class Large:
    """Arrays below and above the size from which batches go through shared memory."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        n = SHARED_BYTES // 4
        return {
            "large": np.full((n + i, 2), i, np.float32),
            "tensor": tlc.full((n,), i, dtype=tlc.int64),
            "small": tlc.full((3,), i),
            "strided": np.arange(10)[::2],
            "empty": np.empty(0),
        }


def test_large_batches():
    batches = list(ours.DataLoader(Large(), batch_size=None, num_workers=2))
    for i, batch in enumerate(batches):
        assert plain(batch["small"])[1] == [i] * 3
        assert bool((batch["large"] == i).all()) and bool((batch["tensor"] == i).all())
        assert batch["large"].shape[0] == SHARED_BYTES // 4 + i
        assert batch["strided"].tolist() == [0, 2, 4, 6, 8]
        assert batch["empty"].shape == (0,)
        for name in ("large", "tensor", "small"):
            batch[name].add_(1)  # a batch may be written to
            assert bool((batch[name] == i + 1).all())


def test_channel_without_shared_memory():
    ends = [Channel(end) for end in multiprocessing.Pipe()]
    value = {"a": np.arange(5.0), "b": np.arange(6).reshape(2, 3).T}
    ends[0].send(value)
    back = ends[1].receive()
    assert all((back[key] == value[key]).all() for key in value)
    back["a"][0] = 7
    ends[0].close()
    with pytest.raises(EOFError):
        ends[1].receive()
    with pytest.raises(OSError):
        ends[1].send(value)
        ends[1].send(value)
    ends[1].close()


@pytest.mark.slow
def test_spawned_workers():
    loader = ours.DataLoader(
        ours.TensorDataset(tlc.arange(6)), 2, num_workers=1, multiprocessing_context="spawn"
    )
    assert [batch[0].tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5]]


def test_pickling_fails_before_workers_are_left():
    with pytest.raises(Exception, match="pickle"):
        iter(
            ours.DataLoader(
                range(4), num_workers=2, multiprocessing_context="spawn", collate_fn=lambda b: b
            )
        )


def test_more_workers_than_processors():
    with pytest.warns(UserWarning, match="suggested max number of worker"):
        ours.DataLoader(range(4), num_workers=5000)


SCRIPT = """
import tensorflow_lite_clone as torch
loader = torch.utils.data.DataLoader(range(100), num_workers=2, persistent_workers={keep})
iterator = iter(loader)
print(next(iterator))
"""


@parameterized.expand([(False,), (True,)])
def test_a_program_that_ends_in_the_middle(keep):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(keep=keep)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=os.getcwd(),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "tensor([0])\n", "")


ORPHANS = """
import os, signal
import tensorflow_lite_clone as torch
iterator = iter(torch.utils.data.DataLoader(range(100), num_workers=2))
next(iterator)
print(*[worker.process.pid for worker in iterator._pool.workers], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_workers_end_with_a_killed_parent():
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS], capture_output=True, text=True, timeout=60
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    assert ended(pids)


HANGING = """
import os, signal, time
import tensorflow_lite_clone as torch
from tensorflow_lite_clone.utils.data._utils import loop
loop.PATIENCE = 0.2
class Hangs(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        os.write(1, f"{os.getpid()}\\n".encode())  # whole, whoever else writes
        time.sleep(60)
iterator = iter(torch.utils.data.DataLoader(Hangs(), num_workers=2, multiprocessing_context="fork"))
time.sleep(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_hanging_workers_end_with_a_killed_parent():
    done = subprocess.run(
        [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, text=True, timeout=30
    )
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    assert ended(pids)


def ended(pids):
    """Whether processes end within some seconds."""
    deadline = time.monotonic() + 8
    while time.monotonic() < deadline and any(alive(pid) for pid in pids):
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def alive(pid):
    """Whether a process runs; one that nobody has waited for counts as ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
