"""Small files that claim or unpack to much: refused within bounded memory, time and disk."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import struct
import subprocess
import sys
import tarfile
import zipfile

import numpy as np
import pytest

from tests.tools.markdown import ROOT

MANY = 1 << 32
MEMORY = 150 << 20  # bytes beyond what the imports take


def packed(compress, head, mebibytes):
    """Bytes and then many zeros, compressed piece by piece: pieces may follow each other."""
    return compress(head) + compress(bytes(1 << 20)) * mebibytes


def tar_header(name, size, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def write_all(folder):
    """The files, by what reads them."""
    (folder / "idx_gz_of_zeros.gz").write_bytes(packed(gzip.compress, b"", 600))
    huge = b"\0\0\x08\3" + struct.pack(">3I", 1_000_000, 28, 28)
    (folder / "idx_gz_of_a_claim.gz").write_bytes(gzip.compress(huge))
    (folder / "idx_of_a_claim").write_bytes(b"\0\0\x08\3" + b"\xff" * 12)
    one = b"\0\0\x08\1" + struct.pack(">I", 3) + b"abc"
    (folder / "idx_gz_longer_than_its_header.gz").write_bytes(packed(gzip.compress, one, 600))
    pickles = {
        "bytes": b"\x80\x03B\xff\xff\xff\x7f.",
        "bytes8": b"\x80\x04\x8e" + struct.pack("<Q", MANY) + b".",
        "bytearray8": b"\x80\x05\x96" + struct.pack("<Q", MANY) + b".",
        "text": b"\x80\x02X\xff\xff\xff\x7f.",
        "number": b"\x80\x02\x8b\xff\xff\xff\x7f.",
        "memo": b"\x80\x02Nr\xff\xff\xff\x7f.",
        "frame": b"\x80\x04\x95" + struct.pack("<Q", MANY) + b"N.",
        "array": b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"J\x00\x00\x00\x7f\x85U\x01b\x87R.",
        "class": b"\x80\x02cnumpy\nndarray\nJ\x00\x00\x00\x7f\x85\x85R.",
        "codec": b"\x80\x02c_codecs\nencode\nC\x04abcdX\x03\x00\x00\x00hex\x86R.",
        "dtype": b"\x80\x02cnumpy\ndtype\nX\x07\x00\x00\x00V999999\x85R.",
        # A mebibyte of text that is copied a thousand times.
        "copies": b"\x80\x02X\x00\x00\x10\x00" + b"a" * (1 << 20) + b"q\x000("
        + b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R" * 1000 + b"l.",
    }  # fmt: skip
    for name, content in pickles.items():
        (folder / f"pickle_of_{name}").write_bytes(content)
    for name, module in {"gz": gzip, "xz": lzma, "bz2": bz2}.items():
        (folder / f"zeros.{name}").write_bytes(packed(module.compress, b"", 40))
        header = tar_header("pax", 40 << 20, tarfile.XHDTYPE)
        (folder / f"pax.tar.{name}").write_bytes(packed(module.compress, header, 40))
    with gzip.open(folder / "many.tar.gz", "wb") as file:
        for number in range(9_000):
            file.write(tar_header(f"{number}", 0))
    member = packed(gzip.compress, tar_header("zeros", 60 << 20), 60)
    (folder / "member.tar.gz").write_bytes(member)
    (folder / "claim.tar").write_bytes(tar_header("pax", MANY, tarfile.XHDTYPE))
    with zipfile.ZipFile(folder / "zeros.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(40 << 20))
    header = bytearray(tar_header("sparse", 0, tarfile.GNUTYPE_SPARSE))
    header[483:495] = b"%011o\0" % (8 * 1024**3 - 1)  # its size once it is unpacked
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    (folder / "sparse.tar").write_bytes(bytes(header) + bytes(1024))


READ = """
import json, os, resource, sys
from pathlib import Path
from tensorflow_lite_clone.serialization import _unpacking
from tensorflow_lite_clone.vision._idx import read_idx
from tensorflow_lite_clone.vision.datasets.cifar import read_batch
from tensorflow_lite_clone.vision.datasets.utils import extract_archive

_unpacking.SMALL = 32 << 20  # smaller bombs are as good, and sooner written and read
folder, memory = Path(sys.argv[1]), int(sys.argv[2])
pages = int(Path("/proc/self/statm").read_text().split()[0])
limit = pages * resource.getpagesize() + memory
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for path in sorted(folder.iterdir()):
    name = path.name
    target = folder.parent / "to" / name
    target.parent.mkdir(exist_ok=True)
    try:
        if name.startswith("idx"):
            read_idx(path, 1 if "longer" in name else 3)
        elif name.startswith("pickle"):
            read_batch(str(path))
        else:
            extract_archive(path, target)
        said = "taken"
    except RuntimeError as error:
        said = f"refused: {error}"
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps([name, said, os.path.exists(target)]), flush=True)
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What was said of each file, and whether anything of it was unpacked."""
    resource = pytest.importorskip("resource", reason="memory is limited by setrlimit")
    assert resource.RLIMIT_AS
    folder = tmp_path_factory.mktemp("bombs") / "files"
    folder.mkdir()
    write_all(folder)
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder), str(MEMORY)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return {name: (said, left) for name, said, left in map(json.loads, done.stdout.splitlines())}


def test_all_are_refused(outcomes):
    assert len(outcomes) == 27
    wrong = {name: said for name, (said, _) in outcomes.items() if not said.startswith("refused")}
    assert wrong == {}


def test_nothing_of_them_is_unpacked(outcomes):
    assert [name for name, (_, left) in outcomes.items() if left] == []


def test_well_compressed_archives_are_extracted(tmp_path):
    """Two hundred times its size, or 256 MiB, may a file become."""
    from tensorflow_lite_clone.vision.datasets.utils import extract_archive

    content = np.zeros(8 << 20, np.uint8).tobytes()
    (tmp_path / "file.gz").write_bytes(gzip.compress(content))
    with tarfile.open(tmp_path / "file.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("file")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    with zipfile.ZipFile(tmp_path / "file.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("file", content)
    extract_archive(tmp_path / "file.gz", tmp_path / "plain")
    for ending in ("tar.gz", "zip"):
        extract_archive(tmp_path / f"file.{ending}", tmp_path / ending)
        assert (tmp_path / ending / "file").stat().st_size == len(content)
    assert (tmp_path / "plain").stat().st_size == len(content)


def test_a_batch_of_the_official_kind_is_read(tmp_path):
    """As Python 2 wrote them: protocol 2, and the array's bytes as text of one byte each."""
    from tensorflow_lite_clone.vision.datasets.cifar import read_batch

    content = bytes(range(256)) * 12
    text = b"T" + struct.pack("<i", len(content)) + content
    (tmp_path / "batch").write_bytes(
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\n"
        b"q\x04K\x00\x85q\x05U\x01b\x87Rq\x06(K\x01K\x01M\x00\x0c\x86cnumpy\ndtype\nq\x07U\x02u1"
        b"K\x00K\x01\x87Rq\x08(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        + text
        + b"tbU\x06labelsq\x09]q\x0a(K\x06eu."
    )
    batch = read_batch(str(tmp_path / "batch"))
    assert batch["data"].tobytes() == content and batch["data"].shape == (1, 3072)
    assert batch["labels"] == [6]
    assert pickle.dumps(batch["labels"])
