"""Transforms of the colours of tensors (..., C, H, W), whatever their device."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.core.dtypes import DType, float32, uint8
from tensorflow_lite_clone.core.limits import iinfo
from tensorflow_lite_clone.nn import functional as nn_functional
from tensorflow_lite_clone.ops.create.constructors import full, zeros_like
from tensorflow_lite_clone.ops.create.progressions import linspace
from tensorflow_lite_clone.ops.pointwise.choice import where
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.vision.transforms._convert import convert_image_dtype
from tensorflow_lite_clone.vision.transforms._tensor import as_batch, from_batch

# Luma of ITU-R BT.601, as Pillow's.
RED, GREEN, BLUE = 0.2989, 0.587, 0.114
LEVELS = 256


def bound(dtype: DType) -> float:
    """What white is: 1 of floats, the largest integer of integers."""
    return 1.0 if dtype.is_floating_point else iinfo(dtype).max


def expect_channels(img: Tensor, permitted: Sequence[int]) -> None:
    """TypeError for a picture with another number of channels."""
    if img.shape[-3] not in permitted:
        raise TypeError(
            f"Input image tensor permitted channel values are {list(permitted)}, but found "
            f"{img.shape[-3]}"
        )


def blend(first: Tensor, second: Tensor, ratio: float) -> Tensor:
    """`ratio` of the first and the rest of the second, within the range of the first's dtype."""
    ratio = float(ratio)  # an integer would leave integers as they are, and they would overflow
    mixed = ratio * first + (1.0 - ratio) * second
    return mixed.clamp(0, bound(first.dtype)).to(first.dtype)


def grey(img: Tensor) -> Tensor:
    """The luma (..., 1, H, W) in the dtype of a picture in RGB."""
    r, g, b = img.unbind(-3)
    return (RED * r + GREEN * g + BLUE * b).to(img.dtype)[..., None, :, :]


def to_grayscale(img: Tensor, num_output_channels: int) -> Tensor:
    if num_output_channels not in (1, 3):
        raise ValueError("num_output_channels should be either 1 or 3")
    expect_channels(img, (1, 3))
    if img.shape[-3] == 1:
        return img.clone()
    one = grey(img)
    return one if num_output_channels == 1 else one.expand(*img.shape[:-3], 3, *img.shape[-2:])


def adjust_brightness(img: Tensor, factor: float) -> Tensor:
    return blend(img, zeros_like(img), factor)


def adjust_contrast(img: Tensor, factor: float) -> Tensor:
    expect_channels(img, (1, 3))
    one = grey(img) if img.shape[-3] == 3 else img
    numbers = one if one.is_floating_point() else one.to(float32)
    return blend(img, numbers.mean((-3, -2, -1), keepdim=True), factor)


def adjust_saturation(img: Tensor, factor: float) -> Tensor:
    expect_channels(img, (1, 3))
    return img if img.shape[-3] == 1 else blend(img, grey(img), factor)


def adjust_sharpness(img: Tensor, factor: float) -> Tensor:
    """Away from, or towards, the picture smoothed by 3 x 3 pixels; the border is left."""
    height, width = img.shape[-2:]
    if height <= 2 or width <= 2:
        return img
    batch = as_batch(img)
    weights = full((3, 3), 1 / 13, dtype=batch.dtype, device=img.device)
    weights[1, 1] = 5 / 13
    smooth = nn_functional.conv2d(batch, *depthwise(weights, batch))
    degenerate = img.clone()
    inner = (*img.shape[:-2], height - 2, width - 2)
    rounded = smooth if img.is_floating_point() else smooth.round()
    degenerate[..., 1:-1, 1:-1] = rounded.reshape(inner).to(img.dtype)
    return blend(img, degenerate, factor)


def depthwise(weights: Tensor, batch: Tensor) -> tuple:
    """The arguments of `conv2d` after the first that apply one filter to each channel."""
    count = batch.shape[1]
    return weights.expand(count, 1, *weights.shape), None, 1, 0, 1, count


def adjust_hue(img: Tensor, factor: float) -> Tensor:
    expect_channels(img, (1, 3))
    if img.shape[-3] == 1:
        return img
    numbers = convert_image_dtype(img, float32 if not img.is_floating_point() else img.dtype)
    hue, saturation, value = to_hsv(numbers)
    return convert_image_dtype(to_rgb((hue + factor) % 1.0, saturation, value), img.dtype)


