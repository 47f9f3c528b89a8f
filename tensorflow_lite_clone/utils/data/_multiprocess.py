"""Iterating a DataLoader with worker processes. Imported on first use: it costs start-up time."""

from __future__ import annotations

import itertools
import multiprocessing
import multiprocessing.context
import os
import weakref
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.utils.data._iterators import _BaseDataLoaderIter
from tensorflow_lite_clone.utils.data._utils.loop import Failure, Setup, StreamEnd, Task
from tensorflow_lite_clone.utils.data._utils.pinner import Pinner
from tensorflow_lite_clone.utils.data._utils.pool import WorkerPool

if TYPE_CHECKING:
    from tensorflow_lite_clone.utils.data.dataloader import DataLoader


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Keeps `prefetch_factor` batches under way in each worker.

    Batch n goes to the next active worker in turn, and (with `in_order`) comes out as number n.
    Indices are drawn from the sampler when a task is handed out: first `prefetch_factor *
    num_workers` of them, then one for every batch returned.
    """

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._prefetch_factor: int = loader.prefetch_factor  # type: ignore[assignment]
        if self._prefetch_factor <= 0:
            raise AssertionError(
                f"prefetch_factor must be greater than 0 with workers, got {self._prefetch_factor}"
            )
        self._in_order = loader.in_order
        setup = Setup(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
            self._base_seed,
            loader.worker_init_fn,
            self._num_workers,
        )
        context = loader.multiprocessing_context or multiprocessing.get_context()
        self._pool = WorkerPool(context, setup)
        self._pinner = Pinner(self._pool, self._persistent_workers) if self._pin_memory else None
        self._shutdown = weakref.finalize(self, close, self._pool, self._pinner)
        # At the program's end multiprocessing itself ends daemons, and does not wait for them.
        self._shutdown.atexit = False
        self._epoch = -1
        self._reset(loader, first_iter=True)

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        # Answers of an earlier pass that was not finished carry its number, and are dropped.
        self._epoch += 1
        self._send_idx = 0  # number of the next task
        self._rcvd_idx = 0  # number of the next batch to return
        self._owners: dict[int, int] = {}  # task under way -> its worker
        self._arrived: dict[int, Any] = {}  # batches that came before their turn
        self._active = [True] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _next_worker(self) -> int | None:
        """The worker for the next task, None if all streams have ended."""
        share = self._prefetch_factor * self._num_workers // max(1, sum(self._active))
        load = list(self._owners.values())
        for worker in itertools.islice(self._turns, self._num_workers):
            if self._active[worker] and (self._in_order or load.count(worker) < share):
                return worker
        return None

    def _try_put_index(self) -> None:
        """Hands out a task, if the sampler has an index left and a worker takes it."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker = self._next_worker()
        if worker is None:
            return
        self._pool.send(worker, Task(self._epoch, self._send_idx, index))
        self._owners[self._send_idx] = worker
        self._send_idx += 1

    def _receive(self) -> tuple[int, Any]:
        """The next answer of this pass: a task's number and its data."""
        busy = [worker for worker, active in enumerate(self._active) if active]
        timeout = self._timeout or None
        while True:
            try:
                if self._pinner is None:
                    epoch, number, data = self._pool.receive(busy, timeout)
                else:
                    epoch, number, data = self._pinner.receive(timeout)
            except TimeoutError:
                raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None
            if epoch == self._epoch:
                return number, data

    def _end_stream(self, worker: int) -> None:
        """Notes that a worker's stream has ended; what it still has to do will not be answered."""
        self._active[worker] = False
        self._owners = {n: owner for n, owner in self._owners.items() if owner != worker}
        if not self._persistent_workers:
            self._pool.send(worker, None)
        self._try_put_index()

    def _next_data(self) -> Any:
        while True:
            if self._rcvd_idx in self._arrived:
                return self._give(self._rcvd_idx, self._arrived.pop(self._rcvd_idx))
            if not self._owners and not self._arrived:
                if not self._persistent_workers:
                    self._shutdown()
                raise StopIteration
            if self._rcvd_idx not in self._owners and self._in_order:
                self._rcvd_idx += 1  # a task whose worker's stream has ended
                continue
            number, data = self._receive()
            if isinstance(data, StreamEnd):
                self._end_stream(data.worker_id)
                continue
            del self._owners[number]
            if number != self._rcvd_idx and self._in_order:
                self._arrived[number] = data
                continue
            return self._give(number, data)

    def _give(self, number: int, data: Any) -> Any:
        """Returns a batch (or raises the worker's exception) after asking for another."""
        if number == self._rcvd_idx:
            self._rcvd_idx += 1
        self._try_put_index()
        if isinstance(data, Failure):
            data.reraise()
        return data


def close(pool: WorkerPool, pinner: Pinner | None) -> None:
    """Ends the thread that pins, and the workers; a forked process has neither."""
    if os.getpid() != pool.owner:
        return
    try:
        if pinner is not None:
            pinner.close()
    finally:  # also where somebody interrupts the waiting for the thread
        pool.close()


def as_context(context: Any) -> Any:
    """The context of a start method's name, or the given context; TypeError, ValueError if not."""
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
        return multiprocessing.get_context(context)
    if not isinstance(context, multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string "
            f"specifying the start method, but got multiprocessing_context={context}"
        )
    return context
