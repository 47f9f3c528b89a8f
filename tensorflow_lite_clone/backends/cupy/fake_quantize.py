"""Fake quantization with its mask in one pass: `kernels/fake_quantize.cu`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.cupy.arrays import (
    ACCUMULATORS,
    aligned,
    empty_laid,
    is_dense,
    strides_of,
)
from tensorflow_lite_clone.backends.cupy.kernel import Kernel, blocks_for
from tensorflow_lite_clone.dispatch.table import override

_forward = Kernel("fake_quantize.cu", "fake_quantize_forward", params=("T", "Z", "VEC"))
_bool = np.dtype(np.bool_)


@override("fake_quantize_per_channel_affine", backend="cupy")
@override("fake_quantize_per_tensor_affine", backend="cupy")
def fake_quantize(
    F: Any, x: Any, scale: Any, zero_point: Any, *, quant_min: int, quant_max: int
) -> Any:
    if x.dtype not in ACCUMULATORS or x.itemsize == 8 or not x.size or not is_dense(x):
        return NotImplemented
    channels, inner = scale.size, x.size
    if channels > 1:
        inner = strides_of(x)[scale.shape.index(channels)]
    full = 16 // x.itemsize
    each = inner if channels > 1 else x.size  # consecutive elements with one scale
    vec = full if each % full == 0 and aligned(x) else 1
    y, inside = empty_laid(x, x.dtype), empty_laid(x, _bool)
    _forward[x.dtype, zero_point.dtype, vec](
        blocks_for(x.size // vec, 256), 256, x, scale, zero_point, float(quant_min),
        float(quant_max), inner, channels, x.size, y, inside,
    )  # fmt: skip
    return y, inside
