"""The launcher of one machine: it meets the others, starts workers, and ends or restarts them.

The launcher of node 0 holds a store, which its workers and all others use. An attempt is a meeting
of the launchers; then each waits for its workers and for the others' verdict, a key of the store:
that all are done, that a worker has failed, or why there is no sense in going on. The first
verdict counts, and all launchers act on it together.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tensorflow_lite_clone.distributed.elastic.multiprocessing.api import (
    Logs,
    SignalException,
    Worker,
    adopt,
    stop,
)
from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import (
    ChildFailedError,
    ProcessFailure,
)
from tensorflow_lite_clone.distributed.elastic.multiprocessing.reaper import Reaper
from tensorflow_lite_clone.distributed.errors import DistError, DistNetworkError, DistStoreError
from tensorflow_lite_clone.distributed.store import PrefixStore, Store
from tensorflow_lite_clone.distributed.tcp_store import TCPStore

#: Launchers say that they live every so many seconds; one that is silent for longer is lost.
BEAT, SILENCE = 1.0, 30.0
#: How long launchers above the least number are waited for.
LAST_CALL = 30.0

#: On the path of a process, this folder makes ``import torch`` mean this package (see `dropin`).
_STAND_INS = Path(__file__).parents[2] / "dropin" / "path"
_CHECKOUT = str(Path(__file__).parents[3])


@dataclass
class Job:
    """What a launcher is to start.

    Attributes:
        command: The program and its arguments.
        program: What the program is called in messages.
        workers: How many processes there are on this machine.
        logs: Where they print.
        nodes: The least and the largest number of machines.
        node: The number of this machine; None if the order in which launchers come decides.
        address: Where the launcher of node 0 listens, and its port (0 takes a free one).
        host: The name of this machine, for messages.
        name: The name of the job, which all its launchers know.
        role: The name of its workers.
        max_restarts: How often all workers are started again when one fails.
        timeout: How many seconds launchers wait for each other.
        grace: How many seconds workers have to end after a signal.
        signals: The signals to the launcher that end the workers.
        environment: Environment variables for the workers, beside those of this process.
    """

    command: Sequence[str]
    program: str
    workers: int
    logs: Logs
    nodes: tuple[int, int] = (1, 1)
    node: int | None = 0
    address: tuple[str, int] = ("127.0.0.1", 0)
    host: str = field(default_factory=socket.gethostname)
    name: str = "none"
    role: str = "default"
    max_restarts: int = 0
    timeout: float = 600.0
    grace: float = 5.0
    signals: Sequence[str] = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    environment: Mapping[str, str] = field(default_factory=dict)


def launch(job: Job) -> dict[int, Path]:
    """Run a job to its end; the folder of each of this machine's ranks in the last attempt.

    Raises:
        ChildFailedError: A worker failed, and there were no restarts left.
        SignalException: A signal ended this launcher.
        DistError: The launchers did not meet, or another one has gone.
    """
    launcher = _Launcher(job)
    adopt(True)
    try:
        attempt = 0
        while True:
            workers, failure = launcher.attempt(attempt)
            if failure is None:
                return {worker.rank: Path(worker.error_file).parent for worker in workers}
            if attempt == launcher.restarts:
                raise failure
            attempt += 1
            _say(f"{failure}\nstarting all workers again, {attempt} of {launcher.restarts} times")
    finally:
        adopt(False)
        launcher.leave()


class _Launcher:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.store, self.holds_store = _store_of(job)
        self.address, self.port = job.address[0], self.store.port
        self.keys = PrefixStore(f"launchers_of_{job.name}", self.store)
        self.restarts = job.max_restarts
        self.node, self.node_count = self._join()
        self.have_met = False

    def _join(self) -> tuple[int, int]:
        """The number of this node, and how many there are: those that came in time."""
        least, most = self.job.nodes
        node = self.job.node
        if node is None:
            node = 0 if self.holds_store else self.keys.add("others", 1)
        local = secrets.token_bytes(8)
        if self.keys.compare_set(f"place_{node}", b"", local) != local:
            raise DistError(f"{self.job.name}: two launchers are node {node}")
        if least < most and node == 0:
            self.keys.set("count", str(self._count()))
        if least < most:
            most = int(self.keys.get("count"))
        if node >= most:
            raise DistError(f"{self.job.name}: is at work on {most} nodes; this is node {node}")
        return node, most

    def _count(self) -> int:
        """How many nodes come: the least number in time, others soon after."""
        least, most = self.job.nodes
        self._wait([f"place_{node}" for node in range(least)])
        with suppress(DistStoreError):
            places = [f"place_{node}" for node in range(least, most)]
            self.keys.wait(places, timedelta(seconds=LAST_CALL))
        count = least
        while count < most and self.keys.check([f"place_{count}"]):
            count += 1
        return count

    def _wait(self, keys: Sequence[str]) -> None:
        """Wait for the other launchers. Raises DistStoreError that says which did not come."""
        try:
            self.keys.wait(keys, timedelta(seconds=self.job.timeout))
        except DistStoreError:
            late = [key.rpartition("_")[2] for key in keys if not self.keys.check([key])]
            raise DistStoreError(
                f"{self.job.name}: the launchers of the nodes {', '.join(late)} did not come to "
                f"{self.address}:{self.port} within {self.job.timeout:g} seconds"
            ) from None

    def attempt(self, number: int) -> tuple[list[Worker], ChildFailedError | None]:
        """Start the workers and wait for the end of all; how some failed, if they did."""
        nodes = self._meet(number)
        verdict = _Verdict(PrefixStore(f"attempt_{number}", self.keys))
        events: SimpleQueue[Any] = SimpleQueue()
        workers: list[Worker] = []
        sign = signal.SIGTERM
        with Reaper() as reaper, _caught(self.job.signals, events.put):
            try:
                for environment in self._environments(nodes, number):
                    command, logs = self.job.command, self.job.logs
                    workers.append(Worker(command, environment, logs, events.put))
                    reaper.watch(workers[-1].pid)
                watch = threading.Thread(
                    target=self._watch, args=(verdict, nodes, events.put), daemon=True
                )
                watch.start()
                error = self._follow(workers, verdict, events, reaper)
            except BaseException as reason:
                verdict.say({"reason": f"the launcher on {self.job.host} ended: {reason}"})
                sign = getattr(reason, "sigval", sign)
                raise
            finally:
                stop(workers, sign, self.job.grace)
        return workers, error

    def _meet(self, attempt: int) -> list[dict[str, Any]]:
        """What the launchers tell each other before an attempt, by their nodes."""
        keys = [f"attempt_{attempt}_node_{node}" for node in range(self.node_count)]
        local = {"workers": self.job.workers, "restarts": self.restarts, "host": self.job.host}
        self.keys.set(keys[self.node], json.dumps(local))
        self._wait(keys)
        self.have_met = True
        nodes = [json.loads(told) for told in self.keys.multi_get(keys)]
        self.restarts = min(node["restarts"] for node in nodes)
        return nodes

    def _environments(
        self, nodes: Sequence[dict[str, Any]], attempt: int
    ) -> Iterator[dict[str, str]]:
        """The environment of each worker on this machine."""
        job, count = self.job, [node["workers"] for node in nodes]
        before, world = sum(count[: self.node]), sum(count)
        shared = {
            **os.environ,
            "GROUP_RANK": self.node,
            "GROUP_WORLD_SIZE": len(nodes),
            "LOCAL_WORLD_SIZE": job.workers,
            "MASTER_ADDR": self.address,
            "MASTER_PORT": self.port,
            "PYTHONPATH": _python_path(),
            "ROLE_NAME": job.role,
            "ROLE_WORLD_SIZE": world,
            "TORCHELASTIC_MAX_RESTARTS": self.restarts,
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_RUN_ID": job.name,
            "TORCHELASTIC_SIGNALS_TO_HANDLE": ",".join(job.signals),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "WORLD_SIZE": world,
            **job.environment,
        }
        shared.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")
        for local_rank in range(job.workers):
            error_file = job.logs.folder_of(attempt, local_rank) / "error.json"
            own = {
                "LOCAL_RANK": local_rank,
                "RANK": before + local_rank,
                "ROLE_RANK": before + local_rank,
                "TORCHELASTIC_ERROR_FILE": error_file,
            }
            yield {name: str(value) for name, value in {**shared, **own}.items()}

    def _follow(
        self, workers: list[Worker], verdict: _Verdict, events: SimpleQueue[Any], reaper: Reaper
    ) -> ChildFailedError | None:
        """Wait for the verdict, and give it when a worker fails or all have done their work."""
        running = set(workers)
        failures: dict[int, ProcessFailure] = {}
        while not isinstance(event := events.get(), dict):
            if isinstance(event, SignalException):
                raise event
            event.signal(signal.SIGTERM)  # to what the worker has started and left
            running.discard(event)
            if event.has_gone():
                reaper.forget(event.pid)
            if event.exit_code():
                failures = failures or self._failures(workers)
                rank, first = next(iter(failures.items()))
                verdict.say({"rank": rank, "failure": asdict(first)})
            elif not running and verdict.count("done") == self.node_count:
                verdict.say({})
        if "reason" in event:
            raise DistError(f"{self.job.name}: {event['reason']}")
        if not event:
            return None
        all_failures = {event["rank"]: ProcessFailure(**event["failure"]), **failures}
        return ChildFailedError(self.job.program, all_failures)

    def _failures(self, workers: Sequence[Worker]) -> dict[int, ProcessFailure]:
        """How workers have failed by now, the first one first.

        One that was killed has failed before those that lost their peer by that, and wrote of it;
        but it wrote no time.
        """
        found = {worker.rank: worker.failure(self.job.host, patience=1.0) for worker in workers}
        failed = [(rank, failure) for rank, failure in found.items() if failure is not None]
        return dict(sorted(failed, key=lambda one: (one[1].exitcode >= 0, one[1].timestamp)))

    def _watch(
        self, verdict: _Verdict, nodes: Sequence[dict[str, Any]], tell: Callable[[Any], None]
    ) -> None:
        """In a thread: tell of the verdict; until it is there, show and see signs of life."""
        seen = [(0, time.monotonic())] * len(nodes)
        try:
            while not verdict.comes_within(BEAT):
                verdict.count(f"beats_{self.node}")
                now = time.monotonic()
                for node, (beats, since) in enumerate(seen if self.holds_store else ()):
                    found = verdict.count(f"beats_{node}", 0)
                    if found != beats:
                        seen[node] = found, now
                    elif now - since > SILENCE:
                        host = nodes[node]["host"]
                        verdict.say({"reason": f"the launcher on {host} (node {node}) is silent"})
            tell(verdict.read())
        except DistNetworkError as error:
            tell({"reason": f"the launcher of node 0 has gone: {error}"})

    def leave(self) -> None:
        """Let the others read the verdict before the store ends."""
        with suppress(DistError):
            self.keys.set(f"left_{self.node}", "")
            if self.holds_store and self.have_met:
                keys = [f"left_{node}" for node in range(self.node_count)]
                self.keys.wait(keys, timedelta(seconds=2 * self.job.grace + BEAT))


class _Verdict:
    """How an attempt ends: what one launcher says first, in its store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def say(self, said: dict[str, Any]) -> None:
        """Give the verdict, unless there is one."""
        with suppress(DistNetworkError):  # who watches has seen it, too
            self.store.compare_set("verdict", "", json.dumps(said))

    def comes_within(self, seconds: float) -> bool:
        """Whether there is a verdict, now or soon."""
        try:
            self.store.wait(["verdict"], timedelta(seconds=seconds))
        except DistStoreError:
            return False
        return True

    def read(self) -> dict[str, Any]:
        """The verdict."""
        return json.loads(self.store.get("verdict"))

    def count(self, key: str, amount: int = 1) -> int:
        """Count something."""
        return self.store.add(key, amount)


