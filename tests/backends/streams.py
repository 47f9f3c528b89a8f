"""Our generator and PyTorch's, side by side."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import torch

from tensorflow_lite_clone.backends.numpy.random import Generator

# Relative and absolute tolerances of the inexact functions, for values around one.
CLOSE = {
    "float16": (1e-3, 1e-6),
    "bfloat16": (8e-3, 1e-6),
    "float32": (2.4e-7, 2.4e-7),
    "float64": (1e-14, 1e-15),
    "complex64": (2.4e-7, 2.4e-7),
    "complex128": (1e-14, 1e-15),
}


def native(name: str) -> np.dtype:
    """A NumPy dtype by PyTorch's name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def host(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's values; bfloat16 too."""
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def widened(array: np.ndarray) -> np.ndarray:
    """16-bit values in float64, for comparisons."""
    return array.astype(np.float64) if array.dtype.kind not in "biuc" else array


def pair(seed: int = 7) -> tuple[Generator, torch.Generator]:
    """Two generators of one seed, within a block of draws and with a normal kept for later."""
    ours, theirs = Generator(seed), torch.Generator().manual_seed(seed)
    ours.normal(3)
    torch.randn(3, generator=theirs)
    return ours, theirs


def check_stream(ours: Generator, theirs: torch.Generator) -> None:
    """Both go on alike."""
    np.testing.assert_array_equal(ours.get_state(), theirs.get_state().numpy())
    np.testing.assert_array_equal(ours.uniform(5), torch.rand(5, generator=theirs).numpy())


def check_same(
    actual: np.ndarray, expected: torch.Tensor, close: bool = False, cancelled: float = 0.0
) -> None:
    """Equal values, or within CLOSE; equal shapes and dtypes.

    `cancelled`: the size of what was subtracted to get the values."""
    wanted = host(expected)
    assert actual.dtype == wanted.dtype
    assert actual.shape == wanted.shape
    assert actual.flags.c_contiguous
    if not close:
        np.testing.assert_array_equal(widened(actual), widened(wanted))
        return
    relative, absolute = CLOSE[actual.dtype.name]
    np.testing.assert_allclose(
        widened(actual),
        widened(wanted),
        rtol=relative,
        atol=absolute + cancelled * relative,
        equal_nan=True,
    )
