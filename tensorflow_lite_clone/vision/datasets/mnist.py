"""MNIST and its relatives: small grey pictures of digits, letters, clothes."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.create.constructors import from_numpy
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._idx import read_idx
from tensorflow_lite_clone.vision._pillow import has_pillow, pillow
from tensorflow_lite_clone.vision.datasets.utils import (
    download_and_extract_archive,
    fetch,
    verify_str_arg,
)
from tensorflow_lite_clone.vision.datasets.vision import VisionDataset


def _renamed(old: str, new: str) -> property:
    """A property with an older name of an attribute, which warns."""

    def get(self: Any) -> Any:
        warnings.warn(f"{old} has been renamed {new}", stacklevel=level_outside())
        return getattr(self, new)

    return property(get, doc=f"An older name of `{new}`.")


class MNIST(VisionDataset):
    """Handwritten digits: 60,000 for training, 10,000 for tests, grey, 28 x 28.

    Args:
        root: the folder that holds the files, in `root/MNIST/raw/` (torchvision's place, where
            `download` puts them) or directly; each gzipped (`train-images-idx3-ubyte.gz`) or not.
        train: the training set, or the test set.
        transform: applied to the picture, `target_transform` to the label.
        download: fetch the files that are missing. The checksums are checked then, and only then.

    `data` is a uint8 tensor (N, 28, 28), `targets` an int64 tensor (N,). A sample is (picture,
    int). The picture is a PIL image; without Pillow it is a uint8 array (28, 28), which
    `transforms.ToTensor` turns into the same float tensor (1, 28, 28) in [0, 1].

    Raises RuntimeError, with the folders and names it looked for, when files are missing, and
    when they are damaged.
    """

    mirrors = [
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ]
    # Names and MD5 sums of the published .gz files.
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]

    data: Tensor
    targets: Tensor

    def __init__(
        self,
        root: str | os.PathLike,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        names = self._names()
        missing = [name for name in names if self._find(name) is None]
        if missing:
            raise RuntimeError(
                "Dataset not found. You can use download=True to download it.\n"
                + self._advice(missing)
            )
        self.data, self.targets = self._load(*names)

    train_data = test_data = _renamed("train_data and test_data", "data")
    train_labels = test_labels = _renamed("train_labels and test_labels", "targets")

    def _names(self) -> tuple[str, str]:
        """The names of the two files of this set, unpacked."""
        split = "train" if self.train else "t10k"
        return f"{split}-images-idx3-ubyte", f"{split}-labels-idx1-ubyte"

    @property
    def raw_folder(self) -> str:
        """Where torchvision, and `download`, put the files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return {name: label for label, name in enumerate(self.classes)}

    def _find(self, name: str) -> Path | None:
        """The file of that name, unpacked or gzipped, in one of the two folders."""
        folders = [Path(self.raw_folder), Path(self.root)]
        places = [folder / (name + end) for folder in folders for end in ("", ".gz")]
        return next((place for place in places if place.is_file()), None)

    def _advice(self, missing: list[str]) -> str:
        """What to do about missing files without a network."""
        files = ", ".join(f"{name}.gz" for name in missing)
        return (
            f"Missing: {files} (or the same unpacked, without .gz). Put them into "
            f"{self.raw_folder} or {self.root}; they are published at {self.mirrors[0]}"
        )

    def _load(self, images_name: str, labels_name: str) -> tuple[Tensor, Tensor]:
        images_path, labels_path = self._find(images_name), self._find(labels_name)
        assert images_path is not None and labels_path is not None
        images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
        if len(images) != len(labels):
            raise RuntimeError(
                f"{images_path} has {len(images)} pictures, but {labels_path} {len(labels)} labels"
            )
        if len(labels) and labels.max() >= len(self.classes):
            raise RuntimeError(
                f"{labels_path} has a label {labels.max()}: expected 0 to {len(self.classes) - 1}"
            )
        return from_numpy(images), from_numpy(labels).to(int64)

    def download(self) -> None:
        """Fetches the files of both sets that are not there; RuntimeError if that fails."""
        paths = [
            (name, md5) for name, md5 in self.resources if not self._find(name.removesuffix(".gz"))
        ]
        if not paths:
            return
        folder = Path(self.raw_folder)
        folder.mkdir(parents=True, exist_ok=True)
        for position, (name, md5) in enumerate(paths):
            urls = [mirror + name for mirror in self.mirrors]
            try:
                fetch(urls, folder / name, md5)
            except RuntimeError as error:
                missing = [name.removesuffix(".gz") for name, _ in paths[position:]]
                raise RuntimeError(
                    f"Error downloading {name}: {error}\n{self._advice(missing)}"
                ) from None

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture: Any = self.data[index].numpy()
        if has_pillow():
            picture = pillow().Image.fromarray(picture)
        return self._transformed(picture, int(self.targets[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """Which of the two sets it is."""
        return f"Split: {'Train' if self.train else 'Test'}"


class FashionMNIST(MNIST):
    """Pictures of clothes in MNIST's format; same arguments, files in `root/FashionMNIST/raw/`.

    The sets, file names and sizes are MNIST's: keep the two in different folders.
    """

    mirrors = [
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
    ]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = [
        "T-shirt/top",
        "Trouser",
        "Pullover",
        "Dress",
        "Coat",
        "Sandal",
        "Shirt",
        "Sneaker",
        "Bag",
        "Ankle boot",
    ]


class KMNIST(MNIST):
    """Cursive Japanese letters in MNIST's format; same arguments, files in `root/KMNIST/raw/`."""

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]


DIGITS = "0123456789"
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Small letters that cannot be mistaken for their capitals.
DISTINCT = "abdefghnqrt"


class EMNIST(MNIST):
    """Handwritten digits and letters in MNIST's format; files in `root/EMNIST/raw/`.

    Args:
        root: as for `MNIST`.
        split: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
        kwargs: `train`, `transform`, `target_transform`, `download` of `MNIST`.

    The pictures are as published: rows and columns are swapped. Letters are numbered from 1.
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    mirrors = [url]
    classes_split_dict = {
        "byclass": [*DIGITS, *CAPITALS, *CAPITALS.lower()],
        "bymerge": [*DIGITS, *CAPITALS, *DISTINCT],
        "balanced": [*DIGITS, *CAPITALS, *DISTINCT],
        "letters": ["N/A", *CAPITALS.lower()],
        "digits": [*DIGITS],
        "mnist": [*DIGITS],
    }
    splits = tuple(classes_split_dict)

    def __init__(self, root: str | os.PathLike, split: str, **kwargs: Any) -> None:
        self.split = verify_str_arg(split, "split", self.splits)
        self.classes = self.classes_split_dict[split]
        super().__init__(root, **kwargs)

    def _names(self) -> tuple[str, str]:
        stem = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{stem}-images-idx3-ubyte", f"{stem}-labels-idx1-ubyte"

    def download(self) -> None:
        """Fetches and unpacks the archive of all splits if the files are not there."""
        if all(self._find(name) for name in self._names()):
            return
        download_and_extract_archive(self.url, self.raw_folder, md5=self.md5, remove_finished=True)
        folder = Path(self.raw_folder) / "gzip"
        for file in folder.iterdir():
            file.replace(folder.parent / file.name)
        shutil.rmtree(folder)
