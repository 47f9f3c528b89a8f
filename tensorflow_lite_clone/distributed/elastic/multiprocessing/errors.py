"""How a worker tells its launcher of an error, and how the launcher tells the user.

A launcher names a file to each worker, in the environment variable ``TORCHELASTIC_ERROR_FILE``. A
worker writes the error that ends it there: a main function that is decorated with `record`, or any
program after `record_uncaught`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from types import TracebackType
from typing import Any

__all__ = ["ChildFailedError", "ProcessFailure", "record", "record_uncaught"]


@dataclass
class ProcessFailure:
    """How a worker failed.

    Attributes:
        local_rank: Its number on its machine.
        pid: Its process.
        exitcode: Its exit code; minus the signal that ended it.
        error_file: Where it may have written its error.
        host: Its machine.
        message: Its traceback, if it wrote one; else what the exit code says.
        timestamp: When it failed, in seconds.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    host: str = ""
    message: str = ""
    timestamp: float = 0.0

    def __post_init__(self) -> None:
        if self.timestamp:
            return
        self.timestamp = time.time()
        with suppress(OSError, ValueError, LookupError, TypeError), open(self.error_file) as file:
            told = json.load(file)["message"]
            self.message = str(told["extraInfo"]["py_callstack"]).rstrip()
            self.timestamp = os.path.getmtime(self.error_file)

    def signal_name(self) -> str:
        """The signal that ended it; ``"<N/A>"`` if none did."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return f"signal {-self.exitcode}"

    def timestamp_isoformat(self) -> str:
        """When it failed, as a date and a time."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_", timespec="seconds")

    def describe(self, rank: int) -> str:
        """A line that says who failed, and how."""
        how = f"ended with exit code {self.exitcode}"
        if self.exitcode < 0:
            how = f"was killed by signal {-self.exitcode} ({self.signal_name()})"
        return (
            f"rank {rank} (local rank {self.local_rank}, process {self.pid}) on {self.host} {how} "
            f"at {self.timestamp_isoformat()}"
        )


class ChildFailedError(Exception):
    """Workers that a launcher started have failed.

    Args:
        name: The program.
        failures: How each rank failed; the first entry is the failure that ended the others.
    """

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        self.name, self.failures = name, failures
        super().__init__(self._summary())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank that failed first, and how."""
        return next(iter(self.failures.items()))

    def _summary(self) -> str:
        (rank, first), *others = self.failures.items()
        lines = [f"{self.name} failed: {first.describe(rank)}"]
        if first.message:
            lines += ["its error:", *(f"  {line}" for line in first.message.splitlines())]
        elif first.exitcode > 0:
            lines.append("it wrote no error for the launcher; what it printed may tell more")
        for rank, failure in others:
            last = failure.message.splitlines()[-1:]
            lines.append(": ".join([f"then {failure.describe(rank)}", *last]))
        return "\n".join(lines)


def record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """`fn`, whose errors are also written to the file ``TORCHELASTIC_ERROR_FILE``, if it is set."""

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except Exception as error:
            _write(error)
            raise

    return wrapper


def record_uncaught() -> None:
    """From now on, write the error that ends this process to the file that the launcher named.

    Does nothing without a launcher, or when called again.
    """
    if "TORCHELASTIC_ERROR_FILE" in os.environ and not isinstance(sys.excepthook, _Hook):
        sys.excepthook = _Hook(sys.excepthook)


class _Hook:
    """An exception hook that writes the error, and goes on to the previous hook."""

    def __init__(self, previous: Callable[..., Any]) -> None:
        self.previous = previous

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):
            _write(error)
        self.previous(kind, error, trace)


def _write(error: Exception) -> None:
    """Write an error to the launcher's file; the first one counts."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not path or os.path.exists(path):
        return
    told = {
        "message": f"{type(error).__name__}: {error}",
        "extraInfo": {
            "py_callstack": "".join(traceback.format_exception(error)),
            "timestamp": str(int(time.time())),
        },
    }
    with suppress(OSError):  # the error itself matters more
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            json.dump({"message": told}, file)
        os.replace(f"{path}.part", path)
