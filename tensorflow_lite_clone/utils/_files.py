"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any


@contextmanager
def whole_file(path: str | os.PathLike, mode: str = "w") -> Iterator[IO[Any]]:
    """A file to write; it takes the place of `path` when the block ends without an error.

    An OSError (no such folder, a full disk) names `path`, and leaves what was there as it was.
    """
    aside = f"{os.fspath(path)}.{os.urandom(6).hex()}.tmp"
    encoding = None if "b" in mode else "utf-8"
    try:
        with open(aside, mode, encoding=encoding, newline=None if "b" in mode else "") as file:
            yield file
        os.replace(aside, path)
    except BaseException as error:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(aside)
        if isinstance(error, OSError):
            error.filename, error.filename2 = os.fspath(path), None
        raise
