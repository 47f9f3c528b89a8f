"""Running one function in several processes that succeed or fail together."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.multiprocessing._folder import TemporaryFolder

# How long processes that were told to end may take before they are killed.
GRACE = 30.0  # seconds
PR_SET_PDEATHSIG = 1

log = logging.getLogger(__name__)


class ProcessException(Exception):
    """A process has failed: its number `error_index` and its id `error_pid`."""

    def __init__(self, msg: str, error_index: int, pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function has raised: the message holds its traceback."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """The process has ended by a signal, or with an exit code other than 0."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> tuple:
        return type(self), (
            self.msg,
            self.error_index,
            self.pid,
            self.exit_code,
            self.signal_name,
        )


def _run(fn: Callable[..., Any], i: int, args: tuple, error_file: str) -> None:
    """What a process does: an exception goes into the file as text."""
    if sys.platform == "linux":  # end with the parent, also where nobody heeds interrupts
        ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM if ignored else signal.SIGINT)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent gets it too, and ends the others
    except Exception:
        Path(error_file).write_text(traceback.format_exc(), encoding="utf-8")
        raise SystemExit(1) from None


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The processes' ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process ends, at most `timeout` seconds; True when all have ended.

        When one has failed, the others are terminated, after `grace_period` seconds killed
        (default 30), and ProcessRaisedException or ProcessExitedException tells of the first.
        Call it until it returns True.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout)
        ended = [self.sentinels.pop(sentinel) for sentinel in ready]
        for i in ended:
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                self._end_all(GRACE if grace_period is None else grace_period)
                self._report(i)
        return not self.sentinels

    def _end_all(self, grace: float) -> None:
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        deadline = time.monotonic() + grace
        for process in self.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                log.warning("Killing process %s, which did not end in time", process.pid)
                process.kill()
                process.join()

    def _report(self, i: int) -> None:
        process = self.processes[i]
        code, pid = process.exitcode, process.pid
        file = Path(self.error_files[i])
        if text := file.read_text(encoding="utf-8") if file.exists() else "":
            msg = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            raise ProcessRaisedException(msg, i, pid)
        if code < 0:
            name = signal.Signals(-code).name
            msg = f"process {i} terminated with signal {name}"
            raise ProcessExitedException(msg, i, pid, code, name)
        raise ProcessExitedException(f"process {i} terminated with exit code {code}", i, pid, code)


class SpawnContext(ProcessContext):
    """What `spawn` returns."""


def _start(
    kind: type[ProcessContext],
    fn: Callable[..., Any],
    args: tuple,
    nprocs: int,
    join: bool,
    daemon: bool,
    start_method: str,
) -> ProcessContext | None:
    context: Any = multiprocessing.get_context(start_method)
    folder = TemporaryFolder("processes-")
    files = [os.path.join(folder.path, str(i)) for i in range(nprocs)]
    processes = [
        context.Process(target=_run, args=(fn, i, args, file), daemon=daemon)
        for i, file in enumerate(files)
    ]
    for process in processes:
        process.start()
    group = kind(processes, files)
    weakref.finalize(group, folder.close)
    if not join:
        return group
    while not group.join():
        pass
    return None


def start_processes(
    fn: Callable[..., Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run ``fn(i, *args)`` in processes i = 0, ..., nprocs - 1.

    With `join` wait for all of them: when one fails the others are terminated, and
    ProcessRaisedException (with its traceback) or ProcessExitedException is raised. Without it
    return a ProcessContext, whose `join` does that.
    """
    return _start(ProcessContext, fn, args, nprocs, join, daemon, start_method)


def spawn(
    fn: Callable[..., Any],
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` by the start method "spawn", whatever `start_method` says: it warns."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=level_outside(),
        )
    return _start(SpawnContext, fn, args, nprocs, join, daemon, "spawn")
