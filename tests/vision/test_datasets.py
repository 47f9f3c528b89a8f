"""Datasets beside torchvision's, on small files in the official formats."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.vision import datasets as ours
from tensorflow_lite_clone.vision.datasets import cifar, folder, utils
from tests.vision.pictures import PILS, assert_same, outcome

import torchvision.datasets as theirs  # isort: skip  (the oracle comes first)
import torchvision.datasets.utils as their_utils  # isort: skip

BOTH = (ours, theirs)


def assert_same_samples(here, there):
    """Both datasets have the same length, samples and repr."""
    assert len(here) == len(there)
    for index in range(len(there)):
        assert_same(here[index], there[index])
    assert repr(here) == repr(there)


# CIFAR


def write_cifar(root, kind, per_file=3):
    """The files of a small CIFAR in its official format; the checksums by name."""
    base = root / kind.base_folder
    base.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, *_ in (*kind.train_list, *kind.test_list):
        batch = {"data": rng.integers(0, 256, (per_file, 3072), dtype=np.uint8)}
        batch["labels" if kind.meta["key"] == "label_names" else "fine_labels"] = list(
            range(per_file)
        )
        (base / name).write_bytes(pickle.dumps(batch, protocol=2))
    names = [f"kind {number}" for number in range(10)]
    meta = pickle.dumps({kind.meta["key"]: names}, protocol=2)
    (base / kind.meta["filename"]).write_bytes(meta)
    return {file.name: utils.calculate_md5(file) for file in base.iterdir()}


def signed(kind, sums):
    """torchvision's class with the checksums of our files, as it always checks them."""

    class Signed(kind):
        train_list = [[name, sums[name]] for name, *_ in kind.train_list]
        test_list = [[name, sums[name]] for name, *_ in kind.test_list]
        meta = kind.meta | {"md5": sums[kind.meta["filename"]]}

    Signed.__name__ = kind.__name__
    return Signed


@pytest.mark.parametrize("name", ["CIFAR10", "CIFAR100"])
@pytest.mark.parametrize("train", [True, False])
def test_cifar(tmp_path, name, train):
    sums = write_cifar(tmp_path, getattr(ours, name))
    here = getattr(ours, name)(tmp_path, train=train)
    there = signed(getattr(theirs, name), sums)(tmp_path, train=train)
    assert_same_samples(here, there)
    assert (here.data == there.data).all() and here.data.shape == there.data.shape
    assert here.targets == there.targets and here.classes == there.classes
    assert here.class_to_idx == there.class_to_idx
    for attribute in ("url", "filename", "tgz_md5", "base_folder"):
        assert getattr(here, attribute) == getattr(there, attribute)


def test_cifar_is_not_there(tmp_path):
    with pytest.raises(RuntimeError, match=r"You can use download=True.*cifar-10-batches-py"):
        ours.CIFAR10(tmp_path)


class Bomb:
    """A pickle that would run a command."""

    def __reduce__(self):
        return os.system, ("false",)


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Bomb()),
        pickle.dumps({"data": Bomb(), "labels": []}),
        pickle.dumps([1, 2]),
        pickle.dumps({"data": np.zeros((2, 3), np.uint8), "labels": [1, 2]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.int16), "labels": [1, 2]}),
        pickle.dumps({"data": np.zeros((2, 3072), np.uint8)}),
        b"",
        b"garbage",
    ],
)
def test_damaged_cifar_files(tmp_path, content):
    write_cifar(tmp_path, ours.CIFAR10)
    (tmp_path / ours.CIFAR10.base_folder / "test_batch").write_bytes(content)
    with pytest.raises(RuntimeError, match="test_batch"):
        ours.CIFAR10(tmp_path, train=False)


@pytest.mark.parametrize("protocol", range(2, 6))  # 2 is that of the official files
def test_pickles_of_every_protocol(tmp_path, protocol):
    array = np.arange(4, dtype=np.uint8)
    text = pickle.dumps({"data": array, "names": ["a"]}, protocol=protocol)
    spellings = [b"numpy._core."]
    if protocol < 4:  # later ones write the length of a name before it
        spellings.append(b"numpy.core.")
    for spelling in spellings:
        file = tmp_path / "file"
        file.write_bytes(text.replace(b"numpy._core.", spelling))
        batch = cifar.read_batch(str(file))
        assert (batch["data"] == array).all() and batch["names"] == ["a"]