def _python_path() -> str:
    """Where workers look for modules: ``import torch`` means this package there."""
    paths = [str(_STAND_INS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    if _CHECKOUT not in sys.path[1:]:  # a worker's path does not begin with the current folder
        paths.append(_CHECKOUT)
    return os.pathsep.join(dict.fromkeys(filter(None, paths)))


def _store_of(job: Job) -> tuple[TCPStore, bool]:
    """The store of a job, and whether this process holds it."""
    host, port = job.address
    timeout = timedelta(seconds=job.timeout)
    if job.node in (None, 0):
        try:
            return TCPStore(host, port, None, True, timeout), True
        except DistNetworkError as error:
            number = getattr(error.__cause__, "errno", None)
            if job.node == 0 or number not in (errno.EADDRINUSE, errno.EADDRNOTAVAIL):
                raise
    return TCPStore(host, port, timeout=timeout), False


@contextmanager
def _caught(names: Sequence[str], tell: Callable[[SignalException], None]) -> Iterator[None]:
    """Tell of signals, within, in place of what else they do. Ignored ones stay ignored."""

    def handler(number: int, frame: Any) -> None:
        got = signal.Signals(number)
        tell(SignalException(f"the launcher got {got.name}", got))

    previous: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in names:
            sign = signal.Signals[name]
            if signal.getsignal(sign) is not signal.SIG_IGN:
                previous[sign] = signal.signal(sign, handler)
    try:
        yield
    finally:
        for sign, old in previous.items():
            signal.signal(sign, old)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
