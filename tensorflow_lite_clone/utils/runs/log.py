"""Files of JSON lines: what is logged, a record a line, for programs that read while we write.

A record is an object of `kind`, `tag`, `step`, `time` (seconds since 1970) and `value`. JSON has
no NaN and no infinity: they are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import atexit
import json
import math
import os
import threading
import time
import warnings
import weakref
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside

_writers: weakref.WeakSet[FileWriter] = weakref.WeakSet()


def _named(x: Any) -> Any:
    """The same, with strings in the place of numbers that JSON does not have."""
    if isinstance(x, float) and not math.isfinite(x):
        return "NaN" if math.isnan(x) else "Infinity" if x > 0 else "-Infinity"
    if isinstance(x, dict):
        return {name: _named(value) for name, value in x.items()}
    return [_named(value) for value in x] if isinstance(x, list | tuple) else x


def encode(x: Any) -> str:
    """`x` as JSON in one line of ASCII."""
    try:
        return json.dumps(x, allow_nan=False, separators=(",", ":"))
    except ValueError:  # rare, and only then worth a walk
        return json.dumps(_named(x), allow_nan=False, separators=(",", ":"))


class FileWriter:
    """Appends records to a file of its own, ``events.TIME.PROCESS.jsonl`` in the folder `log_dir`.

    Records wait until there are `max_queue` of them or `flush_secs` seconds have passed; then all
    go into the file at once, as whole lines. Where that fails (a full disk, a folder that may not
    be written) they are dropped with one warning, and later ones are tried again. Threads may
    share a writer; a forked process continues in a file of its own.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        self._begin()
        self._folder = os.fspath(log_dir)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._suffix = filename_suffix
        self._warned = False
        with self._lock:
            self._write()
        _writers.add(self)

    def _begin(self) -> None:
        """The state of a process that has written nothing."""
        self._lock = threading.RLock()
        self._lines: list[str] = []
        self._file: Any = None
        self._torn = False  # whether the file may end within a line
        self._ended: threading.Event | None = None  # that of the thread, where there is one

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Add a record, a dictionary, with the present time if none is given."""
        moment = time.time() if walltime is None else float(walltime)
        record = {**event, "step": 0 if step is None else int(step), "time": moment}
        line = encode(record) + "\n"
        with self._lock:
            self._lines.append(line)
            if len(self._lines) >= self._max_queue or self._flush_secs <= 0:
                self._write()
            elif self._ended is None:
                self._ended = threading.Event()
                threading.Thread(target=self._write_late, args=(self._ended,), daemon=True).start()

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add a record; see `add_event`."""
        self.add_event(summary, global_step, walltime)

    def flush(self) -> None:
        """Write what is queued."""
        with self._lock:
            if self._lines:
                self._write()

    def close(self) -> None:
        """Write what is queued, and close the file; adding something opens a new one."""
        with self._lock:
            self.flush()
            if self._ended is not None:
                self._ended.set()
                self._ended = None
            if self._file is not None:
                self._file.close()
                self._file = None
                self._torn = False

    def __del__(self) -> None:
        # Nothing is queued: while something may be, the thread holds on to this.
        if self._file is not None:
            self._file.close()

    def _write_late(self, ended: threading.Event) -> None:
        while not ended.wait(self._flush_secs):
            self.flush()

    def _write(self) -> None:
        data = "".join(self._lines).encode()
        self._lines.clear()
        try:
            if self._file is None:
                self._file = self._open()
            # What broke off here stays a line of its own, which readers count and leave out.
            rest = memoryview(b"\n" + data if self._torn else data)
            self._torn = True
            while rest:
                rest = rest[self._file.write(rest) :]
            self._torn = False
        except OSError as error:
            self._warn(error)

    def _open(self) -> Any:
        os.makedirs(self._folder, exist_ok=True)
        while True:
            name = f"events.{time.time_ns() // 1_000_000}.{os.getpid()}{self._suffix}.jsonl"
            try:
                return open(Path(self._folder, name), "xb", buffering=0)  # noqa: SIM115
            except FileExistsError:  # of this very millisecond
                time.sleep(0.001)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(
                f"{self._folder}: {error.strerror or error}; what is logged is dropped while it "
                "cannot be written, the program goes on",
                stacklevel=level_outside(),
            )


@atexit.register
def _close_all() -> None:
    for writer in list(_writers):
        writer.close()


def _begin_again() -> None:
    """In a forked process: what is queued and the file belong to the parent."""
    for writer in list(_writers):
        if writer._file is not None:
            writer._file.close()
        writer._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
