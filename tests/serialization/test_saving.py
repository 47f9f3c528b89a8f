"""What stands in a file when others write at the same time, a disk is full or a process dies."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import threading

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.core import files
from tests.serialization.describe import describe
from tests.tools.markdown import ROOT

FORMS = {"zip": {}, "legacy": {"_use_new_zipfile_serialization": False}}


@pytest.mark.parametrize("form", FORMS)
def test_while_another_thread_writes(form):
    """Each file can be loaded, and each element is one that was there."""
    x, stop = tlc.zeros(300_000), threading.Event()

    def count():
        while not stop.is_set():
            x.add_(1)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(100):
            stream = io.BytesIO()
            first = x.min().item()
            tlc.save({"x": x}, stream, **FORMS[form])
            last = x.max().item() + 1
            stream.seek(0)
            result = tlc.load(stream, map_location="cpu")["x"]
            assert first <= result.min().item() and result.max().item() <= last
            assert (result == result.floor()).all()
    finally:
        stop.set()
        thread.join()
    stream.seek(0)
    assert torch.load(stream, map_location="cpu")["x"].tolist() == result.tolist()


class Full(io.RawIOBase):
    """A file on a disk with room for some bytes only."""

    def __init__(self, room):
        self.room = room
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        if len(self.data) + len(data) > self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.data += data
        return len(data)


VALUE = {"a": tlc.arange(2000.0), "b": [1, 2, 3]}


@pytest.mark.parametrize("form", FORMS)
def test_full_disks(form, capfd):
    """One error, nothing beside it, and nothing behind what was written before."""
    whole = Full(1 << 20)
    tlc.save(VALUE, whole, **FORMS[form])
    for room in range(0, len(whole.data), 97):
        file = Full(room)
        with pytest.raises(OSError, match="No space left on device") as caught:
            tlc.save(VALUE, file, **FORMS[form])
        assert caught.value.__context__ is None
        assert whole.data.startswith(file.data)
    assert capfd.readouterr() == ("", "")


LIMITED = """
import resource, signal, sys
import tensorflow_lite_clone as tlc

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
path = sys.argv[1]
tlc.save(["old"], path)
for options in ({}, {"_use_new_zipfile_serialization": False}):
    try:
        tlc.save({str(n): tlc.ones(100) for n in range(1000)}, path, **options)
    except OSError as error:
        assert error.filename == path, error
    else:
        raise AssertionError("an error was expected")
try:
    tlc.serialization.save_npz(path, {str(n): tlc.ones(100) for n in range(1000)})
except OSError as error:
    assert error.filename == path, error
assert tlc.load(path) == ["old"]
"""


@pytest.mark.skipif(os.name == "nt", reason="there are no limits of files' sizes")
def test_full_disks_leave_the_old_file(tmp_path):
    path = str(tmp_path / "a.pt")
    command = [sys.executable, "-c", LIMITED, path]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    assert os.listdir(tmp_path) == ["a.pt"]


DIES = """
import os, sys
from tensorflow_lite_clone.serialization._files import opened_to_write
with opened_to_write(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    os.write(1, b"writing\\n")
    sys.stdin.readline()
"""


@pytest.mark.skipif(files.fcntl is None, reason="there are no locks that end with a process")
def test_files_of_dead_writers_go(tmp_path):
    """Of a living one they stay, whatever others save in the folder at that time."""
    path = tmp_path / "of_another.pt"
    command = [sys.executable, "-c", DIES, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as dies:
        try:
            assert dies.stdout.readline() == "writing\n"
            (aside,) = os.listdir(tmp_path)
            for _ in range(3):
                tlc.save([1], tmp_path / "a.pt")
                assert sorted(os.listdir(tmp_path)) == sorted([aside, "a.pt"])
        finally:
            dies.kill()
    (tmp_path / ".other.0123456789ab.tmp").touch()  # of another program
    tlc.save([2], tmp_path / "a.pt")
    assert sorted(os.listdir(tmp_path)) == [".other.0123456789ab.tmp", "a.pt"]
    with subprocess.Popen(command, cwd=ROOT, **pipes) as lives:
        assert lives.stdout.readline() == "writing\n"
        tlc.save([3], tmp_path / "a.pt")
        lives.communicate("go on\n")
    assert path.read_bytes() == b"half"
    assert tlc.load(tmp_path / "a.pt") == [3]


@pytest.mark.skipif(files.fcntl is None, reason="there are no locks that end with a process")
def test_threads_in_one_folder(tmp_path):
    """They remove nothing of each other."""

    def save(number):
        try:
            for count in range(30):
                tlc.save([number, count], tmp_path / f"{number % 3}.pt")
        except Exception as error:
            failed.append(error)

    failed = []
    threads = [threading.Thread(target=save, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(os.listdir(tmp_path)) == ["0.pt", "1.pt", "2.pt"]
    assert all([tlc.load(tmp_path / f"{n}.pt")[1] == 29 for n in range(3)])


def test_long_names_in_many_bytes(tmp_path):
    path = tmp_path / ("\u4e16" * 80 + ".pt")
    tlc.save([1], path)
    assert tlc.load(path) == [1]


@pytest.mark.parametrize("sizes", ((2, 3), (2, 3000), (3000, 2), (0, 2)))
def test_archives_in_one_stream(sizes):
    """The one that begins where the stream stands is loaded, whatever is before and behind it."""
    writers = [torch, tlc] if sizes == (2, 3) else [tlc]  # PyTorch confuses others
    for writer in writers:
        stream, starts = io.BytesIO(), []
        stream.write(b"something else")
        for size in sizes:
            starts.append(stream.tell())
            writer.save({"x": writer.full((size,), float(size))}, stream)
        stream.write(b"more")
        for library in (tlc, torch) if sizes == (2, 3) else (tlc,):
            for start, size in zip(starts, sizes, strict=True):
                stream.seek(start)
                result = library.load(stream)
                assert describe(result) == describe({"x": tlc.full((size,), float(size))})


def test_load_past_the_last_archive_raises():
    """An error, not the last archive once more."""
    stream = io.BytesIO()
    for number in range(2):
        tlc.save([number], stream)
    for library in (tlc, torch):
        stream.seek(0)
        assert library.load(stream) == [0]
        with pytest.raises(Exception, match="Weights only load failed|Invalid magic"):
            library.load(stream)
