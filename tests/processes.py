"""Processes for the time of a test: none is left, however the test ends."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def running(command: Sequence[Any], **options: Any) -> Iterator[subprocess.Popen]:
    """A process, which at the end is killed with all of its group if it has not ended by then.

    It leads a group of its own, so that `os.killpg` reaches what it started, too.
    """
    process = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):  # all have ended
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        process.wait()
