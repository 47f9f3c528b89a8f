"""Places of storages, mapped files, lists of safe names, settings."""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.serialization import _locations
from tests.autograd.against_torch import same
from tests.device import DEVICE
from tests.tools.markdown import ROOT

LIBRARIES = (tlc, torch)


def saved(value, library=tlc, **options):
    stream = io.BytesIO()
    library.save(value, stream, **options)
    stream.seek(0)
    return stream


def relocated(location: str) -> io.BytesIO:
    """A checkpoint whose storages say that they were elsewhere."""
    stream = io.BytesIO()
    source = zipfile.ZipFile(saved([torch.arange(3.0), torch.ones(1)], torch))
    word = b"X" + struct.pack("<I", len(location)) + location.encode()
    with zipfile.ZipFile(stream, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith("data.pkl"):
                data = data.replace(b"X\x03\x00\x00\x00cpu", word)
            target.writestr(name, data)
    stream.seek(0)
    return stream


def needs_no_gpu() -> None:
    if tlc.cuda.is_available() or torch.cuda.is_available():
        pytest.skip("it is about machines without a GPU")


# -- places -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location", ("cuda:0", "cuda", "xyz", "cpu:0", "hpu", "", "meta:::", "numpy.x")
)
def test_locations_that_are_not_here(location):
    needs_no_gpu()
    messages = []
    for library in LIBRARIES:
        with pytest.raises(RuntimeError) as caught:
            library.load(relocated(location))
        messages.append(str(caught.value))
    if location != "hpu":
        assert messages[0] == messages[1]
    if location.startswith("cuda"):
        assert "Attempting to deserialize object on a CUDA device but" in messages[0]


@pytest.mark.parametrize(
    "map_location",
    (
        "'cpu'",
        "lib.device('cpu')",
        "{'cuda:0': 'cpu'}",
        "lambda storage, location: storage",
        "lambda storage, location: storage.cpu()",
        "lambda storage, location: storage if location == 'cuda:0' else None",
    ),
)
@pytest.mark.parametrize("source", ("zip", "legacy"))
def test_map_location(map_location, source):
    for library in LIBRARIES:
        stream = relocated("cuda:0")
        if source == "legacy":
            stream = saved([torch.arange(3.0)], torch, _use_new_zipfile_serialization=False)
        result = library.load(stream, map_location=eval(map_location, {"lib": library}))
        assert result[0].tolist() == [0, 1, 2]
        assert result[0].device == library.device("cpu")


def test_map_location_is_told_storage_and_place():
    for library in LIBRARIES:
        seen = []

        def remember(storage, location, seen=seen):
            seen.append((type(storage).__name__, storage.nbytes(), location, storage.tolist()[:4]))

        with pytest.raises(RuntimeError):
            library.load(relocated("nowhere:3"), map_location=remember)
        assert seen == [("UntypedStorage", 12, "nowhere:3", [0, 0, 0, 0])]


def test_map_location_to_another_device():
    if DEVICE == "cpu":
        return
    result = tlc.load(relocated("cuda:0"), map_location=DEVICE)
    assert result[0].device.type == DEVICE
    assert result[0].tolist() == [0, 1, 2]
    stream = saved([tlc.ones(2, device=DEVICE)], _use_new_zipfile_serialization=False)
    assert tlc.load(stream)[0].device.type == DEVICE
    stream.seek(0)
    assert tlc.load(stream, map_location="cpu")[0].tolist() == [1, 1]


def test_wrong_map_locations():
    for library in LIBRARIES:
        with pytest.raises(TypeError):
            library.load(relocated("cpu"), map_location=lambda storage, location: 3)
        with pytest.raises(RuntimeError, match="don't know how to restore data location of torch"):
            library.load(relocated("cpu"), map_location="nowhere")


def test_functions_of_places():
    needs_no_gpu()

    def script(lib):
        s, storage = lib.serialization, lib.ones(2, device="cpu").untyped_storage()
        results = [s.location_tag(storage), s.default_restore_location(storage, "cpu") is storage]
        for function, *arguments in (
            (s.default_restore_location, storage, "cuda:1"),
            (s.default_restore_location, storage, "somewhere"),
            (s.validate_cuda_device, "cuda:3"),
            (s.validate_hpu_device, "hpu:1"),
        ):
            with pytest.raises(RuntimeError) as caught:
                function(*arguments)
            results.append(str(caught.value))
        return results

    same(script)


