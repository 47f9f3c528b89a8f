"""CIFAR-10 and CIFAR-100: small colour photographs of 10 and 100 kinds of things."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.serialization._unpickler import Source, WeightsUnpickler
from tensorflow_lite_clone.vision._pillow import pillow
from tensorflow_lite_clone.vision.datasets.utils import download_and_extract_archive
from tensorflow_lite_clone.vision.datasets.vision import Path, VisionDataset

HEIGHT = WIDTH = 32
CHANNELS = 3
# What stands for the class of arrays and for its dtype; nothing is made of them by their names.
ARRAY, BYTES = np.ndarray, np.dtype(np.uint8)


def empty(kind: Any, shape: Any, code: Any) -> Any:
    """The array whose contents come with its state."""
    return np.zeros(0, np.uint8)


def bytes_of(text: str, encoding: str) -> bytes:
    """Bytes that were written as text."""
    if encoding != "latin1":
        raise ValueError(f"text in latin1 expected, got {encoding}")
    return text.encode("latin1")


def array_of(content: Any, dtype: Any, shape: tuple[int, ...], order: Any) -> Any:
    """The array over bytes that were read."""
    return np.frombuffer(content, dtype).reshape(shape, order=order)


def dtype_of(name: str, align: bool = False, copy: bool = True) -> Any:
    """The one dtype that there is."""
    if name != "u1":
        raise ValueError(f"pictures are of dtype u1, not {name}")
    return BYTES


# What pickles of arrays name; older files call the package numpy.core.
NAMED = {
    "numpy.dtype": dtype_of,
    "numpy.ndarray": ARRAY,
    "numpy._core.multiarray._reconstruct": empty,
    "numpy._core.numeric._frombuffer": array_of,
    "_codecs.encode": bytes_of,
}


class ArrayUnpickler(WeightsUnpickler):
    """Reads plain values and arrays of bytes; UnpicklingError for all else.

    No file runs code, and none asks for more memory than it is long.
    """

    def find(self, module: str, name: str) -> Any:
        """What a name stands for."""
        full = f"{module.replace('numpy.core.', 'numpy._core.')}.{name}"
        if full not in NAMED:
            raise pickle.UnpicklingError(f"{full} has no place in a file of pictures")
        return NAMED[full]

    def call(self, function: Any, arguments: Any) -> Any:
        """What a function of `NAMED` gives."""
        known = any([function is entry for entry in NAMED.values()])
        if type(arguments) is not tuple or function is ARRAY or not known:
            raise pickle.UnpicklingError("a call that has no place in a file of pictures")
        if function is bytes_of:
            self.spend(len(arguments[0]))
        return function(*arguments)

    def build(self, value: Any, state: Any) -> None:
        """Give an array its contents, of which it takes a copy."""
        if value is BYTES:
            return
        if type(value) is not ARRAY:
            raise pickle.UnpicklingError(f"a {type(value).__name__} takes no state")
        version, shape, dtype, columns_first, content = state
        if dtype is not BYTES:
            raise pickle.UnpicklingError("an array of something else than bytes")
        if isinstance(content, str):
            content = content.encode("latin1")
        self.spend(len(content))
        value.__setstate__((version, shape, dtype, columns_first, content))


def read_batch(path: str) -> dict[str, Any]:
    """The dict in a pickled file; RuntimeError, which names the file, if it holds anything else."""
    try:
        with open(path, "rb") as file:
            source = Source(file, os.path.getsize(path))
            # Python 2 wrote the files, whose strings are bytes.
            batch = ArrayUnpickler(source, encoding="latin1").load()
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        raise RuntimeError(f"{path} cannot be read: {error}") from error
    if not isinstance(batch, dict):
        raise RuntimeError(f"{path} holds a {type(batch).__name__}, not a dict")
    return batch


class CIFAR10(VisionDataset):
    """60,000 colour photographs of ten kinds, 50,000 for training, 32 x 32.

    Args:
        root: the folder that holds `cifar-10-batches-py/`, the official archive's folder.
        train: the training set, or the test set.
        transform: applied to the PIL image, `target_transform` to the label.
        download: fetch and unpack the archive if its folder is not there. Its checksum is
            checked then, and only then.

    `data` is a uint8 array (N, 32, 32, 3), `targets` a list of ints, `classes` the names. The
    pickled files are read by an unpickler that builds arrays of bytes and nothing else. Raises
    RuntimeError when files are missing, or hold something else.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [[f"data_batch_{number}"] for number in range(1, 6)]
    test_list = [["test_batch"]]
    meta = {"filename": "batches.meta", "key": "label_names"}
    labels_key = "labels"

    def __init__(
        self,
        root: Path,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        if not self._is_there():
            raise RuntimeError(
                "Dataset not found or corrupted. You can use download=True to download it. "
                f"Looked for {self.base_folder} in {self.root}"
            )
        pictures: list[Any] = []
        self.targets: list[int] = []
        for name, *_ in self.train_list if train else self.test_list:
            data, labels = self._load(name)
            pictures.append(data)
            self.targets.extend(labels)
        planes = np.concatenate(pictures).reshape(-1, CHANNELS, HEIGHT, WIDTH)
        self.data = planes.transpose(0, 2, 3, 1)
        path = self._path(self.meta["filename"])
        self.classes: list[str] = read_batch(path)[self.meta["key"]]
        self.class_to_idx = {name: label for label, name in enumerate(self.classes)}

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _is_there(self) -> bool:
        names = [entry[0] for entry in (*self.train_list, *self.test_list)]
        return all(os.path.isfile(self._path(name)) for name in (*names, self.meta["filename"]))

    def _load(self, name: str) -> tuple[Any, list[int]]:
        """The pictures (N, 3072) and labels of one file."""
        path = self._path(name)
        batch = read_batch(path)
        data, labels = batch.get("data"), batch.get(self.labels_key)
        size = CHANNELS * HEIGHT * WIDTH
        if not (
            isinstance(data, np.ndarray)
            and data.dtype == np.uint8
            and isinstance(labels, list)
            and data.shape == (len(labels), size)
        ):
            raise RuntimeError(
                f"{path} does not hold uint8 data of shape (N, {size}) and N {self.labels_key}"
            )
        return data, labels

    def download(self) -> None:
        """Fetches and unpacks the archive if its files are not there."""
        if not self._is_there():
            download_and_extract_archive(
                self.url, self.root, filename=self.filename, md5=self.tgz_md5
            )

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        picture = pillow().Image.fromarray(np.ascontiguousarray(self.data[index]))
        return self._transformed(picture, self.targets[index])

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """Which of the two sets it is."""
        return f"Split: {'Train' if self.train else 'Test'}"


class CIFAR100(CIFAR10):
    """60,000 colour photographs of a hundred kinds; as `CIFAR10`, in `cifar-100-python/`."""

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train"]]
    test_list = [["test"]]
    meta = {"filename": "meta", "key": "fine_label_names"}
    labels_key = "fine_labels"
