"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import IO, Any

fcntl: Any = import_module("fcntl") if os.name == "posix" else None
#: How the names of files begin and end that are being written and not yet in their place.
_ASIDE = (".tensorflow_lite_clone-", ".partial")


@contextmanager
def whole_file(path: str | os.PathLike, mode: str = "w", synced: bool = False) -> Iterator[IO[Any]]:
    """A file to write; it takes the place of `path` when the block ends without an error.

    An OSError (no such folder, a full disk) names `path`, and leaves what was there as it was.
    With `synced` the file is on the disk before it takes its place. What processes that were
    killed have left in the folder is removed.
    """
    path = os.fspath(path)
    folder = os.path.dirname(path) or "."
    file: Any = None
    aside = _ASIDE[0]
    try:
        _remove_abandoned(folder)
        file, aside = _opened_aside(folder, mode)
        with suppress(FileNotFoundError):
            os.chmod(aside, stat.S_IMODE(os.stat(path).st_mode))
        yield file
        file.flush()
        if synced:
            os.fsync(file.fileno())
        if fcntl is None:  # Windows renames no open file
            file.close()
        os.replace(aside, path)
    except BaseException as error:
        if file is not None:
            with suppress(OSError):  # what is left in the buffer may not fit on the disk either
                file.close()
            with suppress(OSError):
                os.unlink(aside)
        if isinstance(error, OSError) and error.errno and _ASIDE[0] in str(error.filename or aside):
            error.filename = path
            del error.filename2  # that of a renaming
        raise
    file.close()
    if synced:
        _sync(folder)


def _opened_aside(folder: str, mode: str) -> tuple[IO[Any], str]:
    """A new file to write, locked until it is closed or its process ends, and its name."""
    text: Any = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    while True:
        name = os.path.join(folder, f"{_ASIDE[0]}{os.urandom(8).hex()}{_ASIDE[1]}")
        file: Any = open(name, mode.replace("w", "x"), **text)  # noqa: SIM115  (the caller closes it)
        if fcntl is None:
            return file, name
        with suppress(OSError):  # without locks in this file system nothing is removed there
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(name):
            return file, name
        file.close()  # another process was faster, and has taken it for abandoned


def _remove_abandoned(folder: str) -> None:
    """Remove the files of writers that were killed: those that nobody has locked."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            known = entry.name.startswith(_ASIDE[0]) and entry.name.endswith(_ASIDE[1])
            if known and entry.is_file(follow_symlinks=False):
                with suppress(OSError), open(entry.path, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def _sync(folder: str) -> None:
    """Let the new name survive a loss of power, where folders can be synchronised."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
