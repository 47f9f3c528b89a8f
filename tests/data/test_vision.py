"""Digits from idx files, their download, and the transforms."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import socket
import struct
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.utils.data import DataLoader
from tensorflow_lite_clone.vision import _download, transforms
from tensorflow_lite_clone.vision._idx import read_idx
from tensorflow_lite_clone.vision.datasets import MNIST, FashionMNIST
from tensorflow_lite_clone.vision.transforms import functional

SHIPPED = Path(__file__).parents[2] / "examples" / "mnist" / "data"
NAMES = [name.removesuffix(".gz") for name, _ in MNIST.resources]


def idx(shape, content=None, magic=None):
    """The bytes of an idx file whose elements count up."""
    size = int(np.prod(shape))
    content = bytes(i % 256 for i in range(size)) if content is None else content
    head = bytes([0, 0, 8, len(shape)]) if magic is None else magic
    return head + struct.pack(f">{len(shape)}I", *shape) + content


def files(n=3, labels=None):
    """The four files of a small set."""
    labels = bytes(range(n)) if labels is None else labels
    images = idx((n, 28, 28))
    return dict(zip(NAMES, [images, idx((len(labels),), labels), images, idx((n,))]))


def write_set(folder, contents=None, zipped=True):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in (contents or files()).items():
        if zipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
        else:
            (folder / name).write_bytes(content)
    return folder


# The shipped digits


@parameterized.expand([(True, 10_000, [5, 0, 4, 1, 9]), (False, 1_000, [7, 2, 1, 0, 4])])
def test_shipped_digits(train, n, first):
    digits = MNIST(SHIPPED, train=train)
    assert len(digits) == n
    assert digits.data.shape == (n, 28, 28) and digits.data.dtype == tlc.uint8
    assert digits.targets.shape == (n,) and digits.targets.dtype == tlc.int64
    assert digits.targets[:5].tolist() == first
    counts = np.bincount(digits.targets.numpy(), minlength=10)
    assert len(counts) == 10 and counts.min() > n // 13
    image, label = digits[0]
    image = np.asarray(image)  # of a PIL image, or an array without Pillow
    assert image.dtype == np.uint8 and image.shape == (28, 28)
    assert type(label) is int and label == first[0]
    assert image.max() > 200 and image[0].max() == 0


def test_shipped_files_are_small_and_reproducible():
    sizes = [(SHIPPED / f"{name}.gz").stat().st_size for name in NAMES]
    assert sum(sizes) < 2_000_000
    for name in NAMES:
        head = (SHIPPED / f"{name}.gz").read_bytes()[:10]
        assert head[4:8] == bytes(4)  # no time stamp


def test_a_batch_of_digits():
    transform = transforms.Compose(
        [transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]
    )
    digits = MNIST(SHIPPED, train=False, transform=transform, target_transform=lambda y: y + 10)
    images, labels = next(iter(DataLoader(digits, batch_size=4)))
    assert images.shape == (4, 1, 28, 28) and images.dtype == tlc.float32
    assert labels.tolist() == [17, 12, 11, 10]
    pixels = torch.from_numpy(digits.data[:4].numpy())[:, None].float().div(255)
    assert images.tolist() == pixels.sub(0.1307).div(0.3081).tolist()


def test_repr():
    digits = MNIST(SHIPPED, train=False, transform=transforms.ToTensor())
    assert repr(digits) == (
        f"Dataset MNIST\n    Number of datapoints: 1000\n    Root location: {SHIPPED}\n"
        "    Split: Test\n    StandardTransform\nTransform: ToTensor()"
    )
    assert digits.class_to_idx["7 - seven"] == 7


# Finding and reading files


@parameterized.expand(
    [
        (kind, place, zipped)
        for kind in (MNIST, FashionMNIST)
        for place in ("", "raw")
        for zipped in (True, False)
    ]
)
def test_places(kind, place, zipped):
    with folder() as root:
        write_set(root / kind.__name__ / "raw" if place else root, zipped=zipped)
        digits = kind(str(root), train=False)
        assert len(digits) == 3
        assert digits.data.numpy().tobytes() == idx((3, 28, 28))[16:]
        assert digits.targets.tolist() == [0, 1, 2]


@contextlib.contextmanager
def folder():
    """A fresh temporary folder (parameterized tests take no fixtures)."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_missing_files(tmp_path):
    with pytest.raises(RuntimeError) as caught:
        MNIST(tmp_path, train=False)
    message = str(caught.value)
    assert "download=True" in message
    for part in ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", "MNIST", "raw"):
        assert part in message
    assert list(tmp_path.iterdir()) == []


