"""The parent's side of a DataLoader's worker processes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple

from tensorflow_lite_clone.utils.data._utils import loop
from tensorflow_lite_clone.utils.data._utils.channel import Channel, unpack

# How often a waiting parent looks whether its workers live, and how long it lets them finish.
PATIENCE = 5.0  # seconds


class Worker(NamedTuple):
    """A process and the parent's end of the connection to it."""

    process: Any
    channel: Channel


class WorkerPool:
    """Starts worker processes, hands them tasks, takes their answers, and ends them.

    A worker's death is seen as the end of its connection's stream: at once, without signals.
    """

    def __init__(self, context: Any, setup: loop.Setup) -> None:
        self.owner = os.getpid()
        self.workers: list[Worker] = []
        try:
            for worker_id in range(setup.num_workers):
                self.workers.append(self._start(context, setup, worker_id))
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, setup: loop.Setup, worker_id: int) -> Worker:
        here, there = context.Pipe()
        channel = Channel(here)
        # A forked child holds copies of the parent's ends; it must close them to see them closed.
        forks = context.get_start_method() == "fork"
        copies = [*(worker.channel for worker in self.workers), channel] if forks else []
        process = context.Process(
            target=loop.main, args=(there, copies, setup, worker_id), daemon=True
        )
        try:
            process.start()
        except BaseException:
            channel.close()
            raise
        finally:
            there.close()
        return Worker(process, channel)

    def send(self, worker_id: int, task: loop.Task | None) -> None:
        """Hands a worker a task, or None: to stop."""
        with contextlib.suppress(OSError):  # it has died, which `receive` will report
            self.workers[worker_id].channel.send(task)

    def receive(
        self, worker_ids: Iterable[int], timeout: float | None, bell: Connection | None = None
    ) -> Any:
        """Waits for an answer (epoch, number, data) of one of the workers, None if `bell` rings.

        Raises RuntimeError when one of them has died, TimeoutError after `timeout` seconds.
        """
        bells = [] if bell is None else [bell]
        waiting: dict[Any, Worker] = {
            self.workers[i].channel.connection: self.workers[i] for i in worker_ids
        }
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = PATIENCE if deadline is None else max(0.0, deadline - time.monotonic())
            ready = wait([*waiting, *bells], min(left, PATIENCE))
            if bell in ready:
                return None
            for connection in ready:
                try:
                    parts = waiting[connection].channel.take()
                except (EOFError, OSError):
                    continue
                return unpack(*parts)
            dead = [
                worker.process
                for connection, worker in waiting.items()
                if connection in ready or not worker.process.is_alive()
            ]
            if dead:
                raise RuntimeError(describe_deaths(dead))
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError

    def close(self) -> None:
        """Ends the workers: asks them, and after PATIENCE makes them."""
        for worker_id, worker in enumerate(self.workers):
            self.send(worker_id, None)
            worker.channel.close()
        deadline = time.monotonic() + PATIENCE
        for worker in self.workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
        for end in ("terminate", "kill"):
            alive = [worker.process for worker in self.workers if worker.process.is_alive()]
            for process in alive:
                getattr(process, end)()
            for process in alive:
                process.join(PATIENCE)
        self.workers = []


def describe_deaths(processes: list[Any]) -> str:
    """Which workers have died, and of what."""
    pids = ", ".join(str(process.pid) for process in processes)
    causes = []
    for process in processes:
        process.join(1.0)  # its stream ends a moment before the process does
        code = process.exitcode
        if code is None:
            causes.append("closed its connection")
        elif code < 0:
            causes.append(f"killed by signal: {signal.Signals(-code).name}")
        else:
            causes.append(f"exit code {code}")
    return (
        f"DataLoader worker (pid(s) {pids}) exited unexpectedly ({', '.join(causes)}). "
        "With num_workers=0 the error may show itself."
    )
