"""What ends the sessions of workers when their launcher is killed."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from typing import Any

# Reads which sessions there are until the other end of the pipe is closed, which the system does
# for a process that was killed; then kills those that are left.
_PROGRAM = """
import os, signal, sys
left = set()
for line in sys.stdin:
    (left.add if line[0] == "+" else left.discard)(int(line[1:]))
for session in left:
    try:
        os.killpg(session, signal.SIGKILL)
    except OSError:
        pass
"""


class Reaper:
    """Kills sessions when this process ends before `close`, even by SIGKILL.

    Nothing in a process can clean up after SIGKILL, and the system's own signal at a parent's
    death reaches its children, not theirs; so a small process of its own waits for that.
    """

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the signals of a terminal are not for it
        )

    def __enter__(self) -> Reaper:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def watch(self, session: int) -> None:
        """Kill this session, too."""
        self._say(f"+{session}\n")

    def forget(self, session: int) -> None:
        """Leave alone a session that has ended: others may get its number."""
        self._say(f"-{session}\n")

    def close(self) -> None:
        """Kill nothing any more."""
        self._process.kill()
        self._process.communicate()

    def _say(self, line: str) -> None:
        pipe: Any = self._process.stdin
        with suppress(BrokenPipeError):  # somebody has ended it
            pipe.write(line.encode())
            pipe.flush()