DAMAGE = [
    (
        "magic",
        NAMES[0],
        idx((3, 28, 28), magic=b"\0\0\x0d\3"),
        "expected 0x00000803, found 0x00000d03",
    ),
    ("labels for pictures", NAMES[0], idx((3,)), "expected 0x00000803, found 0x00000801"),
    ("nothing", NAMES[0], b"", "found 0x"),
    ("header", NAMES[0], idx((3, 28, 28))[:9], "at least 16 bytes, found 9"),
    ("short", NAMES[0], idx((3, 28, 28))[:-1], "expected 2368 bytes, found 2367"),
    ("long", NAMES[0], idx((3, 28, 28)) + b"x", "expected 2368 bytes, found more"),
    ("huge", NAMES[0], idx((3, 28, 28))[:4] + b"\xff" * 12, "found 16"),
    ("count", NAMES[1], idx((4,)), "has 3 pictures, but .* 4 labels"),
    ("label", NAMES[1], idx((3,), bytes([1, 10, 2])), "has a label 10: expected 0 to 9"),
]


@parameterized.expand(DAMAGE)
def test_damaged_idx_files(_, name, content, text):
    for zipped in (True, False):
        with folder() as root:
            write_set(root, {**files(), name: content}, zipped)
            with pytest.raises(RuntimeError, match=text) as caught:
                MNIST(root)
            assert name in str(caught.value)


@parameterized.expand(
    [
        ("truncated", lambda data: data[:-30]),
        ("not gzip", lambda data: b"<html>not found</html>"),
        ("changed", lambda data: data[:60] + bytes([data[60] ^ 255]) + data[61:]),
        ("empty", lambda data: b""),
    ]
)
def test_damaged_gzip_files(_, damage):
    with folder() as root:
        path = write_set(root) / f"{NAMES[0]}.gz"
        path.write_bytes(damage(gzip.compress(files()[NAMES[0]], mtime=0)))
        with pytest.raises(RuntimeError, match=f"{NAMES[0]}"):
            MNIST(root)


def test_an_unreadable_file(tmp_path):
    with pytest.raises(RuntimeError, match="cannot be read"):
        read_idx(tmp_path / "nothing", 1)


# Downloads


class Server(http.server.ThreadingHTTPServer):
    """A mirror of some files that can be made to fail."""

    def __init__(self, contents, ranges=True, cut=None):
        self.contents = contents
        self.ranges = ranges  # whether it can continue
        self.cut = cut  # sends only so many bytes
        self.requests = []
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.requests.append((self.path, wanted))
        content = server.contents.get(self.path[1:])
        if content is None:
            self.send_error(404)
            return
        start = int(wanted[6:-1]) if wanted and server.ranges else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : server.cut])

    def log_message(self, *_):
        pass


CONTENT = bytes(range(256)) * 1000
MD5 = hashlib.md5(CONTENT).hexdigest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "file.gz"


@pytest.fixture
def part(tmp_path):
    return tmp_path / "file.gz.part"


def test_download(path, part):
    with Server({"file": CONTENT}) as server:
        _download.download([server.url + "file"], path, MD5)
    assert path.read_bytes() == CONTENT
    assert not part.exists()


def test_next_mirror(path):
    with (
        Server({}) as first,
        Server({"file": b"other"}) as second,
        Server({"file": CONTENT}) as last,
    ):
        _download.download([s.url + "file" for s in (first, second, last)], path, MD5)
        assert len(first.requests) == len(second.requests) == len(last.requests) == 1
    assert path.read_bytes() == CONTENT


def test_a_broken_connection_is_continued(path, part):
    with Server({"file": CONTENT}, cut=100_000) as server:
        with pytest.raises(RuntimeError, match="ended after 100000 of 256000 bytes"):
            _download.download([server.url + "file"], path, MD5)
        assert not path.exists()
        assert part.read_bytes() == CONTENT[:100_000]
        server.cut = None
        _download.download([server.url + "file"], path, MD5)
        assert server.requests[-1] == ("/file", "bytes=100000-")
    assert path.read_bytes() == CONTENT
    assert not part.exists()


def test_a_mirror_that_cannot_continue(path, part):
    part.write_bytes(CONTENT[:1000])
    with Server({"file": CONTENT}, ranges=False) as server:
        _download.download([server.url + "file"], path, MD5)
    assert path.read_bytes() == CONTENT


@parameterized.expand([("other", b"x" * 1000), ("complete", CONTENT), ("longer", CONTENT + b"x")])
def test_old_parts(_, old):
    with folder() as root, Server({"file": CONTENT}) as server:
        path, part = root / "file.gz", root / "file.gz.part"
        part.write_bytes(old)
        _download.download([server.url + "file"], path, MD5)
        assert path.read_bytes() == CONTENT
        assert not part.exists()


def test_wrong_checksum(path, part):
    with (
        Server({"file": b"something else"}) as server,
        pytest.raises(RuntimeError, match=f"expected MD5 {MD5}, found"),
    ):
        _download.download([server.url + "file"], path, MD5)
    assert not path.exists() and not part.exists()


def test_two_at_once(path):
    with Server({"file": CONTENT}) as server:
        threads = [
            threading.Thread(target=_download.download, args=([server.url + "file"], path, MD5))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.requests) == 1
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == ["file.gz"]


def small_mnist(url):
    """MNIST as if its three digits were published at `url`; the class, and what to serve."""
    packed = {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in files().items()}

    class Small(MNIST):
        mirrors = [url]
        resources = [(name, hashlib.md5(data).hexdigest()) for name, data in packed.items()]

    Small.__name__ = "MNIST"
    return Small, packed


