"""Where checkpoints are: paths and file objects; a path is replaced only by a complete file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.core.files import whole_file
from tensorflow_lite_clone.serialization._archive import MAGIC


def is_path(f: Any) -> bool:
    """Whether `f` names a file."""
    return isinstance(f, (str, os.PathLike))


def is_archive(file: Any) -> bool:
    """Whether a file begins as a zip archive does, from where it stands."""
    start = file.tell()
    head = file.read(len(MAGIC))
    if isinstance(head, str):
        raise TypeError("a checkpoint is read from a binary file, and this one is open as text")
    file.seek(start)
    return bool(head == MAGIC)


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
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        # a pipe or a device: there is nothing to replace
        with open(path, "wb") as file:
            yield file
        return
    with whole_file(path, "wb", synced=True) as file:
        yield file


def folder_name(f: Any) -> str:
    """The folder inside of the archive: the file's name without its ending."""
    if not is_path(f):
        return "archive"
    name = os.path.splitext(os.path.basename(os.fspath(f)))[0]
    return os.fsencode(name).decode(errors="replace") or "archive"
