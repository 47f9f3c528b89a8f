"""Launcher of convolutions of few channels, whose windows hold up to 32 values."""

from __future__ import annotations

from math import prod
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import strides_of
from tensorflow_lite_clone.backends.cupy.convolution_weight import divisor
from tensorflow_lite_clone.backends.cupy.kernel import Kernel

_small_channels = Kernel("conv2d_few.cu", "conv2d_few", params=("T", "STEPS"))

_AXES = ("stride", "padding", "dilation")
_WINDOWS = np.dtype(
    [(name, "i8") for name in ("image", "channel", "row", "pixel")]
    + [(name, "i4") for name in ("pixels", "outputs", "values", "height", "width")]
    + [(name, "i4") for name in ("kernel_height", "kernel_width")]
    + [(f"{name}_{axis}", "i4") for name in _AXES for axis in ("height", "width")]
    + [(f"{name}_{part}", "u4") for name in ("image", "row") for part in ("by", "times", "shift")],
    align=True,
)
_MAX_CHANNELS = 8
_MAX_VALUES = 32  # of a window
_OUTPUTS = 64  # of a block
_THREADS = 128
_TILE = 64  # pixels of a block at a time
_RESIDENT = 3


def is_supported(x: Any, w: Any, groups: int) -> bool:
    """Whether the kernel fits: x (n, c, h, w) in any layout, weights (o, c, kh, kw)."""
    outputs, channels = w.shape[:2]
    extent = sum([(size - 1) * abs(step) for size, step in zip(x.shape[1:], x.strides[1:])])
    return (
        groups == 1
        and extent < 2**31
        and channels <= _MAX_CHANNELS
        and prod(w.shape[1:]) <= _MAX_VALUES
        and outputs * w.itemsize % 16 == 0
    )


def forward(x: Any, w: Any, b: Any, y: Any, geometry: tuple, processors: int) -> Any:
    """The convolution of x (n, c, h, w), in any layout, into `y` (n, o, h, w), channels_last."""
    batch, outputs, *count = y.shape
    values = prod(w.shape[1:])
    pixels = batch * prod(count)
    record = np.array(
        (
            *strides_of(x), pixels, outputs, values, *x.shape[2:], *w.shape[2:], *geometry[0],
            *geometry[1], *geometry[2], *divisor(prod(count)), *divisor(count[1]),
        ),
        _WINDOWS,
    )  # fmt: skip
    blocks = min(-(-pixels // _TILE), processors * _RESIDENT)
    _small_channels[y.dtype, -(-values * y.itemsize // 32)](
        (blocks, -(-outputs // _OUTPUTS)), _THREADS, x, cupy.ascontiguousarray(w), b, record, y
    )
    return y
