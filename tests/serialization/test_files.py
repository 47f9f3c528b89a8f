"""Where files are written: paths, file objects, and what stands there when writing stops."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import random
import struct
import subprocess
import sys
import time
import zipfile

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.serialization.pickles import archive
from tests.tools.markdown import ROOT


def test_kinds_of_files(tmp_path):
    x = tlc.arange(3.0)
    for name in (tmp_path / "a.pt", str(tmp_path / "b.pt")):
        tlc.save(x, name)
        assert tlc.load(name).tolist() == [0, 1, 2]
    with open(tmp_path / "c.pt", "w+b") as file:
        tlc.save(x, file)
        file.seek(0)
        assert tlc.load(file).tolist() == [0, 1, 2]
    with open(tmp_path / "d.pt", "wb", buffering=0) as file:
        tlc.save(x, file)
    assert tlc.load(tmp_path / "d.pt").tolist() == [0, 1, 2]


class OnlyWrites:
    """A stream that can do nothing else."""

    def __init__(self):
        self.data = bytearray()

    def write(self, data):
        self.data += data
        return len(data)


class OnlyReads:
    """A stream without `readinto`."""

    def __init__(self, data):
        stream = io.BytesIO(data)
        self.read, self.seek, self.tell = stream.read, stream.seek, stream.tell
        self.readline = stream.readline


@pytest.mark.parametrize("form", ({}, {"_use_new_zipfile_serialization": False}))
def test_plain_streams(form):
    stream = OnlyWrites()
    tlc.save([tlc.arange(3.0)], stream, **form)
    assert tlc.load(OnlyReads(bytes(stream.data)))[0].tolist() == [0, 1, 2]
    assert torch.load(io.BytesIO(stream.data))[0].tolist() == [0, 1, 2]


def test_save_and_load_invalid_files_raise(tmp_path):
    for library in (tlc, torch):
        with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like"):
            library.save([], 3)
        with pytest.raises(RuntimeError, match=r"Parent directory \S+no does not exist."):
            library.save([], tmp_path / "no" / "a.pt")
    with pytest.raises(IsADirectoryError):
        tlc.save([], tmp_path)


def test_permissions_and_links_stay(tmp_path):
    path, link = tmp_path / "a.pt", tmp_path / "link.pt"
    before = os.umask(0o027)
    try:
        tlc.save([1], path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    tlc.save([2], link)
    assert link.is_symlink() and tlc.load(path) == [2]
    assert path.stat().st_mode & 0o777 == 0o604


def test_save_writes_to_devices_in_place():
    tlc.save([1], os.devnull)


def test_records_with_long_headers(tmp_path, monkeypatch):
    """Those of more than two gigabytes have them; here of more than a few kilobytes."""
    path = tmp_path / "a.pt"
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1 << 12)
    tlc.save({"large": tlc.arange(5000.0), "small": tlc.arange(3.0)}, path)
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        for name, long in {"a/data/0": True, "a/data/1": False}.items():
            info = archive.getinfo(name)
            file.seek(info.header_offset + 26)
            sizes = struct.unpack("<HH", file.read(4))
            assert (info.header_offset + 30 + sum(sizes)) % 64 == 0
            extra = file.read(sum(sizes))[len(name) :]
            assert extra[:2] == b"FB" and (b"\1\0\x10\0" in extra) == long
    for library in (tlc, torch):
        for options in ({}, {"mmap": True}):
            result = library.load(path, map_location="cpu", **options)
            assert result["large"].tolist() == list(range(5000))
            assert result["small"].tolist() == [0, 1, 2]


class Fails:
    """Cannot be pickled."""

    def __reduce__(self):
        raise ZeroDivisionError


def test_an_error_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    tlc.save(["old"], path)
    with pytest.raises(ZeroDivisionError):
        tlc.save([tlc.ones(3), Fails()], path)

    def broken(*arguments):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="the disk is full"):
        tlc.save(["new"], path)
    monkeypatch.undo()
    assert tlc.load(path) == ["old"]
    assert os.listdir(tmp_path) == ["a.pt"]


WRITER = """
import os, sys
import tensorflow_lite_clone as tlc
path = sys.argv[1]
tlc.save({"number": 0, "x": tlc.zeros(50_000)}, path)
while True:
    command = sys.stdin.readline()
    child = os.fork()
    if not child:
        os.write(1, b"ready\\n")
        number = int(command)
        while True:
            number += 1
            tlc.save({"number": number, "x": tlc.full((50_000,), float(number % 1000))}, path)
    os.write(1, b"%d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the writer forks")