@pytest.mark.skipif("CIFAR10" not in os.environ, reason="CIFAR10 names no folder of CIFAR-10")
def test_the_official_files():
    pictures = ours.CIFAR10(os.environ["CIFAR10"])
    assert pictures.data.shape == (50_000, 32, 32, 3) and pictures.classes[0] == "airplane"
    assert np.bincount(pictures.targets).tolist() == [5000] * 10


# MNIST's relatives


def write_idx(path, array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    path.write_bytes(head + array.tobytes())


@pytest.mark.parametrize(
    ("name", "arguments", "stem"),
    [
        ("MNIST", {}, ("train", "t10k")),
        ("KMNIST", {}, ("train", "t10k")),
        ("FashionMNIST", {}, ("train", "t10k")),
        ("EMNIST", {"split": "letters"}, ("emnist-letters-train", "emnist-letters-test")),
        ("EMNIST", {"split": "byclass"}, ("emnist-byclass-train", "emnist-byclass-test")),
    ],
)
def test_mnist_and_relatives(tmp_path, name, arguments, stem):
    raw = tmp_path / name / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for part in stem:
        write_idx(raw / f"{part}-images-idx3-ubyte", rng.integers(0, 256, (3, 28, 28), np.uint8))
        write_idx(raw / f"{part}-labels-idx1-ubyte", np.array([1, 2, 3], np.uint8))
    for train in (True, False):
        here, there = (
            getattr(part, name)(tmp_path, train=train, transform=None, **arguments) for part in BOTH
        )
        assert_same_samples(here, there)
        assert here.classes == there.classes and here.class_to_idx == there.class_to_idx
        assert here.raw_folder == there.raw_folder
        assert_same(here.data, there.data)
        assert_same(here.targets, there.targets)
        with pytest.warns(UserWarning, match="renamed"):
            assert here.train_data is here.data


def test_an_unknown_split(tmp_path):
    made = [outcome(lambda part=part: part.EMNIST(tmp_path, "other")) for part in BOTH]
    # The order in torchvision's message is that of a set.
    assert type(made[0]) is type(made[1]) is ValueError
    assert "Unknown value 'other' for argument split. Valid values are {'byclass'" in str(made[0])


def test_emnist_is_unpacked(tmp_path):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for part, array in (("images-idx3", np.zeros((1, 28, 28))), ("labels-idx1", np.ones(1))):
            path = tmp_path / "part"
            write_idx(path, array.astype(np.uint8))
            name = f"gzip/emnist-digits-train-{part}-ubyte.gz"
            file.writestr(name, gzip.compress(path.read_bytes()))

    class Small(ours.EMNIST):
        url = "http://127.0.0.1:9/gzip.zip"  # is not asked, as the file is there
        md5 = hashlib.md5(archive.getvalue()).hexdigest()

    raw = tmp_path / "Small" / "raw"
    raw.mkdir(parents=True)
    (raw / "gzip.zip").write_bytes(archive.getvalue())
    assert Small(tmp_path, "digits", download=True).targets.tolist() == [1]
    assert sorted(file.suffix for file in raw.iterdir()) == [".gz", ".gz"]


# SVHN


def test_svhn(tmp_path):
    loaded = pytest.importorskip("scipy.io")
    content = {"X": np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), np.uint8)}
    content["y"] = np.array([[1], [10], [3], [10]], np.uint8)
    loaded.savemat(tmp_path / "test_32x32.mat", content)
    here = ours.SVHN(tmp_path, split="test")

    class Signed(theirs.SVHN):
        split_list = {"test": [*theirs.SVHN.split_list["test"][:2], None]}

    Signed.__name__ = "SVHN"
    there = Signed(tmp_path, split="test")
    assert_same_samples(here, there)
    assert (here.labels == there.labels).all() and here.labels.tolist() == [1, 0, 3, 0]
    assert ours.SVHN.split_list["train"][1] == theirs.SVHN.split_list["train"][2]


# STL-10


