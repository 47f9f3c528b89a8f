"""A lock between processes that is a file, as ``torch.utils.file_baton``."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

from tensorflow_lite_clone.core.errors import level_outside

__all__ = ["FileBaton"]


class FileBaton:
    """The one of several processes that makes the file is the one to do the work.

        baton = FileBaton(path)
        if baton.try_acquire():
            try:
                build()
            finally:
                baton.release()
        else:
            baton.wait()

    `wait` looks every `wait_seconds`, and warns once if it takes longer than `warn_after_seconds`.
    """

    def __init__(
        self,
        lock_file_path: str | os.PathLike,
        wait_seconds: float = 0.1,
        warn_after_seconds: float | None = None,
    ) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.warn_after_seconds = warn_after_seconds
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Make the file; False if it is there already."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Wait until the file is gone."""
        start, warned = time.monotonic(), self.warn_after_seconds is None
        while Path(self.lock_file_path).exists():
            time.sleep(self.wait_seconds)
            waited = time.monotonic() - start
            if not warned and waited > (self.warn_after_seconds or 0):
                warned = True
                warnings.warn(
                    f"Waiting for the lock file {str(self.lock_file_path)!r} for {waited:.0f} s: "
                    "it may have been left by a process that was ended",
                    stacklevel=level_outside(),
                )

    def release(self) -> None:
        """Remove the file."""
        if self.fd is not None:
            os.close(self.fd)
        os.remove(self.lock_file_path)
