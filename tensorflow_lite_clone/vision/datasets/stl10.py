"""STL-10: larger photographs of ten kinds, most of them without labels."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.vision._pillow import pillow
from tensorflow_lite_clone.vision.datasets.utils import (
    download_and_extract_archive,
    verify_str_arg,
)
from tensorflow_lite_clone.vision.datasets.vision import Path, VisionDataset

SHAPE = (3, 96, 96)
FOLDS = 10


class STL10(VisionDataset):
    """Photographs of ten kinds, 96 x 96: 5,000 for training, 8,000 for tests, 100,000 unlabelled.

    Args:
        root: the folder that holds `stl10_binary/`, the official archive's folder.
        split: "train", "test", "unlabeled" or "train+unlabeled".
        folds: of the training set only the part of that number, 0 to 9.
        transform: applied to the PIL image, `target_transform` to the label.
        download: fetch and unpack the archive if its folder is not there.

    `data` is a uint8 array (N, 3, 96, 96), `labels` an array (N,), -1 without a label. Raises
    RuntimeError when files are missing.
    """

    base_folder = "stl10_binary"
    url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
    filename = "stl10_binary.tar.gz"
    tgz_md5 = "91f7769df0f17e558f3565bffb0c7dfb"
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self,
        root: Path,
        split: str = "train",
        folds: int | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", self.splits)
        if folds is not None and folds not in range(FOLDS):
            raise ValueError(
                f"Value for argument folds should be in the range [0, {FOLDS}), but got {folds}."
            )
        self.folds = folds
        if download:
            self.download()
        if not os.path.isfile(self._path("test_X.bin")):
            raise RuntimeError(
                "Dataset not found or corrupted. You can use download=True to download it. "
                f"Looked for {self.base_folder} in {self.root}"
            )
        parts = [self._load(part) for part in self.split.split("+")]
        self.data, self.labels = (np.concatenate(arrays) for arrays in zip(*parts))
        with open(self._path("class_names.txt")) as file:
            self.classes = file.read().splitlines()

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _load(self, part: str) -> tuple[Any, Any]:
        """The pictures and labels of one part."""
        pixels = np.fromfile(self._path(f"{part}_X.bin"), np.uint8)
        pictures = pixels.reshape(-1, *SHAPE).transpose(0, 1, 3, 2)  # written column by column
        if part == "unlabeled":
            return pictures, np.full(len(pictures), -1)
        labels = np.fromfile(self._path(f"{part}_y.bin"), np.uint8) - 1  # written from 1
        if part == "train" and self.folds is not None:
            with open(self._path("fold_indices.txt")) as file:
                line = file.read().splitlines()[self.folds]
            chosen = np.array(line.split(), np.int64)
            return pictures[chosen], labels[chosen]
        return pictures, labels

    def download(self) -> None:
        """Fetches and unpacks the archive if its files are not there."""
        if not os.path.isfile(self._path("test_X.bin")):
            download_and_extract_archive(
                self.url, self.root, filename=self.filename, md5=self.tgz_md5
            )

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        pixels = np.ascontiguousarray(self.data[index].transpose(1, 2, 0))
        return self._transformed(pillow().Image.fromarray(pixels), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """Which split it is."""
        return f"Split: {self.split}"
