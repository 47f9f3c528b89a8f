"""A small CIFAR-10 of random pixels, in the files that the official archive unpacks to."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np

NAMES = "airplane automobile bird cat deer dog frog horse ship truck".split()


def write_cifar10(folder: Path, count: int = 8) -> None:
    """Five training files and a test file of `count` pictures each."""
    place = folder / "cifar-10-batches-py"
    place.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        content = {
            "labels": rng.integers(0, 10, count).tolist(),
            "data": rng.integers(0, 256, (count, 3 * 32 * 32), dtype=np.uint8),
        }
        (place / name).write_bytes(pickle.dumps(content, protocol=2))
    (place / "batches.meta").write_bytes(pickle.dumps({"label_names": NAMES}, protocol=2))
