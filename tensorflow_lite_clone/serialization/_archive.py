"""The zip archive that a checkpoint is: stored records of one folder, their bytes aligned.

Names of records, their order and the padding are those of PyTorch's files; the zip format itself
is described in PKWARE's APPNOTE.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np

from tensorflow_lite_clone.serialization._options import options

ALIGNMENT = 64
MAGIC = b"PK\x03\x04"
_LOCAL_HEADER = 30
_ZIP64_FIELDS = 20  # what zipfile puts behind our padding in the header of a record of 2 GiB
_PADDING_TAG = b"FB"
_PIECE = 1 << 20  # bytes that are checked and written at a time
_END = b"PK\x05\x06"
_END_SIZE = 22
_LOCATOR_SIZE = 20
_LARGE_END_SIZE = 56 + _LOCATOR_SIZE  # what stands before the end where 32 bits do not suffice
_MALFORMED = (
    zipfile.BadZipFile, NotImplementedError, struct.error, ValueError, OverflowError, EOFError,
    OSError,
)  # fmt: skip


class Counted:
    """A stream that is only written forwards, and how far that is; nothing after an error.

    A ZipFile writes its directory when it goes, also after an error, where that would fail again
    or end a file that is not complete.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self.position = 0
        self.abandoned = False

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        if self.abandoned:
            return memoryview(data).nbytes
        try:
            count = write_all(self._file, data)
        except BaseException:
            self.abandoned = True
            raise
        self.position += count
        return count

    def flush(self) -> None:
        """Let the file flush, if it can."""
        if not self.abandoned and hasattr(self._file, "flush"):
            self._file.flush()


class ArchiveWriter:
    """Writes records one after the other, in a block.

    Its end adds the last records and the directory; an error in it leaves them out.
    """

    def __init__(self, file: Any, folder: str) -> None:
        self._stream = Counted(file)
        stream: Any = self._stream  # all of a file that zipfile needs
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED)
        self._folder = folder
        self._checksum = 0
        self._names = blake2b(digest_size=8)

    def __enter__(self) -> ArchiveWriter:
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is None:
            self._close()
        else:
            self._stream.abandoned = True
            self._zip.close()

    def write(self, name: str, data: Any, checked: bool = True) -> None:
        """Add a record of bytes; without a checksum unless it is to be `checked`."""
        info = zipfile.ZipInfo(f"{self._folder}/{name}")
        info.file_size = size = memoryview(data).nbytes
        # zipfile asks for the larger header with some room to spare
        fields = _ZIP64_FIELDS if size * 1.05 > zipfile.ZIP64_LIMIT else 0
        start = self._stream.position + _LOCAL_HEADER + len(info.filename.encode()) + fields
        padding = -(start + 4) % ALIGNMENT
        info.extra = _PADDING_TAG + struct.pack("<H", padding) + b"Z" * padding
        with self._zip.open(info, "w") as record:
            info.extra = b""  # the directory needs no padding
            for chunk in pieces(data):
                record.write(chunk)
        if not checked:
            info.CRC = 0
        self._checksum = zlib.crc32(info.CRC.to_bytes(4, "little"), self._checksum)
        self._names.update(name.encode())

    def _close(self) -> None:
        """Add the version, an id made of names and contents, and the directory."""
        self.write("version", b"3\n")
        names = int.from_bytes(self._names.digest(), "little")
        self.write(".data/serialization_id", f"{names:020d}{self._checksum:020d}".encode())
        self._zip.close()


class ArchiveReader:
    """The records of an archive, read as they are named; RuntimeError for a broken one."""

    def __init__(self, file: Any, path: Any = None, map_file: bool = False) -> None:
        self._file = file
        self._start = file.tell()
        self.end = end_of_archive(file, self._start)
        self.size = self.end - self._start
        window: Any = Window(file, self._start, self.end)
        try:
            directory = zipfile.ZipFile(window)
        except _MALFORMED as error:
            raise _broken(str(error)) from error
        entries = directory.infolist()
        self._entries = {entry.filename: entry for entry in entries}
        if len(self._entries) < len(entries):
            raise _broken("two records have one name")
        stored = [entry for entry in entries if entry.compress_type == zipfile.ZIP_STORED]
        if sum([entry.file_size for entry in stored]) > self.size:
            raise _broken("the records are larger than the file")
        names = [entry.filename for entry in entries]
        self._folder = names[0].partition("/")[0] if names else ""
        self._memory = None
        if map_file:
            mode: Any = "r+" if options.shares_mapping else "c"
            self._memory = np.asarray(np.memmap(os.fspath(path), np.uint8, mode))

    def __contains__(self, name: str) -> bool:
        return f"{self._folder}/{name}" in self._entries

    def read(self, name: str) -> bytes:
        """A whole small record."""
        return self._filled(*self._find(name)).tobytes()

    def bytes_of(self, name: str, filled: bool = True) -> Any:
        """A record as an array of uint8; over the mapped file if there is one.

        With `filled` False zeros instead of its contents.
        """
        entry, start = self._find(name)
        if not filled:
            return np.zeros(entry.file_size, np.uint8)
        if self._memory is not None:
            return self._memory[start : start + entry.file_size]
        return self._filled(entry, start)

    def _find(self, name: str) -> tuple[Any, int]:
        """A record's entry, and where its bytes begin."""
        full = f"{self._folder}/{name}"
        entry = self._entries.get(full)
        if entry is None:
            raise _broken(f"file not found: {full}")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
            raise _broken(f"{full} is compressed")
        if entry.flag_bits & 1:
            raise _broken(f"{full} is encrypted")
        place = self._start + entry.header_offset
        try:
            self._file.seek(place)
            header = self._file.read(_LOCAL_HEADER)
            name_size, extra_size = struct.unpack_from("<HH", header, 26)
            local = self._file.read(name_size)
        except _MALFORMED as error:
            raise _broken(f"no header of {full}") from error
        if header[:4] != MAGIC or local != entry.orig_filename.encode():
            raise _broken(f"the header of {full} does not fit the directory")
        start = place + _LOCAL_HEADER + name_size + extra_size
        if start + entry.file_size > self.end:
            raise _broken(f"{full} ends beyond the file")
        return entry, start

    def _filled(self, entry: Any, start: int) -> Any:
        array: Any = np.zeros(entry.file_size, np.uint8)
        self._file.seek(start)
        read_into(self._file, array)
        # 0 is what stands there where no checksum was taken
        if entry.CRC and options.checks_crc32 and zlib.crc32(array) != entry.CRC:
            raise _broken(f"{entry.filename} has another checksum than it was written with")
        return array