def test_download_a_dataset(tmp_path):
    with Server({}) as server:
        kind, server.contents = small_mnist(server.url)
        digits = kind(tmp_path, download=True)
        assert digits.targets.tolist() == [0, 1, 2]
        assert len(server.requests) == 4
        kind(tmp_path, train=False, download=True)
        assert len(server.requests) == 4  # nothing is fetched twice
    assert sorted(p.name for p in (tmp_path / "MNIST" / "raw").iterdir()) == sorted(
        f"{name}.gz" for name in NAMES
    )


def test_offline(tmp_path):
    with socket.socket() as closed:  # a port nobody listens on
        closed.bind(("127.0.0.1", 0))
        kind, _ = small_mnist(f"http://127.0.0.1:{closed.getsockname()[1]}/")
        with pytest.raises(RuntimeError) as caught:
            kind(tmp_path, download=True)
    message = str(caught.value)
    for name in NAMES:
        assert f"{name}.gz" in message
    assert str(tmp_path / "MNIST" / "raw") in message and "refused" in message
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_shipped_digits_need_no_download():
    assert len(MNIST(SHIPPED, download=True)) == 10_000
    assert not (SHIPPED / "MNIST").exists()


# Transforms


@parameterized.expand(
    [
        ("grey", np.arange(12, dtype=np.uint8).reshape(3, 4)),
        ("colour", np.arange(36, dtype=np.uint8).reshape(3, 4, 3)),
        ("floats", np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)),
        ("doubles", np.ones((2, 2, 2))),
        ("flipped", np.arange(12, dtype=np.uint8).reshape(3, 4)[::-1, ::-1]),
        ("all values", np.arange(256, dtype=np.uint8).reshape(16, 16)),
    ]
)
def test_to_tensor(_, picture):
    before = picture.copy()
    tensor = transforms.ToTensor()(picture)
    planes = picture[:, :, None] if picture.ndim == 2 else picture
    expected = torch.from_numpy(planes.transpose(2, 0, 1).copy())
    if picture.dtype == np.uint8:
        expected = expected.float().div(255)
    assert str(tensor.dtype) == str(expected.dtype)
    assert tensor.tolist() == expected.tolist()
    assert tensor.is_contiguous()
    tensor.zero_()
    assert (picture == before).all()


def test_to_tensor_of_a_pil_image():
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert functional.to_tensor(image.fromarray(pixels)).tolist() == (
        functional.to_tensor(pixels).tolist()
    )
    bits = image.fromarray(pixels[:, :, 0] > 20)
    assert set(functional.to_tensor(bits).flatten().tolist()) == {0.0, 1.0}


@parameterized.expand(
    [((0.1307,), (0.3081,), 1), ((0.5, 0.4, 0.3), (0.1, 0.2, 0.3), 3), (0.5, 2.0, 2)]
)
def test_normalize(mean, std, channels):
    values = np.random.default_rng(0).random((channels, 4, 5), np.float32)
    tensor = tlc.from_numpy(values.copy())
    out = transforms.Normalize(mean, std)(tensor)
    shape = (-1, 1, 1) if isinstance(mean, tuple) else ()
    expected = torch.from_numpy(values)
    expected = expected.sub(torch.tensor(mean).reshape(shape)).div(torch.tensor(std).reshape(shape))
    assert out.tolist() == expected.tolist()
    assert tensor.numpy().tolist() == values.tolist()
    assert functional.normalize(tensor, mean, std, inplace=True) is tensor
    assert tensor.tolist() == out.tolist()


def test_compose_lambda_and_reprs():
    double = transforms.Lambda(lambda x: 2 * x)
    both = transforms.Compose([transforms.ToTensor(), double])
    assert both(np.full((1, 1), 255, np.uint8)).item() == 2
    assert repr(both) == "Compose(\n    ToTensor()\n    Lambda()\n)"
    assert repr(transforms.Normalize((0.5,), (0.25,))) == "Normalize(mean=(0.5,), std=(0.25,))"


@parameterized.expand(
    [
        ("list", TypeError, lambda: functional.to_tensor([1])),
        ("1-d", ValueError, lambda: functional.to_tensor(np.zeros(3))),
        ("4-d", ValueError, lambda: functional.to_tensor(np.zeros((1, 1, 1, 1)))),
        ("array", TypeError, lambda: functional.normalize(np.zeros((1, 1, 1)), [0], [1])),
        ("ints", TypeError, lambda: functional.normalize(tlc.ones(1, 1, 1).int(), [0], [1])),
        ("2-d", ValueError, lambda: functional.normalize(tlc.ones(1, 1), [0], [1])),
        ("zero std", ValueError, lambda: functional.normalize(tlc.ones(1, 1, 1), [0], [0])),
        ("not callable", TypeError, lambda: transforms.Lambda(3)),
    ]
)
def test_errors(_, kind, call):
    with pytest.raises(kind):
        call()