def test_registered_places():
    ours, theirs = _locations._packages, torch.serialization._package_registry
    for library, packages in ((tlc, ours), (torch, theirs)):
        before = list(packages)
        try:
            library.serialization.register_package(
                5,
                lambda storage: "attic" if storage.nbytes() == 12 else None,
                lambda storage, location: storage if location == "attic" else None,
            )
            stream = io.BytesIO()
            library.save([library.ones(3), library.ones(1)], stream)
            assert stream.getvalue().count(b"attic") == 1
            stream.seek(0)
            assert library.load(stream)[0].tolist() == [1, 1, 1]
        finally:
            packages[:] = before
        stream.seek(0)
        with pytest.raises(RuntimeError, match=r"\(tagged with attic\)"):
            library.load(stream)


@pytest.mark.cuda
def test_cuda():
    x = tlc.arange(6.0, device="cuda").view(2, 3)
    for options in ({}, {"_use_new_zipfile_serialization": False}):
        stream = saved([x, x[1]], **options)
        assert b"cuda:0" in stream.getvalue()
        whole, row = tlc.load(stream)
        assert whole.device == x.device
        row.zero_()
        assert whole.tolist() == [[0, 1, 2], [0, 0, 0]]
        stream.seek(0)
        assert tlc.load(stream, map_location="cpu")[0].is_cpu
        stream.seek(0)
        mapped = tlc.load(stream, map_location=lambda storage, _: storage.cuda(0))
        assert mapped[0].tolist() == x.tolist()
        stream.seek(0)
        assert torch.load(stream, map_location="cpu")[0].tolist() == x.tolist()


# -- mapped files -------------------------------------------------------------------------------


def test_mapped_files(tmp_path):
    path, x = tmp_path / "a.pt", tlc.arange(12.0).view(3, 4)
    for library in LIBRARIES:
        library.save({"x": library.arange(12.0).view(3, 4), "none": library.zeros(0)}, path)
        before = path.read_bytes()
        for name in (path, str(path)):
            result = tlc.load(name, mmap=True, map_location="cpu")
            assert result["x"].tolist() == x.tolist()
            result["x"].zero_()  # changes no file
        assert path.read_bytes() == before
        assert library.load(path, mmap=True)["x"].tolist() == x.tolist()


def test_files_mapped_to_be_written(tmp_path):
    for library in LIBRARIES:
        path, place = tmp_path / "a.pt", library.serialization
        library.save([library.zeros(3)], path)
        assert place.get_default_mmap_options() == mmap.MAP_PRIVATE
        with place.set_default_mmap_options(mmap.MAP_SHARED):
            assert place.get_default_mmap_options() == mmap.MAP_SHARED
            x = library.load(path, mmap=True, map_location="cpu")[0]
            x.fill_(3)
            del x
        assert place.get_default_mmap_options() == mmap.MAP_PRIVATE
        with pytest.raises(ValueError, match="expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but"):
            place.set_default_mmap_options(7)
        with zipfile.ZipFile(path) as archive:
            name = next(name for name in archive.namelist() if name.endswith("data/0"))
            start = archive.getinfo(name).header_offset
        assert struct.pack("<fff", 3, 3, 3) in path.read_bytes()[start : start + 256]


def test_mmap_refuses_streams_and_old_files(tmp_path):
    for library in LIBRARIES:
        with pytest.raises(ValueError, match="f must be a file path in order to use the mmap arg"):
            library.load(saved([1]), mmap=True)
        library.save([1], tmp_path / "old.pt", _use_new_zipfile_serialization=False)
        with pytest.raises(RuntimeError, match="mmap can only be used with files saved with"):
            library.load(tmp_path / "old.pt", mmap=True)


