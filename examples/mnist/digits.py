"""The digits of MNIST as tensors, read from idx files."""

import gzip
from pathlib import Path

import numpy as np

import tensorflow_lite_clone as torch

SHIPPED = Path(__file__).parent / "data"
MEAN, STD = 0.1307, 0.3081  # of the training images' pixels


def read_idx(path: Path) -> np.ndarray:
    """The array in a gzipped idx file: its header holds a magic number and the big-endian shape."""
    content = gzip.decompress(path.read_bytes())
    ndim = content[3]
    shape = np.frombuffer(content, ">i4", ndim, offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def digits(folder: Path, split: str, limit: int) -> torch.utils.data.TensorDataset:
    """At most `limit` normalised images of shape (1, 28, 28) with their labels.

    `split` is ``train`` or ``t10k``; `folder` holds the four files as they were published.
    """
    images = read_idx(folder / f"{split}-images-idx3-ubyte.gz")[:limit]
    labels = read_idx(folder / f"{split}-labels-idx1-ubyte.gz")[:limit]
    pixels = (images[:, None].astype(np.float32) / 255 - MEAN) / STD
    return torch.utils.data.TensorDataset(
        torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64))
    )