class Window:
    """The bytes of a file from `start` to `end`, as a file of its own to read."""

    def __init__(self, file: Any, start: int, end: int) -> None:
        self._file = file
        self._start = start
        self._size = end - start
        self._position = 0

    def seekable(self) -> bool:
        """Whether `seek` works."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to another place."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise ValueError("a place before the archive")
        self._position = origin + offset
        return self._position

    def read(self, count: int = -1) -> bytes:
        """The next bytes, all by default."""
        left = max(self._size - self._position, 0)
        self._file.seek(self._start + self._position)
        data: bytes = self._file.read(left if count < 0 else min(count, left))
        self._position += len(data)
        return data


def end_of_archive(file: Any, start: int) -> int:
    """Where the archive ends that begins at `start`; the end of the file when that is unknown.

    Other things may follow, also other archives. An archive's last record says how long its
    directory is, and where from the archive's beginning.
    """
    size = stop = end_of(file)
    while stop > start:  # backwards, as a rule in one step
        first = max(start, stop - _PIECE)
        file.seek(first)
        data = file.read(stop - first + _END_SIZE - 1)
        place = data.rfind(_END)
        while place >= 0:
            if len(data) - place >= _END_SIZE:
                length, offset, comment = struct.unpack_from("<IIH", data, place + 12)
                end = first + place
                if start + offset + length in (end, end - _LARGE_END_SIZE) or (
                    0xFFFFFFFF in (offset, length) and _has_large_end(file, start, end)
                ):
                    return min(end + _END_SIZE + comment, size)
            place = data.rfind(_END, 0, place + len(_END) - 1)
        stop = first
    return size


def end_of(file: Any) -> int:
    """Where a file ends, which is where it stands afterwards."""
    file.seek(0, os.SEEK_END)  # which gives None for an mmap, and for other people's files
    position: int = file.tell()
    return position


def _has_large_end(file: Any, start: int, end: int) -> bool:
    """Whether the records with 64-bit numbers stand before `end`, and are of this archive."""
    file.seek(max(end - _LOCATOR_SIZE, start))
    locator = file.read(_LOCATOR_SIZE)
    if len(locator) < _LOCATOR_SIZE or locator[:4] != b"PK\x06\x07":
        return False
    return start + struct.unpack_from("<Q", locator, 8)[0] == end - _LARGE_END_SIZE


def pieces(data: Any) -> Iterator[bytes]:
    """Copies of the parts of `data`, which is read once, as other threads may write to it.

    So a checksum is that of what is in the file. A copy begins where a number does, so that no
    number is half an old and half a new one.
    """
    view = memoryview(data)
    for place in range(0, view.nbytes, _PIECE):
        yield bytes(view[place : place + _PIECE])


def write_all(file: Any, data: Any) -> int:
    """Write all of `data` to a file, which may take less at a time; returns how much it was."""
    rest = memoryview(data).cast("B")
    count = rest.nbytes
    while rest.nbytes:
        written = file.write(rest)
        rest = rest[rest.nbytes if written is None else written :]
    return count


def read_into(file: Any, array: Any) -> None:
    """Fill an array of bytes from a file; EOFError when it is too short."""
    rest = memoryview(array)
    into = getattr(file, "readinto", None)
    while rest.nbytes:
        count = None
        if into is not None:
            with suppress(io.UnsupportedOperation):
                count = into(rest)
        if count is None:
            into = None
            data = file.read(min(rest.nbytes, 1 << 24))
            count = len(data)
            rest[:count] = data
        if not count:
            raise EOFError(
                f"unexpected EOF, expected {rest.nbytes} more bytes. The file might be corrupted."
            )
        rest = rest[count:]


def _broken(reason: str) -> RuntimeError:
    return RuntimeError(
        f"PytorchStreamReader failed reading zip archive: {reason}. The checkpoint is damaged, or "
        "was not written by save()."
    )
