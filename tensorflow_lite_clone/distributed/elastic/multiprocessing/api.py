"""The worker processes of one machine: how they start, where they print, how they all end."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path
from typing import IO, Any

from tensorflow_lite_clone.distributed.elastic.multiprocessing.errors import ProcessFailure

__all__ = ["DefaultLogsSpecs", "Logs", "SignalException", "Std", "Worker", "adopt", "stop"]

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_prctl: Any = getattr(ctypes.CDLL(None), "prctl", None)  # Linux has it


class SignalException(Exception):
    """A signal ended a launcher.

    Args:
        msg: What happened.
        sigval: The signal.
    """

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class Std(IntFlag):
    """Which streams of a process are meant."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, given: str) -> Std | dict[int, Std]:
        """``"3"`` for all local ranks, ``"0:1,1:2"`` for each; ValueError for anything else."""
        if re.fullmatch("[0-3]", given):
            return cls(int(given))
        if not re.fullmatch(r"\d+:[0-3](,\d+:[0-3])*", given):
            raise ValueError(f"streams are '0' to '3', or 'RANK:STREAMS,...', not {given!r}")
        pairs = (part.split(":") for part in given.split(","))
        return {int(rank): cls(int(streams)) for rank, streams in pairs}


@dataclass
class Logs:
    """Where workers print.

    Attributes:
        folder: What is kept goes to ``attempt_N/LOCAL_RANK/stdout.log`` and ``stderr.log`` below.
        redirects: The streams that go to files alone, of all local ranks or of each.
        tee: The streams that go to files and to the console, where lines begin with ``prefix``.
        shown: The local ranks that may print on the console; None for all.
        prefix: What lines of local rank 0 begin with, without its number: ``[default0]:``.
    """

    folder: Path
    redirects: Std | Mapping[int, Std] = Std.NONE
    tee: Std | Mapping[int, Std] = Std.NONE
    shown: Set[int] | None = None
    prefix: str = "default"

    def folder_of(self, attempt: int, local_rank: int) -> Path:
        """The folder of a worker, which exists from now on."""
        folder = self.folder / f"attempt_{attempt}" / str(local_rank)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass
class DefaultLogsSpecs:
    """Where workers print, for `LaunchConfig`: see `Logs`. Without a `log_dir` no file is kept."""

    log_dir: str | None = None
    redirects: Std | Mapping[int, Std] = Std.NONE
    tee: Std | Mapping[int, Std] = Std.NONE
    local_ranks_filter: Set[int] | None = None


class Worker:
    """A process in a session of its own, which ends when this process does.

    Args:
        command: The program and its arguments.
        environment: All of its environment variables, those that `torchrun` sets among them.
        logs: Where it prints.
        ended: Is called in another thread, with this object, when the process has ended.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        logs: Logs,
        ended: Callable[[Worker], None],
    ) -> None:
        self.rank = int(environment["RANK"])
        self.local_rank = int(environment["LOCAL_RANK"])
        self.error_file = environment["TORCHELASTIC_ERROR_FILE"]
        self._copiers: list[threading.Thread] = []
        folder = Path(self.error_file).parent
        streams = [self._stream(name, folder, logs) for name in ("stdout", "stderr")]
        try:
            self._process = subprocess.Popen(
                command,
                env=dict(environment),
                stdout=streams[0],
                stderr=streams[1],
                start_new_session=True,
                # Nothing but system calls: this process has threads.
                preexec_fn=functools.partial(_end_with, os.getpid()) if _prctl else None,
            )
        finally:
            for stream in streams:
                if stream not in (None, subprocess.DEVNULL):
                    os.close(stream)
        self.pid = self._process.pid
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()

    def _stream(self, name: str, folder: Path, logs: Logs) -> int | None:
        """What the process has for a stream: None for the console."""
        shown = logs.shown is None or self.local_rank in logs.shown
        one = Std.OUT if name == "stdout" else Std.ERR
        kept, copied = (
            one in (given if isinstance(given, Std) else given.get(self.local_rank, Std.NONE))
            for given in (logs.redirects, logs.tee)
        )
        if not kept and not copied:
            return None if shown else subprocess.DEVNULL
        file = os.open(folder / f"{name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        if not copied or not shown:
            return file
        reading, writing = os.pipe()
        arguments = os.fdopen(reading, "rb"), os.fdopen(file, "wb", 0), name
        prefix = f"[{logs.prefix}{self.local_rank}]:"
        copier = threading.Thread(target=_copy, args=(*arguments, prefix), daemon=True)
        copier.start()
        self._copiers.append(copier)
        return writing

    def _watch(self, ended: Callable[[Worker], None]) -> None:
        with suppress(ChildProcessError):  # somebody else has waited for it already
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        ended(self)

    def exit_code(self) -> int:
        """How the process ended; minus the signal that did it. Waits for it."""
        return self._process.wait()

    def failure(self, host: str, patience: float) -> ProcessFailure | None:
        """How it failed; None if it did not. One that writes of an error is about to end."""
        if self._process.poll() is None and os.path.exists(self.error_file):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(patience)
        code = self._process.poll()
        if not code:
            return None
        return ProcessFailure(self.local_rank, self.pid, code, self.error_file, host)

    def signal(self, number: int) -> None:
        """Send a signal to the process, and to all that it started and that are in its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def has_gone(self) -> bool:
        """Whether the process, and all that it started, have ended."""
        if self._process.poll() is None:
            return False
        with suppress(ChildProcessError):  # children that it left are this process's: see `adopt`
            while os.waitpid(-self.pid, os.WNOHANG)[0]:
                pass
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):  # some systems say the latter of the dead
            return True
        return False

    def close(self) -> None:
        """Wait until what it printed has been copied."""
        self.exit_code()
        for copier in self._copiers:
            copier.join(1.0)


def adopt(on: bool) -> None:
    """Whether this process waits, in place of the system, for processes whose parents have ended.

    So those that workers leave vanish when they end, and `Worker.has_gone` sees it.
    """
    if _prctl:
        _prctl(_PR_SET_CHILD_SUBREAPER, int(on))


def stop(workers: Sequence[Worker], number: signal.Signals, grace: float) -> None:
    """End processes and what they started: by a signal, and after `grace` seconds by SIGKILL."""
    for sent, seconds in ((number, grace), (signal.SIGKILL, 1.0)):
        left = [worker for worker in workers if not worker.has_gone()]
        for worker in left:
            worker.signal(sent)
        end = time.monotonic() + seconds
        while not all(worker.has_gone() for worker in left) and time.monotonic() < end:
            time.sleep(0.01)
    for worker in workers:
        worker.close()


def _end_with(parent: int) -> None:
    """Have the system end this process when the one that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def _copy(source: IO[bytes], file: IO[bytes], name: str, prefix: str) -> None:
    """Copy what a process prints to a file and, line by line, to a stream of this process."""
    with source, file:
        for line in source:
            file.write(line)
            console = getattr(sys, name)
            console.write(f"{prefix}{line.decode(errors='replace')}")
            console.flush()
