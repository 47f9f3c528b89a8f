"""From PIL images and arrays to tensors and back; from one range of numbers to another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import (
    DType,
    float32,
    float64,
    get_default_dtype,
    int32,
    int64,
    uint8,
)
from tensorflow_lite_clone.core.limits import iinfo
from tensorflow_lite_clone.ops.create.constructors import as_tensor, from_numpy
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision._pillow import is_pil, pillow

WHITE = 255
# The modes of PIL images with 2, 3, 4 channels of bytes, the usual one first.
MODES = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}
# Those with one channel, by the array's dtype.
GREY_MODES = {"uint8": "L", "int16": "I;16", "int32": "I", "float32": "F"}
# Floats that are too coarse for all integers of a dtype.
UNSAFE = {(float32, int32), (float32, int64), (float64, int64)}


def to_tensor(pic: Any) -> Tensor:
    """A tensor (C, H, W) of an array (H, W) or (H, W, C), or of a PIL image.

    uint8 becomes the default float dtype in [0, 1]; other dtypes are kept as they are. Raises
    TypeError for other types, ValueError for arrays of other dimensions.
    """
    if is_pil(pic):
        bilevel, wide = pic.mode == "1", pic.mode.startswith("I;16")
        pic = np.array(pic)
        if bilevel:
            pic = pic.astype(np.uint8) * WHITE
        elif wide:
            pic = pic.astype(np.int16)
    elif not isinstance(pic, np.ndarray):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    planes = pic[None] if pic.ndim == 2 else pic.transpose(2, 0, 1)
    # A copy of its own: the tensor must not share the dataset's memory.
    result = from_numpy(np.array(planes, order="C"))
    return result.to(get_default_dtype()).div(255) if result.dtype == uint8 else result


def pil_to_tensor(pic: Any) -> Tensor:
    """The numbers of a PIL image as a tensor (C, H, W), in their own dtype and range."""
    if not is_pil(pic):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    pixels = np.array(pic)
    planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return from_numpy(np.array(planes, order="C"))


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A PIL image of a tensor (C, H, W) or an array (H, W, C); (H, W) has one channel.

    Floats are taken to be in [0, 1], but in an image of mode "F". Without `mode`, 1 to 4
    channels give L, LA, RGB, RGBA; int16 and int32 give I;16 and I. Raises TypeError for other
    dtypes, ValueError for other dimensions and modes.
    """
    if not isinstance(pic, Tensor | np.ndarray):
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if pic.ndim not in (2, 3):
        raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
    if isinstance(pic, Tensor):
        planes = pic[None] if pic.ndim == 2 else pic
        pixels = planes.detach().cpu().permute(1, 2, 0).numpy()
    else:
        pixels = pic[:, :, None] if pic.ndim == 2 else pic
    if pixels.shape[-1] > max(MODES):
        raise ValueError(
            f"pic should not have > {max(MODES)} channels. Got {pixels.shape[-1]} channels."
        )
    if pixels.dtype.kind == "f" and mode != "F":
        pixels = (pixels * WHITE).astype(np.int64).astype(np.uint8)  # -1 is 255, in any libc
    channels = pixels.shape[-1]
    if channels == 1:
        pixels = pixels[:, :, 0]
        expected = GREY_MODES.get(str(pixels.dtype))
        if mode is not None and mode != expected:
            raise ValueError(
                f"Incorrect mode ({mode}) supplied for input type {pixels.dtype}. Should be "
                f"{expected}"
            )
        mode = expected
    elif mode is None and pixels.dtype == np.uint8:
        mode = MODES[channels][0]
    elif mode is not None and mode not in MODES[channels]:
        raise ValueError(f"Only modes {list(MODES[channels])} are supported for {channels}D inputs")
    if mode is None:
        raise TypeError(f"Input type {pixels.dtype} is not supported")
    return image_of(np.ascontiguousarray(pixels), mode)


def image_of(pixels: Any, mode: str) -> Any:
    """The image whose raw bytes are those of an array."""
    height, width = pixels.shape[:2]
    return pillow().Image.frombytes(mode, (width, height), pixels.tobytes())


def largest(dtype: DType) -> int:
    """The largest value of a dtype of integers, or of bool."""
    return iinfo(dtype).max if str(dtype) != "torch.bool" else 1


def convert_image_dtype(image: Tensor, dtype: DType = float32) -> Tensor:
    """The picture in another dtype, its values scaled such that white stays white.

    White is 1 of floats and the largest integer. Raises RuntimeError where floats cannot hold all
    the integers.
    """
    if not isinstance(image, Tensor):
        raise TypeError("Input img should be Tensor Image")
    if image.dtype == dtype:
        return image
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        if (image.dtype, dtype) in UNSAFE:
            raise RuntimeError(
                f"The cast from {image.dtype} to {dtype} cannot be performed safely."
            )
        # All integers have parts of [0, 1] of the same length, but for 1e-3.
        return (image * (largest(dtype) + 1 - 1e-3)).to(dtype)
    most = largest(image.dtype)
    if dtype.is_floating_point:
        return image.to(dtype) / most
    new = largest(dtype)
    if most > new:
        return image.div((most + 1) // (new + 1), rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((new + 1) // (most + 1))


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