def test_killed_a_hundred_times(tmp_path):
    """A writer killed at any moment leaves a whole checkpoint, the old one or the new one."""
    path, draw, last = tmp_path / "a.pt", random.Random(0), 0
    command = [sys.executable, "-c", WRITER, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, text=True, **pipes) as writer:
        try:
            for _ in range(100):
                writer.stdin.write(f"{last}\n")
                writer.stdin.flush()
                answers = {writer.stdout.readline().strip() for _ in range(2)}
                (child,) = answers - {"ready"}
                time.sleep(draw.uniform(0, 0.03))
                os.kill(int(child), 9)
                assert writer.stdout.readline() == "dead\n"
                result = tlc.load(path)
                number, x = result["number"], result["x"]
                assert number >= last
                assert (x == number % 1000).all()
                last = number
        finally:
            writer.kill()
    assert last > 0  # some were written between the kills
    assert len(os.listdir(tmp_path)) <= 2  # what the last kill left: the next save removes it
    assert torch.load(path)["number"] == last


def test_names_for_files(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"PK\x03\x04...")
    for lib in (tlc, torch):
        names = lib.serialization
        with names._open_file_like(path, "rb") as file:
            assert names._is_zipfile(file) and file.tell() == 0
        assert file.closed
        other = io.BytesIO(b"abcdef")
        with names._open_file_like(other, "rb") as file:
            assert file is other and not names._is_zipfile(file)
        assert not other.closed
        assert names.DEFAULT_PROTOCOL == 2
        assert names.MAP_LOCATION is not None


class Minimal:
    """A file that does what PyTorch asks of one, and whose `seek` says nothing."""

    def __init__(self, data):
        self._file = io.BytesIO(data)
        self.tell = self._file.tell
        self.read = self._file.read

    def seek(self, *place):
        self._file.seek(*place)


class CannotReadInto(io.BytesIO):
    def readinto(self, buffer):
        raise io.UnsupportedOperation("readinto")


class InPieces(io.BytesIO):
    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:3])


def mapped(data):
    memory = mmap.mmap(-1, len(data))
    memory[:] = data
    return memory


@pytest.mark.parametrize("form", ({}, {"_use_new_zipfile_serialization": False}))
@pytest.mark.parametrize("kind", (Minimal, CannotReadInto, InPieces, mapped))
def test_kinds_of_file_objects(kind, form):
    stream = io.BytesIO()
    torch.save({"x": torch.arange(5.0)}, stream, **form)
    assert tlc.load(kind(stream.getvalue()))["x"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("form", ({}, {"_use_new_zipfile_serialization": False}))
def test_a_file_that_is_open_as_text(tmp_path, form):
    tlc.save(tlc.ones(2), tmp_path / "a.pt", **form)
    with open(tmp_path / "a.pt", encoding="latin1") as file, pytest.raises(TypeError, match="text"):
        tlc.load(file)


def test_a_name_that_is_no_text(tmp_path):
    """Names of files can be any bytes, which Python shows as surrogates."""
    path = os.path.join(tmp_path, os.fsdecode(b"\xff\xfe.pt"))
    try:
        open(path, "wb").close()
    except OSError as error:
        pytest.skip(f"this file system has no such names: {error}")
    tlc.save(tlc.arange(3.0), path)
    assert tlc.load(path, mmap=True).tolist() == torch.load(path).tolist() == [0, 1, 2]


@pytest.mark.parametrize("form", ({}, {"_use_new_zipfile_serialization": False}))
def test_arguments_of_the_unpickler(form):
    stream = io.BytesIO()
    tlc.save(tlc.ones(2), stream, **form)
    stream.seek(0)
    assert tlc.load(stream, encoding="latin1").tolist() == [1, 1]
    stream.seek(0)
    with pytest.raises(TypeError, match="nonsense"):
        tlc.load(stream, nonsense=1)


@pytest.mark.parametrize("encoding", ("latin1", "bytes"))
def test_text_of_python_2(encoding):
    pickled = b"\x80\x02U\x02\xe9x."
    value = tlc.load(archive(pickled), encoding=encoding)
    assert value == pickle.loads(pickled, encoding=encoding)
