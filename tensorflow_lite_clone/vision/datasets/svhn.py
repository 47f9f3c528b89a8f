"""SVHN: digits of house numbers in photographs."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.vision._pillow import pillow
from tensorflow_lite_clone.vision.datasets.utils import download_url, verify_str_arg
from tensorflow_lite_clone.vision.datasets.vision import Path, VisionDataset


class SVHN(VisionDataset):
    """Digits of house numbers, in colour, 32 x 32: 73,257 for training, 26,032 for tests.

    Args:
        root: the folder that holds `train_32x32.mat` and the like; reading them needs SciPy.
        split: "train", "test" or "extra" (531,131 easier ones).
        transform: applied to the PIL image, `target_transform` to the label.
        download: fetch the file if it is not there.

    `data` is a uint8 array (N, 3, 32, 32), `labels` an int64 array (N,); the digit 0, which the
    files number 10, has the label 0. Raises RuntimeError if the file is missing.
    """

    split_list = {
        split: (f"http://ufldl.stanford.edu/housenumbers/{split}_32x32.mat", md5)
        for split, md5 in [
            ("train", "e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("test", "eb5a983be6a315427106f1b164d9cef3"),
            ("extra", "a93ce644f1a588dc4d68dda5feec44a7"),
        ]
    }

    def __init__(
        self,
        root: Path,
        split: str = "train",
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.split = verify_str_arg(split, "split", tuple(self.split_list))
        self.filename = f"{split}_32x32.mat"
        path = os.path.join(self.root, self.filename)
        if download:
            self.download()
        if not os.path.isfile(path):
            raise RuntimeError(
                "Dataset not found or corrupted. You can use download=True to download it. "
                f"Looked for {path}"
            )
        self.data, self.labels = self._load(path)

    def _load(self, path: str) -> tuple[Any, Any]:
        try:
            from scipy.io import loadmat
        except ImportError as error:
            raise ImportError("the files of SVHN are read by SciPy: pip install scipy") from error
        content = loadmat(path)
        labels = content["y"].astype(np.int64).squeeze(1)
        labels[labels == 10] = 0
        return content["X"].transpose(3, 2, 0, 1), labels

    def download(self) -> None:
        """Fetches the file of this split if it is not there."""
        url, md5 = self.split_list[self.split]
        download_url(url, self.root, self.filename, md5)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        pixels = np.ascontiguousarray(self.data[index].transpose(1, 2, 0))
        return self._transformed(pillow().Image.fromarray(pixels), int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        """Which split it is."""
        return f"Split: {self.split}"
