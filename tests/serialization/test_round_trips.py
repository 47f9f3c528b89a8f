"""Checkpoints from PyTorch to here and from here to PyTorch, in both formats."""

from __future__ import annotations

import io
import pickle
import warnings
import zipfile

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.serialization.describe import describe
from tests.serialization.table import TABLE


def made(name, library):
    """A row of the table, with our tensors on the device under test."""
    if library is torch or DEVICE == "cpu":
        return TABLE[name](library)
    with tlc.device(DEVICE):
        return TABLE[name](library)


def written(library, value, **options):
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its own TypedStorage
        library.save(value, stream, **options)
    stream.seek(0)
    return stream


def loaded(library, stream, **options):
    if library is torch and DEVICE != "cpu":
        options.setdefault("map_location", "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return library.load(stream, **options)


FORMATS = {
    "zip": {},
    "zip_4": {"pickle_protocol": 4},
    "legacy": {"_use_new_zipfile_serialization": False},
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("form", ("zip", "legacy"))
def test_from_pytorch(name, form):
    theirs = made(name, torch)
    result = loaded(tlc, written(torch, theirs, **FORMATS[form]))
    assert describe(result) == describe(theirs)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("form", ("zip", "legacy"))
def test_to_pytorch(name, form):
    ours = made(name, tlc)
    data = written(tlc, ours, **FORMATS[form])
    if form == "legacy" and name.startswith(("uint16", "uint32", "uint64")):
        with pytest.raises(AttributeError, match="has no attribute 'dtype'"):
            loaded(torch, data)  # as with the files that PyTorch itself writes of them
        return
    result = loaded(torch, data, weights_only=True)
    assert describe(result) == describe(ours)


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("form", FORMATS)
def test_to_ourselves(name, form):
    ours = made(name, tlc)
    data = written(tlc, ours, **FORMATS[form])
    assert describe(loaded(tlc, data)) == describe(ours)
    data.seek(0)
    assert describe(loaded(tlc, data, weights_only=False)) == describe(ours)


@pytest.mark.parametrize("name", TABLE)
def test_both_libraries_make_the_same(name):
    assert describe(made(name, tlc)) == describe(made(name, torch))


@pytest.mark.parametrize("name", TABLE)
def test_archives_are_alike(name):
    """The same records, aligned alike, and pickles that name the same globals."""
    archives = [zipfile.ZipFile(written(lib, made(name, lib))) for lib in (torch, tlc)]
    names = [[info.filename for info in archive.infolist()] for archive in archives]
    assert names[0] == names[1]
    assert archives[1].testzip() is None
    for record in names[0]:
        if "/data/" in record or record.endswith(("version", "alignment", "byteorder")):
            theirs, ours = (archive.read(record) for archive in archives)
            assert ours == theirs
    file = archives[1].fp
    for info in archives[1].infolist():
        file.seek(info.header_offset + 26)
        header = file.read(4)
        sizes = int.from_bytes(header[:2], "little") + int.from_bytes(header[2:], "little")
        assert (info.header_offset + 30 + sizes) % 64 == 0


def test_names_of_archives(tmp_path):
    for name in ("model.pt", "model.tar.pth", "model"):
        for library in (tlc, torch):
            library.save({"a": library.ones(2)}, tmp_path / name)
            archive = zipfile.ZipFile(tmp_path / name)
            folders = {record.partition("/")[0] for record in archive.namelist()}
            assert folders == {name.rpartition(".")[0] or name}
            assert describe(tlc.load(tmp_path / name)) == describe({"a": tlc.ones(2)})
            assert describe(torch.load(str(tmp_path / name))) == describe({"a": torch.ones(2)})


def test_a_view_of_other_dtype_is_refused():
    for library in (torch, tlc):
        x = library.ones(3)
        with pytest.raises(RuntimeError, match="view the same data as different types"):
            library.save([x, x.view(library.int32)], io.BytesIO())


def test_writes_reach_all_views():
    x = tlc.arange(6.0).view(2, 3)
    whole, row = tlc.load(written(tlc, [x, x[1]]))
    row.zero_()
    assert whole.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert whole._version == row._version == 1


def test_several_in_one_file():
    """The older format allows for one checkpoint behind the other."""
    stream = io.BytesIO()
    for number in range(3):
        tlc.save([tlc.ones(2) * number], stream, _use_new_zipfile_serialization=False)
    for library in (tlc, torch):
        stream.seek(0)
        for number in range(3):
            assert library.load(stream)[0].tolist() == [number, number]


def test_not_from_the_start():
    stream = io.BytesIO(b"heading")
    stream.seek(0, io.SEEK_END)
    tlc.save([tlc.ones(2)], stream)
    for library in (tlc, torch):
        stream.seek(7)
        assert library.load(stream)[0].tolist() == [1, 1]


def test_files_without_checksums(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"a": torch.ones(3)}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert tlc.load(tmp_path / "a.pt")["a"].tolist() == [1, 1, 1]


def test_lazy_conjugates_of_pytorch():
    x = torch.tensor([1 + 2j, 3 - 1j])
    assert tlc.load(written(torch, x.conj())).tolist() == [1 - 2j, 3 + 1j]
    assert tlc.load(written(torch, x.conj().imag)).tolist() == [-2, 1]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_bare_storages():
    """PyTorch gives bytes as a typed storage of uint8."""
    for source in (torch, tlc):
        for value in (source.arange(3.0).untyped_storage(), source.arange(3.0).storage()):
            results = [loaded(library, written(source, value)) for library in (torch, tlc)]
            assert results[0].tolist() == results[1].tolist() == value.tolist()


def test_views_of_bytes_in_ourselves():
    """A view of another dtype is kept where its memory is saved once."""
    x = tlc.arange(3.0).view(tlc.int32)
    for library in (torch, tlc):
        assert library.load(written(tlc, x)).view(library.float32).tolist() == [0, 1, 2]


def test_other_byte_order(tmp_path):
    """The records of a little-endian file reversed, and called big-endian."""
    values = {
        "a": tlc.arange(4.0),
        "c": tlc.tensor([1 + 2j]),
        "i": tlc.arange(3, dtype=tlc.int16),
        "b": tlc.ones(2, dtype=tlc.bfloat16),
    }
    tlc.save(values, tmp_path / "little.pt")
    sizes = {"data/0": 4, "data/1": 4, "data/2": 2, "data/3": 2}
    with zipfile.ZipFile(tmp_path / "little.pt") as little:
        for recorded in (True, False):
            with zipfile.ZipFile(tmp_path / "big.pt", "w") as big:
                for info in little.infolist():
                    data, name = little.read(info), info.filename.partition("/")[2]
                    if name in sizes:
                        size = sizes[name]
                        pieces = [data[n : n + size][::-1] for n in range(0, len(data), size)]
                        data = b"".join(pieces)
                    if name == "byteorder":
                        data = b"big"
                    if name != "byteorder" or recorded:
                        big.writestr(f"big/{name}", data)
            for library in (torch, tlc):
                place = library.serialization
                if not recorded:
                    place.set_default_load_endianness(place.LoadEndianness.BIG)
                try:
                    result = library.load(tmp_path / "big.pt")
                finally:
                    place.set_default_load_endianness(None)
                assert describe(result) == describe(values)


def test_standard_pickles_stay():
    """pickle and copy do not go through checkpoints' names."""
    x = pickle.loads(pickle.dumps(tlc.ones(2)))
    assert b"_rebuild_tensor_v2" not in pickle.dumps(x)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("persistent", [True, False])
@pytest.mark.parametrize("libraries", [(tlc, torch), (torch, tlc), (tlc, tlc)])
def test_buffers(libraries, persistent):
    writer, reader = libraries
    buffer = writer.nn.Buffer(writer.ones(2), persistent=persistent)
    result = loaded(reader, written(writer, buffer))
    assert isinstance(result, reader.nn.Buffer) and result.persistent is persistent
    assert result.tolist() == [1, 1]
