"""Archives and older files that are damaged, or made to mislead."""

from __future__ import annotations

import contextlib
import io
import pickle
import random
import struct
import tarfile
import warnings
import zipfile
import zlib

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.serialization.describe import describe
from tests.serialization.pickles import STORAGE, integer, tensor, text


def zipped(compression=zipfile.ZIP_STORED, folder="archive/", data=bytes(16)) -> io.BytesIO:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        file.writestr(f"{folder}data.pkl", tensor(0, (4,), (1,)))
        file.writestr(f"{folder}byteorder", b"little")
        file.writestr(f"{folder}data/0", data)
        file.writestr(f"{folder}version", b"3\n")
    stream.seek(0)
    return stream


def test_an_archive_of_another_writer():
    assert tlc.load(zipped()).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("compression", (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
def test_compressed_records_are_refused(compression):
    with pytest.raises(RuntimeError, match="is compressed|larger than the file"):
        tlc.load(zipped(compression, data=bytes(100)))


def test_a_compressed_record_that_says_it_is_stored():
    data = bytearray(zipped(zipfile.ZIP_DEFLATED, data=bytes(10_000_000)).getvalue())
    place = -1
    while (place := data.find(b"PK\x01\x02", place + 1)) >= 0:
        data[place + 10 : place + 12] = b"\0\0"
    with pytest.raises(RuntimeError, match="zip archive"):
        tlc.load(io.BytesIO(data))


@pytest.mark.parametrize("folder", ("../", "../../tmp/", "/etc/", "C:\\", "a/b/", ""))
def test_nothing_is_written_or_read_elsewhere(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(RuntimeError):
        tlc.load(zipped(folder=folder))
    assert list(tmp_path.iterdir()) == [] and not (tmp_path.parent / "data.pkl").exists()


def test_two_records_of_one_name():
    stream = zipped()
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(stream, "a") as file:
        file.writestr("archive/data/0", bytes(16))
    stream.seek(0)
    with pytest.raises(RuntimeError, match="two records have one name"):
        tlc.load(stream)
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), stream)
    stream.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):  # its code is compressed
        tlc.load(stream)


def test_records_that_share_their_bytes():
    """A directory that shows the same large record many times."""
    data = zipped(data=bytes(1000)).getvalue()
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entries, place = [], start
    while place < end:
        size = 46 + sum(struct.unpack_from("<HHH", data, place + 28))
        entries.append(data[place : place + size])
        place += size
    large = next(entry for entry in entries if b"data/0" in entry)
    more = [large.replace(b"data/0", b"data/%d" % n) for n in range(1, 10)]
    directory = b"".join(entries + more)
    trailer = bytearray(data[end:])
    struct.pack_into("<HHII", trailer, 8, *[len(entries + more)] * 2, len(directory), start)
    with pytest.raises(RuntimeError, match="records are larger than the file"):
        tlc.load(io.BytesIO(data[:start] + directory + trailer))


def test_torchscript_is_told():
    stream = zipped()
    with zipfile.ZipFile(stream, "a") as file:
        file.writestr("archive/constants.pkl", b"N.")
    stream.seek(0)
    with pytest.raises(RuntimeError, match="TorchScript"):
        tlc.load(stream)


def test_the_oldest_format_is_told():
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as file:
        file.addfile(tarfile.TarInfo("storages"))
    stream.seek(0)
    with pytest.raises(RuntimeError, match=r"legacy \.tar format"):
        tlc.load(stream)


def checkpoint(**options) -> tuple[bytes, object]:
    """A checkpoint's bytes, and what is in it."""
    value = {"a": tlc.arange(12.0).view(3, 4), "n": [1, 2.5, "x"], "b": tlc.ones(3).bool()}
    stream = io.BytesIO()
    tlc.save(value, stream, **options)
    return stream.getvalue(), describe(value)


ERRORS = (pickle.UnpicklingError, RuntimeError, EOFError, ValueError)


def test_truncated_archives():
    data, _ = checkpoint()
    for size in sorted({*range(0, len(data), 37), *range(len(data) - 60, len(data))}):
        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            tlc.load(io.BytesIO(data[:size]))


