"""Where checkpoints are: paths and file objects; a path is replaced only by a complete file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tensorflow_lite_clone.serialization._archive import MAGIC

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

#: How the names of files begin and end that are being written and not yet in their place.
_ASIDE = (".tensorflow_lite_clone-", ".partial")


def is_path(f: Any) -> bool:
    """Whether `f` names a file."""
    return isinstance(f, (str, os.PathLike))


def is_archive(file: Any) -> bool:
    """Whether a file begins as a zip archive does, from where it stands."""
    start = file.tell()
    head = file.read(len(MAGIC))
    file.seek(start)
    return head == MAGIC


@contextmanager
def open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """A file by its name, closed afterwards, or a file object as it is."""
    if is_path(name_or_buffer):
        with open(name_or_buffer, mode) as file:
            yield file
    else:
        yield name_or_buffer


@contextmanager
def opened_to_read(f: Any) -> Iterator[Any]:
    """A binary file to read and seek in."""
    if is_path(f):
        with open(f, "rb") as file:
            yield file
        return
    for word in ("read", "seek", "tell"):
        if not hasattr(f, word):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{word}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    yield f


@contextmanager
def opened_to_write(f: Any) -> Iterator[Any]:
    """A binary file to write; a path gets its file when the block is left without an error."""
    if not is_path(f):
        if not hasattr(f, "write"):
            raise AttributeError(
                "expected 'f' to be string, path, or a file-like object with a 'write' attribute"
            )
        yield f
        return
    path = os.path.realpath(os.fsdecode(os.fspath(f)))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(f))} does not exist.")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):  # a pipe or a device: nothing to replace
        with open(path, "wb") as file:
            yield file
        return
    _remove_abandoned(folder)
    file, aside = _opened_aside(folder)
    try:
        if mode is not None:
            os.chmod(aside, stat.S_IMODE(mode))
        yield file
        file.flush()
        os.fsync(file.fileno())
        if fcntl is None:  # Windows renames no open file
            file.close()
        os.replace(aside, path)
    except BaseException as error:
        with suppress(OSError):  # what is left in the buffer may not fit on the disk either
            file.close()
        os.unlink(aside)
        if isinstance(error, OSError) and error.errno and error.filename is None:
            error.filename = path
        raise
    file.close()
    _sync_folder(folder)


def _opened_aside(folder: str) -> tuple[Any, str]:
    """A new file to write, locked until it is closed or its process ends, and its name."""
    while True:
        name = os.path.join(folder, f"{_ASIDE[0]}{os.urandom(8).hex()}{_ASIDE[1]}")
        file = open(name, "xb")  # noqa: SIM115  (the caller closes it)
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
            if entry.name.startswith(_ASIDE[0]) and entry.name.endswith(_ASIDE[1]):
                with suppress(OSError), open(entry.path, "r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(entry.path)


def _sync_folder(folder: str) -> None:
    """Let the new name survive a loss of power, where folders can be synchronised."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def folder_name(f: Any) -> str:
    """The folder inside of the archive: the file's name without its ending."""
    if not is_path(f):
        return "archive"
    return os.path.splitext(os.path.basename(os.fsdecode(os.fspath(f))))[0] or "archive"
