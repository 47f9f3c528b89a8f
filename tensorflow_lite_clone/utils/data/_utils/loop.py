"""What a worker process of a DataLoader does."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import random
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from tensorflow_lite_clone.ops.random.generators import default_generator
from tensorflow_lite_clone.utils.data._utils.channel import Channel, Parcel, pack
from tensorflow_lite_clone.utils.data._utils.fetch import _DatasetKind
from tensorflow_lite_clone.utils.data._utils.worker import WorkerInfo, set_worker_info

# How often a waiting worker looks whether its parent still lives.
PATIENCE = 5.0  # seconds


class Setup(NamedTuple):
    """What all workers of a loader are told at their start."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Callable
    drop_last: bool
    base_seed: int
    worker_init_fn: Callable[[int], Any] | None
    num_workers: int


class Task(NamedTuple):
    """A batch to fetch: the `number`-th of a pass over the data."""

    epoch: int
    number: int
    index: Any


class StreamEnd(NamedTuple):
    """A worker's answer when its copy of an IterableDataset has no more samples."""

    worker_id: int


class Verbatim(str):
    """Text that is its own repr: KeyError shows the repr of its argument."""

    __repr__ = str.__str__


class Failure:
    """An exception on its way from a worker to the parent, with the worker's traceback."""

    def __init__(self, kind: type[BaseException], text: str) -> None:
        self.kind = kind
        self.text = text

    @classmethod
    def of(cls, error: BaseException, where: str) -> Failure:
        """Describes an exception that was caught; the message is PyTorch's."""
        trace = "".join(traceback.format_exception(error))
        return cls(type(error), f"Caught {type(error).__name__} {where}.\nOriginal {trace}")

    def __reduce__(self) -> tuple:
        try:
            pickle.dumps(self.kind)
        except Exception:
            return Failure, (RuntimeError, self.text)  # a local class, say
        return Failure, (self.kind, self.text)

    def reraise(self) -> None:
        """Raises an exception of the same type; RuntimeError if the type takes no message."""
        try:
            error = self.kind(Verbatim(self.text) if self.kind is KeyError else self.text)
        except Exception:
            raise RuntimeError(self.text) from None
        try:
            raise error
        finally:
            del error  # this frame and the error's traceback would keep each other, and the workers


def pack_answer(epoch: int, number: int, answer: Any, where: str) -> Parcel:
    """Packs an answer, or the failure to pickle it."""
    try:
        return pack((epoch, number, answer))
    except Exception as error:
        return pack((epoch, number, Failure.of(error, where)))


class Inbox:
    """The tasks a worker has received; a thread reads them so that the parent never waits."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.epoch = 0
        self.stopped = False
        self.parent = os.getppid()
        threading.Thread(target=self._read, name="tasks", daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                while not self.channel.connection.poll(PATIENCE):
                    if os.getppid() != self.parent:
                        return
                task = self.channel.receive()
                if task is None:
                    return
                self.epoch = task.epoch
                self.tasks.put(task)
        except (EOFError, OSError):
            pass  # the parent has closed its end, or has gone
        finally:
            self.stopped = True
            self.tasks.put(None)
            self._end_with_parent()

    def _end_with_parent(self) -> None:
        """End a worker that hangs in the user's code when there is nobody who would end it."""
        while os.getppid() == self.parent:
            time.sleep(PATIENCE)
        time.sleep(PATIENCE)
        os._exit(1)

    def next(self) -> Task | None:
        """The next task of the current epoch, None at the end."""
        while True:
            task = self.tasks.get()
            if task is None or self.stopped:
                return None
            if task.epoch == self.epoch:
                return task


class Outbox:
    """The answers a worker sends; a thread sends them so that the worker can go on fetching."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.parcels: queue.SimpleQueue[Parcel] = queue.SimpleQueue()
        threading.Thread(target=self._send, name="answers", daemon=True).start()

    def put(self, parcel: Parcel) -> None:
        """Queues a parcel."""
        self.parcels.put(parcel)

    def _send(self) -> None:
        try:
            while True:
                self.channel.deliver(self.parcels.get())
        except OSError:
            pass  # nobody listens any more


def seed_everything(base_seed: int, worker_id: int) -> int:
    """Seeds the framework, `random` and `numpy.random` as PyTorch does; returns the seed."""
    seed = base_seed + worker_id
    random.seed(seed)
    default_generator.manual_seed(seed)  # not the GPU's, which a forked process cannot use
    words = np.random.SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0])
    np.random.seed(words.generate_state(4))
    return seed


def serve(setup: Setup, worker_id: int, inbox: Inbox, outbox: Outbox) -> None:
    """Answers tasks until told to stop."""
    where = f"in DataLoader worker process {worker_id}"
    seed = seed_everything(setup.base_seed, worker_id)
    set_worker_info(WorkerInfo(worker_id, setup.num_workers, seed, setup.dataset))

    def make_fetcher() -> Callable[[Any], Any]:
        return _DatasetKind.create_fetcher(
            setup.dataset_kind,
            setup.dataset,
            setup.auto_collation,
            setup.collate_fn,
            setup.drop_last,
        )

    failure: Failure | None = None
    try:
        if setup.worker_init_fn is not None:
            setup.worker_init_fn(worker_id)
        fetch = make_fetcher()
    except Exception as error:
        failure = Failure.of(error, where)

    epoch = 0
    ended = False
    while (task := inbox.next()) is not None:
        answer: Any
        try:
            if task.epoch != epoch:
                epoch, ended = task.epoch, False
                fetch = make_fetcher()
            if ended:
                continue
            answer = failure or fetch(task.index)
        except StopIteration as error:
            ended = setup.dataset_kind == _DatasetKind.Iterable
            answer = StreamEnd(worker_id) if ended else Failure.of(error, where)
        except Exception as error:
            answer = Failure.of(error, where)
        outbox.put(pack_answer(task.epoch, task.number, answer, where))
        del answer, task  # do not hold the batch while waiting for the next task


def main(connection: Connection, others: list[Any], setup: Setup, worker_id: int) -> None:
    """The worker's process; `others` are the parent's channels that a fork has copied."""
    for channel in others:
        channel.close()
    channel = Channel(connection)
    # The parent receives an interrupt as well, and reports it.
    with contextlib.suppress(KeyboardInterrupt):
        serve(setup, worker_id, Inbox(channel), Outbox(channel))
