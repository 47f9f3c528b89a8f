"""Unpacking archives of strangers: nothing outside the folder, and no more than archives hold.

A zip, a tar or a compressed file of a few kilobytes can unpack to more than a disk holds. What
unpacks to more than `LARGEST_RATIO` times its size is refused, unless it is small: photographs and
tables are packed to a fiftieth at best, and deflate's limit is 1032.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

LARGEST_RATIO = 200
SMALL = 1 << 28  # bytes that anything may unpack to
LEAST_ON_DISK = 1 << 12  # bytes that a file takes there, however small
COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_TAR_COMPRESSION = {".tgz": ".gz", ".tbz": ".bz2", ".tbz2": ".bz2", ".txz": ".xz"}


def _most(path: str) -> int:
    """How many bytes a file may unpack to."""
    return max(SMALL, LARGEST_RATIO * os.path.getsize(path))


def _refusal(path: str) -> ValueError:
    return ValueError(
        f"{path} ({os.path.getsize(path)} bytes) would unpack to more than {_most(path)} bytes; "
        "if it is no trap, unpack it by another program"
    )


class _Bounded:
    """A file for reading, of which no more than the first `most` bytes are given."""

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path, self._most = file, path, _most(path)
        self._place = 0

    def read(self, count: int) -> bytes:
        self._room_for(self._place + count)
        data: bytes = self._file.read(count)
        self._place += len(data)
        return data

    def seek(self, place: int) -> int:
        self._room_for(place)
        self._place = self._file.seek(place)
        return self._place

    def tell(self) -> int:
        return self._place

    def seekable(self) -> bool:
        return True

    def _room_for(self, place: int) -> None:
        if place > self._most:
            raise _refusal(self._path)


def decompress(path: str, target: str) -> None:
    """Write the contents of a .gz, .bz2 or .xz file to a file.

    Raises ValueError, and leaves no file, if that is too much.
    """
    with COMPRESSED[os.path.splitext(path)[1].lower()](path, "rb") as packed:
        left = _most(path)
        with open(target, "wb") as file:
            while data := packed.read(min(1 << 20, left + 1)):
                left -= len(data)
                if left < 0:
                    break
                file.write(data)
    if left < 0:
        os.unlink(target)
        raise _refusal(path)


def extract_tar(path: str, folder: str) -> None:
    """Unpack a tar, compressed or not, whose members are plain files and folders.

    Raises ValueError, before anything is written, for a member that would lie outside of the
    folder, be a device or a link that leads out, and if it is too much.
    """
    end = os.path.splitext(path)[1].lower()
    opened = COMPRESSED.get(_TAR_COMPRESSION.get(end, end), open)
    with opened(path, "rb") as file:
        bounded: Any = _Bounded(file, path)
        with tarfile.open(fileobj=bounded, mode="r:") as archive:
            members, left = [], _most(path)
            try:
                for member in archive:
                    left -= max(member.size, LEAST_ON_DISK)  # sparse ones have less in the tar
                    if left < 0:
                        raise _refusal(path)
                    tarfile.data_filter(member, folder)
                    members.append(member)
                archive.extractall(folder, members, filter="data")
            except tarfile.FilterError as error:
                raise ValueError(str(error)) from error


def extract_zip(archive: zipfile.ZipFile, folder: str) -> None:
    """Unpack a zip that was opened by its path. ValueError, before anything is written, for a
    member that would lie outside of the folder, and if it is too much."""
    root, path = os.path.realpath(folder), str(archive.filename)
    left = _most(path)
    for member in archive.infolist():
        place = os.path.realpath(os.path.join(root, member.filename))
        if os.path.commonpath([root, place]) != root:
            raise ValueError(
                f"Archive entry {member.filename!r} lies outside of the folder {folder!r}"
            )
        left -= max(member.file_size, LEAST_ON_DISK)
    if left < 0:
        raise _refusal(path)
    archive.extractall(folder)