def test_a_large_file_is_not_read(tmp_path):
    """Three gigabytes that are a hole in the file but for their ends."""
    path, count = tmp_path / "large.pt", 3 << 28
    torch.save({"x": torch.ones(4)}, path)
    with zipfile.ZipFile(path) as archive:
        records = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    records["data.pkl"] = records["data.pkl"].replace(b"K\x04", b"J" + struct.pack("<i", count))
    directory = []
    with open(path, "wb") as file:
        for name, data in records.items():
            size = 4 * count if name == "data/0" else len(data)
            word, start = f"large/{name}".encode(), file.tell()
            fields = struct.pack("<HHHIII", 0, 0, 33, 0, size, size)  # without a checksum
            file.write(b"PK\x03\x04" + struct.pack("<HH", 20, 0) + fields)
            padding = -(file.tell() + 4 + len(word) + 4) % 64
            extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
            file.write(struct.pack("<HH", len(word), len(extra)) + word + extra)
            file.write(data)
            if name == "data/0":
                file.seek(size - 2 * len(data), os.SEEK_CUR)
                file.write(data)
            directory.append(
                b"PK\x01\x02" + struct.pack("<HHH", 20, 20, 0) + fields
                + struct.pack("<HHHHHII", len(word), 0, 0, 0, 0, 0, start) + word
            )  # fmt: skip
        where = file.tell()
        file.write(b"".join(directory))
        ends = [len(directory)] * 2
        numbers = 0, 0, *ends, file.tell() - where, where, 0
        file.write(b"PK\x05\x06" + struct.pack("<HHHHIIH", *numbers))
    tracemalloc.start()
    try:
        x = tlc.load(path, mmap=True, map_location="cpu")["x"]
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert x.shape == (count,)
    assert x[:5].tolist() == [1, 1, 1, 1, 0] and x[-5:].tolist() == [0, 1, 1, 1, 1]
    assert os.stat(path).st_blocks * 512 < 10_000_000


# -- the list of safe names -----------------------------------------------------------------------


class Point:
    """A class of a user's."""

    def __init__(self, x):
        self.x = x


class Stateful(Point):
    """One that takes its state by itself."""

    def __getstate__(self):
        return {"kept": self.x}

    def __setstate__(self, state):
        self.x = state["kept"] + 1


def area(value):
    """A function of a user's."""
    return value


def test_safe_globals():
    for library in LIBRARIES:
        place = library.serialization
        place.clear_safe_globals()
        stream = saved([Point(1), Stateful(2), area], library)
        with pytest.raises(pickle.UnpicklingError, match="Please use `torch.serialization.add"):
            library.load(stream)
        with place.safe_globals([Point, Stateful]):
            assert set(place.get_safe_globals()) == {Point, Stateful}
            with place.safe_globals([area]):
                stream.seek(0)
                point, stateful, function = library.load(stream)
                assert (point.x, stateful.x, function) == (1, 3, area)
            stream.seek(0)
            with pytest.raises(pickle.UnpicklingError, match=r"\.area was not an allowed"):
                library.load(stream)
        assert place.get_safe_globals() == []
        named = [(value, f"{__name__}.{value.__name__}") for value in (Stateful, area)]
        place.add_safe_globals([Point, *named])
        stream.seek(0)
        assert library.load(stream)[1].x == 3
        place.clear_safe_globals()
        stream.seek(0)
        with pytest.raises(pickle.UnpicklingError):
            library.load(stream)


def test_blocked_modules_stay_blocked():
    stream = saved(os.getcwd)
    refused = pytest.raises(pickle.UnpicklingError, match=r"whose module \w+ is blocked")
    with tlc.serialization.safe_globals([os.getcwd]), refused:
        tlc.load(stream)


def test_numpy_scalars():
    values = [np.float64(1.5), np.float32(2.5), np.int64(3), np.bool_(True)]
    names = [np.dtype, values[0].__reduce__()[0]]
    names += [type(np.dtype(value.dtype)) for value in values]
    for library in LIBRARIES:
        for reader in LIBRARIES:
            stream = saved(values, library)
            with pytest.raises(pickle.UnpicklingError, match="scalar was not an allowed global"):
                reader.load(stream)
            stream.seek(0)
            with reader.serialization.safe_globals(names):
                result = reader.load(stream)
            assert [(type(v), v) for v in result] == [(type(v), v) for v in values]


def test_unsafe_globals_of_a_file():
    for protocol in (2, 4):
        stream = saved([Point(1), tlc.ones(2), np.float64(1.5), {1}], pickle_protocol=protocol)
        found = []
        for library in LIBRARIES if protocol == 2 else LIBRARIES[:1]:
            stream.seek(0)
            found.append(sorted(library.serialization.get_unsafe_globals_in_checkpoint(stream)))
        assert all(names == found[0] for names in found)
        assert f"{__name__}.Point" in found[0] and len(found[0]) == 3
    with pytest.raises(ValueError, match="Expected input to be a checkpoint returned"):
        tlc.serialization.get_unsafe_globals_in_checkpoint(io.BytesIO(b"no archive"))


