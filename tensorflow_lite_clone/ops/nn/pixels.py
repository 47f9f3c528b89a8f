"""Channels into pixels and back: pixel_shuffle and its kin."""

from __future__ import annotations

import math

from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.shape.memory import in_format_of
from tensorflow_lite_clone.ops.shape.views import permute, reshape
from tensorflow_lite_clone.tensor import Tensor


def _image(name: str, input: Tensor) -> tuple[tuple, tuple]:
    shape = input._storage.physical.shape
    if len(shape) < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} "
            "dimension(s)"
        )
    return shape[:-3], shape[-3:]


@public("torch", "functional")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r^2, H, W) rearranged to (*, C, H r, W r) with r = `upscale_factor`."""
    batch, (channels, height, width) = _image("pixel_shuffle", input)
    r = upscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {r * r}"
        )
    count = math.prod(batch)
    x = reshape(input, (count, channels // (r * r), r, r, height, width))
    x = permute(x, (0, 1, 4, 2, 5, 3))
    x = reshape(x, (*batch, channels // (r * r), height * r, width * r))
    return in_format_of(x, input)


@public("torch", "functional")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) rearranged to (*, C r^2, H, W) with r = `downscale_factor`."""
    batch, (channels, height, width) = _image("pixel_unshuffle", input)
    r = downscale_factor
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    for name, place, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({place})={size} is not divisible by {r}"
            )
    count = math.prod(batch)
    if not input._storage.physical.size:
        return input.clone()  # as PyTorch: the shape stays
    x = reshape(input, (count, channels, height // r, r, width // r, r))
    x = permute(x, (0, 1, 3, 5, 2, 4))
    return in_format_of(reshape(x, (*batch, channels * r * r, height // r, width // r)), input)


@public("torch", "functional")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, groups x C, *): channels reordered so that those of all groups alternate."""
    shape = input._storage.physical.shape
    if len(shape) <= 2:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and "
            f"{groups} groups."
        )
    x = reshape(input, (shape[0], groups, shape[1] // groups, math.prod(shape[2:])))
    return in_format_of(reshape(permute(x, (0, 2, 1, 3)), shape), input)