@pytest.mark.parametrize(
    ("split", "folds"),
    [("train", None), ("train", 1), ("test", None), ("unlabeled", None), ("train+unlabeled", None)],
)
def test_stl10(tmp_path, split, folds):
    base = tmp_path / "stl10_binary"
    base.mkdir()
    rng = np.random.default_rng(0)
    for part in ("train", "test", "unlabeled"):
        rng.integers(0, 256, (4, 3, 96, 96), np.uint8).tofile(base / f"{part}_X.bin")
        np.array([1, 10, 3, 2], np.uint8).tofile(base / f"{part}_y.bin")
    (base / "class_names.txt").write_text("airplane\nbird\n")
    (base / "fold_indices.txt").write_text("0 1 \n3 1 \n" * 5)

    class Unsigned(theirs.STL10):
        train_list = [[name, None] for name, _ in theirs.STL10.train_list]
        test_list = [[name, None] for name, _ in theirs.STL10.test_list]

    Unsigned.__name__ = "STL10"
    here, there = (kind(tmp_path, split=split, folds=folds) for kind in (ours.STL10, Unsigned))
    assert_same_samples(here, there)
    assert (here.data == there.data).all() and (here.labels == there.labels).all()
    assert here.classes == there.classes and here.tgz_md5 == there.tgz_md5


def test_stl10_is_not_there(tmp_path):
    with pytest.raises(RuntimeError, match="stl10_binary"):
        ours.STL10(tmp_path)
    with pytest.raises(ValueError, match="folds"):
        ours.STL10(tmp_path, folds=10)


# Folders