def test_truncated_legacy_files():
    data, _ = checkpoint(_use_new_zipfile_serialization=False)
    for size in range(len(data)):
        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            tlc.load(io.BytesIO(data[:size]))


@pytest.mark.parametrize("seed", range(100))
def test_flipped_bits(seed):
    """A checksum stands over all that is read, so a damaged archive is never silently wrong."""
    data, expected = checkpoint()
    damaged = bytearray(data)
    place = random.Random(seed).randrange(8 * len(data))
    damaged[place // 8] ^= 1 << place % 8
    try:
        result = tlc.load(io.BytesIO(damaged))
    except ERRORS:
        return
    assert describe(result) == expected


def test_every_flip_in_the_contents_is_noticed():
    data, _ = checkpoint()
    file = zipfile.ZipFile(io.BytesIO(data))
    for name in ("archive/data.pkl", "archive/data/0", "archive/data/1"):
        start = data.index(file.read(name))
        for place in range(start, start + file.getinfo(name).file_size):
            damaged = bytearray(data)
            damaged[place] ^= 4
            with pytest.raises(RuntimeError, match="checksum"):
                tlc.load(io.BytesIO(damaged))


@pytest.mark.parametrize("seed", range(30))
def test_flipped_bits_of_legacy_files(seed):
    """They have no checksums: a flip may change a value, but nothing breaks."""
    data, _ = checkpoint(_use_new_zipfile_serialization=False)
    damaged = bytearray(data)
    place = random.Random(seed).randrange(8 * len(data))
    damaged[place // 8] ^= 1 << place % 8
    with contextlib.suppress(*ERRORS):
        tlc.load(io.BytesIO(damaged))


def test_other_errors():
    for data in (b"", b"garbage", b"PK\x03\x04garbage", b"\x80", b"."):
        with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
            tlc.load(io.BytesIO(data))
    with pytest.raises(EOFError):
        tlc.load(io.BytesIO())
    with pytest.raises(FileNotFoundError):
        tlc.load("/no/such/file")
    with pytest.raises(AttributeError, match="You can only torch.load from a file that is seekab"):
        tlc.load(3)
    with pytest.raises(RuntimeError, match="Invalid magic number; corrupt file"):
        tlc.load(io.BytesIO(pickle.dumps(5, 2)))


def test_files_in_legacy_format_that_promise_much():
    """A storage of terabytes is not made before its bytes are seen to be there."""
    parts = [pickle.dumps(value, 2) for value in (0x1950A86A20F9469CFC6C, 1001, {})]
    head = STORAGE % (text("storage"), text("0"), text("cpu"))
    head = head.replace(b"K\x04tQ", integer(2**40) + b"NtQ")
    stream = io.BytesIO(b"".join(parts) + b"\x80\x02" + head + b"K\x00))\x89}tR.")
    with pytest.raises(RuntimeError, match="storages are larger than the file"):
        tlc.load(stream)


def test_endless_headers_of_legacy_files():
    """Headers whose text would have no end, in the places of version and keys."""
    endless = b"\x80\x02)" + b"".join([b"q%ch%c\x86" % (n, n) for n in range(60)])
    magic, version, system = [pickle.dumps(v, 2) for v in (0x1950A86A20F9469CFC6C, 1001, {})]
    for data in (
        endless + b".",
        magic + endless + b".",
        magic + version + system + b"N." + endless + b".",
        magic + version + system + b"N.]" + endless[2:] + b"a.",
    ):
        with pytest.raises(RuntimeError):
            tlc.load(io.BytesIO(data))


def test_checksums_may_be_left_alone():
    data, _ = checkpoint()
    place = data.index(tlc.arange(12.0).numpy().tobytes())
    damaged = data[:place] + b"\xff" + data[place + 1 :]
    assert zlib.crc32(damaged) != zlib.crc32(data)
    place = tlc.serialization
    assert place.get_crc32_options() is True
    place.set_crc32_options(False)
    try:
        assert tlc.load(io.BytesIO(damaged))["a"].shape == (3, 4)
    finally:
        place.set_crc32_options(True)
    with pytest.raises(RuntimeError, match="checksum"):
        tlc.load(io.BytesIO(damaged))