def to_hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue, saturation and value in [0, 1] of RGB in [0, 1] (A. R. Smith, SIGGRAPH 1978)."""
    r, g, b = img.unbind(-3)
    high, low = img.amax(-3), img.amin(-3)
    spread = high - low
    flat = spread == 0
    saturation = spread / high.masked_fill(flat, 1)
    divisor = spread.masked_fill(flat, 1)
    red, green, blue = ((high - part) / divisor for part in (r, g, b))
    hue = where(high == r, blue - green, where(high == g, 2 + red - blue, 4 + green - red))
    hue = hue.masked_fill(flat, 0)
    return (hue / 6 + 1).fmod(1), saturation, high


def to_rgb(hue: Tensor, saturation: Tensor, value: Tensor) -> Tensor:
    """The picture (..., 3, H, W) of hue, saturation and value; undoes `to_hsv`."""
    sector = (hue * 6).floor()
    rest = hue * 6 - sector
    p = (value * (1 - saturation)).clamp(0, 1)
    q = (value * (1 - saturation * rest)).clamp(0, 1)
    t = (value * (1 - saturation * (1 - rest))).clamp(0, 1)
    number = sector.to(float32) % 6
    planes = []
    for choices in [
        (value, q, p, p, t, value),
        (t, value, value, q, p, p),
        (p, p, t, value, value, q),
    ]:
        plane = choices[5]
        for index in range(5):
            plane = where(number == index, choices[index], plane)
        planes.append(plane)
    return stack(planes, -3)


def adjust_gamma(img: Tensor, gamma: float, gain: float) -> Tensor:
    numbers = img if img.is_floating_point() else convert_image_dtype(img, float32)
    return convert_image_dtype((gain * numbers**gamma).clamp(0, 1), img.dtype)


def invert(img: Tensor) -> Tensor:
    expect_channels(img, (1, 3))
    return bound(img.dtype) - img if img.is_floating_point() else int(bound(img.dtype)) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    expect_channels(img, (1, 3))
    if img.dtype != uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    return img & (LEVELS - 2 ** (8 - bits))


def solarize(img: Tensor, threshold: float) -> Tensor:
    expect_channels(img, (1, 3))
    if threshold > bound(img.dtype):
        raise TypeError("Threshold should be less than bound of img.")
    return where(img >= threshold, invert(img), img)


def autocontrast(img: Tensor) -> Tensor:
    """Stretches each channel to the whole range; one of a single value is left."""
    expect_channels(img, (1, 3))
    white = bound(img.dtype)
    numbers = img if img.is_floating_point() else img.to(float32)
    low, high = numbers.amin((-2, -1), keepdim=True), numbers.amax((-2, -1), keepdim=True)
    flat = high == low
    scale = where(flat, 1.0, white / (high - low))
    return ((numbers - low.masked_fill(flat, 0)) * scale).clamp(0, white).to(img.dtype)


def equalize(img: Tensor) -> Tensor:
    """Gives each channel's levels about the same number of pixels each, as Pillow does."""
    expect_channels(img, (1, 3))
    if img.dtype != uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    channels = [equalize_channel(channel) for channel in img.reshape(-1, *img.shape[-2:])]
    return stack(channels).reshape(img.shape)


def equalize_channel(channel: Tensor) -> Tensor:
    """One channel (H, W), equalized."""
    levels = channel.flatten().long()
    counts = levels.bincount(minlength=LEVELS)
    step = (counts.sum() - counts[levels.max()]).item() // (LEVELS - 1)
    if step == 0:
        return channel
    table = (counts.cumsum(0) - counts + step // 2) // step
    table = table.clamp(0, LEVELS - 1)
    return table[levels].to(uint8).reshape(channel.shape)


def gaussian_blur(img: Tensor, kernel_size: Sequence[int], sigma: Sequence[float]) -> Tensor:
    """Smoothed by a Gaussian of (x, y) pixels; the picture is mirrored at its borders."""
    batch = as_batch(img)
    x, y = (gaussian(n, s, batch) for n, s in zip(kernel_size, sigma))
    half_x, half_y = kernel_size[0] // 2, kernel_size[1] // 2
    padded = nn_functional.pad(batch, [half_x, half_x, half_y, half_y], mode="reflect")
    weights = y[:, None] @ x[None]
    return from_batch(nn_functional.conv2d(padded, *depthwise(weights, batch)), img)


def gaussian(size: int, sigma: float, like: Tensor) -> Tensor:
    """A Gaussian at `size` whole steps around 0, with the sum 1."""
    half = (size - 1) * 0.5
    x = linspace(-half, half, size, dtype=like.dtype, device=like.device)
    density = (-0.5 * (x / sigma) ** 2).exp()
    return density / density.sum()