@pytest.fixture
def tree(tmp_path):
    """Pictures of two kinds, one of them deeper, and files that are none; an empty kind."""
    for name in ("b/z.png", "b/deep/a.JPG", "a/1.bmp", "a/0.txt"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".txt":
            path.write_text("no picture")
        else:
            PILS["L" if path.suffix == ".png" else "RGB"].save(path)
    (tmp_path / "tree" / "c").mkdir()
    return tmp_path / "tree"


def label_of(number):
    return f"kind {number}"


def test_image_folder(tree):
    from torchvision.transforms import CenterCrop

    options = {"allow_empty": True, "transform": CenterCrop(5), "target_transform": label_of}
    here, there = (part.ImageFolder(str(tree), **options) for part in BOTH)
    assert_same_samples(here, there)
    for name in ("classes", "class_to_idx", "samples", "imgs", "targets", "extensions", "root"):
        assert getattr(here, name) == getattr(there, name)
    assert here[0][0].mode == "RGB" and here.loader is folder.default_loader
    assert here.transforms(PILS["RGB"], 3)[1] == "kind 3"


@pytest.mark.parametrize(
    "text",
    [
        "D.ImageFolder(root)",
        "D.ImageFolder(root + '/a')",
        "D.ImageFolder(root + '/nothing')",
        "D.ImageFolder(root, is_valid_file=lambda path: False)",
        "len(D.ImageFolder(root, is_valid_file=lambda path: path.endswith('txt'), "
        "allow_empty=True))",
        "D.DatasetFolder(root, str)",
        "D.DatasetFolder(root, str, extensions=('.bmp',), is_valid_file=bool)",
        "D.DatasetFolder(root, str, extensions=('.bmp', '.png'), allow_empty=True).samples",
        "D.folder.make_dataset(root, {}, '.png')",
        "D.folder.make_dataset(root, {'b': 7}, '.png')",
        "D.folder.find_classes(root)",
        "D.folder.has_file_allowed_extension('A.PNG', ('.png',))",
        "D.folder.is_image_file('A.PNX')",
        "D.folder.IMG_EXTENSIONS",
        "D.DatasetFolder.make_dataset(root, None)",
        "D.VisionDataset(root)[0]",
        "len(D.VisionDataset(root))",
        "D.VisionDataset(root, transforms=1, transform=2)",
        "D.vision.StandardTransform(str, None)(1, 2)",
        "repr(D.vision.StandardTransform())",
    ],
)
def test_folders(tree, text):
    made = [outcome(lambda D=D: eval(text, {"D": D, "root": str(tree)})) for D in BOTH]
    assert type(made[0]) is type(made[1])
    assert str(made[0]) == str(made[1])


# Fake data


def test_fake_data():
    options = {"size": 5, "image_size": (3, 4, 6), "num_classes": 7, "random_offset": 3}
    here, there = (part.FakeData(**options) for part in BOTH)
    tlc.manual_seed(1)
    torch.manual_seed(1)
    assert_same_samples(here, there)
    assert tlc.rand(1).item() == torch.rand(1).item()  # the stream goes on as if nothing was
    assert str(outcome(lambda: here[5])) == str(outcome(lambda: there[5]))


# Archives


def archive_of(path, name, content=b"content"):
    """An archive with one member of that name."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(name, content)
    else:
        with tarfile.open(path, "w:gz" if path.suffix in (".gz", ".tgz") else "w") as file:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz"])
def test_archives(tmp_path, name):
    for number, module in enumerate((utils, their_utils)):
        target = tmp_path / str(number)
        target.mkdir()
        source = archive_of(target / name, "in/file.txt")
        assert Path(module.extract_archive(source)) == target
        assert (target / "in" / "file.txt").read_bytes() == b"content" and source.exists()
        module.extract_archive(source, target / "other", remove_finished=True)
        assert (target / "other" / "in" / "file.txt").exists() and not source.exists()


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
@pytest.mark.parametrize("member", ["../outside.txt", "in/../../outside.txt", "/outside.txt"])
def test_archives_that_would_write_elsewhere(tmp_path, name, member):
    source = archive_of(tmp_path / name, member)
    if member.startswith("/") and not name.endswith("zip"):
        utils.extract_archive(source, tmp_path / "to")  # a leading slash is dropped from tars
        assert [file.name for file in (tmp_path / "to").iterdir()] == ["outside.txt"]
        return
    with pytest.raises(RuntimeError, match="refused"):
        utils.extract_archive(source, tmp_path / "to")
    assert not (tmp_path / "outside.txt").exists() and not (tmp_path / "to").exists()


def test_one_packed_file(tmp_path):
    (tmp_path / "file.txt.gz").write_bytes(gzip.compress(b"content"))
    assert Path(utils.extract_archive(tmp_path / "file.txt.gz")).read_bytes() == b"content"
    (tmp_path / "file.rar").write_bytes(b"")
    for module in (utils, their_utils):
        with pytest.raises(RuntimeError):
            module.extract_archive(tmp_path / "file.rar")


def test_checksums_and_lists(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file.txt").write_bytes(b"content")
    md5 = hashlib.md5(b"content").hexdigest()
    for module in (utils, their_utils):
        assert module.calculate_md5(tmp_path / "file.txt") == md5
        assert module.check_md5(tmp_path / "file.txt", md5)
        assert module.check_integrity(tmp_path / "file.txt", md5)
        assert module.check_integrity(tmp_path / "file.txt")
        assert not module.check_integrity(tmp_path / "file.txt", "0" * 32)
        assert not module.check_integrity(tmp_path / "nothing")
        assert module.list_dir(str(tmp_path)) == ["folder"]
        assert module.list_files(str(tmp_path), ".txt", prefix=True) == [str(tmp_path / "file.txt")]
        assert module.iterable_to_str("ab") == "'a', 'b'"
        assert module.verify_str_arg("a", "name", ("a", "b")) == "a"
    for wrong in ("c", 3):
        made = [
            outcome(module.verify_str_arg, wrong, "name", ("a", "b"))
            for module in (utils, their_utils)
        ]
        assert type(made[0]) is type(made[1]) and str(made[0]) == str(made[1])


def test_download_url(tmp_path):
    source = tmp_path / "source.txt"
    source.write_bytes(b"content")
    md5 = hashlib.md5(b"content").hexdigest()
    utils.download_url(source.as_uri(), tmp_path / "to", "file.txt", md5)
    assert (tmp_path / "to" / "file.txt").read_bytes() == b"content"
    (tmp_path / "to" / "file.txt").write_bytes(b"damaged")
    utils.download_url(source.as_uri(), tmp_path / "to", "file.txt", md5)
    assert (tmp_path / "to" / "file.txt").read_bytes() == b"content"
    with pytest.raises(RuntimeError, match="expected MD5"):
        utils.download_url(source.as_uri(), tmp_path / "to", "other.txt", "0" * 32)
    assert not (tmp_path / "to" / "other.txt").exists()


def test_download_and_extract_archive(tmp_path):
    source = archive_of(tmp_path / "a.tgz", "in/file.txt")
    utils.download_and_extract_archive(
        source.as_uri(), tmp_path / "to", tmp_path / "out", remove_finished=True
    )
    assert (tmp_path / "out" / "in" / "file.txt").exists()
    assert not (tmp_path / "to" / "a.tgz").exists()
