"""Temporary folders that outlive nobody."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile

# Reads until the other end of the pipe is closed, which the system does for a process that was
# killed; then removes the folder, once nobody who is ending with that process writes to it.
_KEEPER = """
import os, shutil, sys, time
sys.stdin.buffer.read()
for _ in range(50):
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    if not os.path.exists(sys.argv[1]):
        break
    time.sleep(0.1)
"""


class TemporaryFolder:
    """A folder that vanishes with `close`, or with this process, even when it is killed.

    Nothing in a process can clean up after SIGKILL, so a small process of its own waits for that.
    """

    def __init__(self, prefix: str) -> None:
        self.path = tempfile.mkdtemp(prefix=prefix)
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _KEEPER, self.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the signals of a terminal are not for it
        )

    def close(self) -> None:
        """Remove the folder now."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._keeper.kill()
        self._keeper.communicate()
