"""Fetching files: checked, all or nothing, and continued where an earlier try ended.

Imported when a download is asked for: HTTP is a heavy import.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # not a POSIX system: two downloads of one file at once are then unguarded
    fcntl = None  # type: ignore[assignment]

TIMEOUT = 30.0  # seconds without a byte
CHUNK = 1 << 16
RANGE_NOT_SATISFIABLE = 416
PARTIAL_CONTENT = 206


class Unfit(Exception):
    """A mirror gave something else than the file that was asked for."""


def md5_of(path: Path) -> str:
    """The hexadecimal MD5 sum of a file's contents (a guard against accidents, not attacks)."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[BinaryIO]:
    """Opens a file for appending, alone: other processes wait until it is closed."""
    while True:
        with path.open("ab") as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            # While this process waited, another one may have moved the file to its final place.
            if _lies_at(file, path):
                yield file
                return


def _lies_at(file: BinaryIO, path: Path) -> bool:
    """Whether an open file still is the one of that name; asked in one step, as others move it."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def empty(file: BinaryIO) -> None:
    """Drops a file's contents."""
    file.seek(0)
    file.truncate()


def settle(file: BinaryIO, part: Path, path: Path | None) -> None:
    """Moves the open file `part` to `path`, or removes it."""
    if fcntl is None:
        file.close()  # Windows moves only closed files
    if path is None:
        part.unlink()
    else:
        os.replace(part, path)


@contextlib.contextmanager
def progress(title: str, start: int, total: int | None) -> Iterator[Any]:
    """A function that is told how many bytes came; it draws a bar if tqdm is installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        print(f"Downloading {title}", file=sys.stderr)
        yield lambda count: None
        return
    with tqdm(desc=title, initial=start, total=total, unit="B", unit_scale=True) as bar:
        yield bar.update


def append(url: str, file: BinaryIO) -> None:
    """Adds to an open file what it lacks of a URL's contents."""
    start = file.tell()
    request = urllib.request.Request(url, headers={"User-Agent": "tensorflow_lite_clone"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urllib.request.urlopen(request, timeout=TIMEOUT) as reply:
        if start and reply.status != PARTIAL_CONTENT:
            start = 0  # the server sends it all again
            empty(file)
        length = reply.headers.get("Content-Length")
        total = start + int(length) if length and length.isdigit() else None
        with progress(url, start, total) as count:
            while chunk := reply.read(CHUNK):
                file.write(chunk)
                count(len(chunk))
    file.flush()
    if total is not None and file.tell() < total:
        raise Unfit(f"the connection ended after {file.tell()} of {total} bytes")


def fetch_from(url: str, file: BinaryIO, part: Path, md5: str | None) -> None:
    """Completes the open file `part` from one mirror; raises Unfit if its checksum is wrong."""
    had = file.tell()
    try:
        append(url, file)
    except urllib.error.HTTPError as error:
        error.close()
        if not had or error.code != RANGE_NOT_SATISFIABLE:
            raise
        # The part is as long as the whole or longer: its checksum decides.
    seen = md5_of(part) if md5 else None
    if seen == md5:
        return
    size = file.tell()
    empty(file)
    if had:
        fetch_from(url, file, part, md5)  # the old part was of something else: once more from 0
        return
    raise Unfit(f"expected MD5 {md5}, found {seen} ({size} bytes)")


def download(urls: Sequence[str], path: Path, md5: str | None = None) -> None:
    """Fetches a file from the first mirror that has it.

    The file appears at `path` when it is complete and its checksum is right; until then it grows
    in `path` + ".part", where a later call goes on. Raises RuntimeError, which says what each
    mirror answered, if no mirror has it.
    """
    part = path.with_name(path.name + ".part")
    complaints = []
    with exclusive(part) as file:
        if path.exists():  # another process was faster
            settle(file, part, None)
            return
        for url in urls:
            try:
                fetch_from(url, file, part, md5)
            except (OSError, http.client.HTTPException, Unfit) as error:
                complaints.append(f"{url}: {error}")
                continue
            settle(file, part, path)
            return
        if not file.tell():
            settle(file, part, None)
    raise RuntimeError("no mirror could be read:\n  " + "\n  ".join(complaints))
