"""Transforms of pictures as functions, with torchvision's names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType, get_default_dtype, uint8
from tensorflow_lite_clone.ops.create import as_tensor, from_numpy
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["normalize", "to_tensor"]


def to_tensor(pic: Any) -> Tensor:
    """A tensor (C, H, W) of an array (H, W) or (H, W, C), or of a PIL image.

    uint8 becomes the default float dtype in [0, 1]; other dtypes are kept as they are. Raises
    TypeError for other types, ValueError for arrays of other dimensions.
    """
    if not isinstance(pic, np.ndarray):
        # A PIL image, without importing PIL: it offers its pixels as an array.
        if not (hasattr(pic, "__array_interface__") and hasattr(pic, "getbands")):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
        bilevel = pic.mode == "1"
        pic = np.array(pic)
        if bilevel:
            pic = pic.astype(np.uint8) * 255
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    planes = pic[None] if pic.ndim == 2 else pic.transpose(2, 0, 1)
    # A copy of its own: the tensor must not share the dataset's memory.
    result = from_numpy(np.array(planes, order="C"))
    return result.to(get_default_dtype()).div(255) if result.dtype == uint8 else result


@lru_cache(maxsize=64)
def channel_values(values: tuple[float, ...], dtype: DType, device: Device, divisor: str) -> Tensor:
    """A tensor (C, 1, 1) of the values, or () if there is one; ValueError for a divisor of zero."""
    result = as_tensor(values if len(values) > 1 else values[0], dtype=dtype, device=device)
    if divisor and not all(result.flatten().tolist()):
        raise ValueError(
            f"{divisor} evaluated to zero after conversion to {dtype}, leading to division by "
            f"zero: {values}"
        )
    return result.view(-1, 1, 1) if len(values) > 1 else result


def by_channel(values: Any, like: Tensor, divisor: str = "") -> Tensor:
    """The values, a sequence or a number, as a tensor that broadcasts with the channels.

    It is kept for the next picture: making it costs more than using it.
    """
    numbers = tuple(map(float, values)) if hasattr(values, "__len__") else (float(values),)
    return channel_values(numbers, like.dtype, like.device, divisor)


def normalize(
    tensor: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False
) -> Tensor:
    """`(tensor - mean) / std`, channel by channel of a float tensor (..., C, H, W).

    Raises TypeError for other tensors and dtypes, ValueError for fewer dimensions or a zero std.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            "Expected tensor to be a tensor image of size (..., C, H, W). Got tensor.size() = "
            f"{tensor.size()}"
        )
    means, stds = by_channel(mean, tensor), by_channel(std, tensor, "std")
    if inplace:
        return tensor.sub_(means).div_(stds)
    return (tensor - means) / stds