def test_weights_only_is_the_default():
    for library in LIBRARIES:
        stream = saved(Point(1), library)
        with pytest.raises(pickle.UnpicklingError):
            library.load(stream)
        for options in ({"weights_only": False}, {"pickle_module": pickle}):
            stream.seek(0)
            assert library.load(stream, **options).x == 1
        stream.seek(0)
        with pytest.raises(RuntimeError, match="Can not safely load weights when explicit"):
            library.load(stream, weights_only=True, pickle_module=pickle)


# -- settings -----------------------------------------------------------------------------------


def test_skip_data():
    for library in LIBRARIES:
        with library.serialization.skip_data():
            stream = saved([library.ones(1000), library.ones(2)[1:]], library)
        assert len(stream.getvalue()) > 4000
        for reader in LIBRARIES:
            stream.seek(0)
            x, y = reader.load(stream)
            assert (x.shape, y.shape, y.storage_offset()) == ((1000,), (1,), 1)
    stream = saved([tlc.ones(3)])
    with tlc.serialization.skip_data():
        assert tlc.load(stream, map_location="cpu")[0].shape == (3,)
    stream.seek(0)
    assert tlc.load(stream, map_location="cpu")[0].tolist() == [1, 1, 1]


def test_skip_data_is_a_matter_of_one_thread():
    """And of the outermost of several blocks, which may be of one object."""

    def saved_elsewhere():
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(saved, [tlc.ones(3)]).result()

    block = tlc.serialization.skip_data()
    with block:
        with block:
            stream = saved_elsewhere()
        skipped = saved([tlc.ones(3)])
    after = saved([tlc.ones(3)])
    for data, values in ((stream, [1, 1, 1]), (skipped, [0, 0, 0]), (after, [1, 1, 1])):
        assert tlc.load(data, map_location="cpu")[0].tolist() == values


def test_settings():
    def script(lib):
        place = lib.serialization
        results = [place.get_default_load_endianness(), place.get_crc32_options()]
        results += [[entry.name, entry.value] for entry in place.LoadEndianness]
        with pytest.raises(TypeError) as caught:
            place.set_default_load_endianness("little")
        results.append(str(caught.value))
        place.set_default_load_endianness(place.LoadEndianness.NATIVE)
        results.append(place.get_default_load_endianness().name)
        place.set_default_load_endianness(None)
        return results, issubclass(place.SourceChangeWarning, Warning)

    same(script)


def test_small_functions():
    class Made:
        __name__, __version__ = "made", "1.10.2"

    def script(lib):
        check = lib.serialization.check_module_version_greater_or_equal
        results = [check(Made, version) for version in ((1, 9), (1, 10, 2), (1, 10, 3), (2,))]
        Made.__version__ = "one.two"
        results.append(check(Made, (1, 2), error_if_malformed=False))
        try:
            check(Made, (1, 2))
        except RuntimeError as error:
            results.append(str(error).partition(" with")[0])
        Made.__version__ = "1.10.2"
        with lib.serialization.mkdtemp() as folder:
            results.append(os.path.isdir(folder))
        return results, os.path.exists(folder)

    same(script)


def test_importing_the_package_imports_none_of_it():
    program = (
        "import sys, numpy, ml_dtypes\n"
        "others = set(sys.modules)\n"
        "import tensorflow_lite_clone as t\n"
        "new = set(sys.modules) - others\n"
        "assert not [m for m in new if 'serialization' in m or m == 'zipfile']\n"
        "assert t.save is t.serialization.save and t.load is t.serialization.load\n"
        "assert {'save', 'load', 'serialization'} <= set(dir(t))\n"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_loading_anything_warns(tmp_path):
    tlc.save([1], tmp_path / "x.pt")
    with pytest.warns(UserWarning, match="weights_only=False can run any code"):
        assert tlc.load(tmp_path / "x.pt", weights_only=False) == [1]


def test_a_file_of_gigabytes_is_mapped(tmp_path):
    """Five gigabytes that are not there until they are read: a file with holes."""
    elements = 5 * 2**28
    with torch.serialization.skip_data():
        torch.save({"big": torch.empty(elements), "small": torch.empty(3)}, tmp_path / "big.pt")
    assert os.path.getsize(tmp_path / "big.pt") > 2**32
    loaded = tlc.load(tmp_path / "big.pt", mmap=True)
    assert loaded["big"].shape == (elements,) and loaded["big"][-1].item() == 0
    assert loaded["small"].tolist() == [0, 0, 0]
    loaded["big"][elements - 1] = 7  # this process alone sees it
    assert tlc.load(tmp_path / "big.pt", mmap=True)["big"][-1].item() == 0
