"""``interpolate``: images and signals in another resolution."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import expect_storage
from tensorflow_lite_clone.core.signature import whole_number
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.nn._resample import (
    Resample,
    Taps,
    cubic_taps,
    exact,
    linear_taps,
    nearest_taps,
    single,
    smooth_taps,
    whole_taps,
)
from tensorflow_lite_clone.ops.nn.adaptive_pool import adaptive_average
from tensorflow_lite_clone.ops.pointwise._operands import refuse
from tensorflow_lite_clone.ops.shape.memory import in_format_of
from tensorflow_lite_clone.tensor import Tensor

# mode -> the number of spatial axes it serves
_MODES = {"linear": (1,), "bilinear": (2,), "trilinear": (3,), "bicubic": (2,)}
_ANY = ("nearest", "nearest-exact", "area")


def _check_mode(input: Tensor, mode: str, corners: bool | None, antialias: bool) -> None:
    ndim = input.ndim - 2
    if mode in _ANY and corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    if antialias and not (mode in ("bilinear", "bicubic") and ndim == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if ndim in (1, 2, 3) and mode in _MODES and ndim not in _MODES[mode] and mode != "bicubic":
        raise NotImplementedError(
            f"Got {input.ndim}D input, but {mode} mode needs {_MODES[mode][0] + 2}D input"
        )
    if ndim not in _MODES.get(mode, (1, 2, 3) if mode in _ANY else ()):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the "
            "modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got "
            f"{mode})"
        )


def _per_axis(value: Any, input: Tensor, what: str, like: str) -> list:
    space = list(input.shape[2:])
    if not isinstance(value, (list, tuple)):
        return [value] * len(space)
    if len(value) != len(space):
        raise ValueError(
            f"Input and {what} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {space} and {like} of {value}. Please provide input tensor in "
            "(N, C, d1, d2, ...,dK) format and one value per d."
        )
    return list(value)


@public("functional")
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """(n, c, ...) resampled to `size`, or by `scale_factor`, over the last one to three axes.

    `mode`: nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area. Raises ValueError
    and NotImplementedError for settings that do not go together.
    """
    _check_mode(input, mode, align_corners, antialias)
    ndim = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    factors: list = [None] * ndim
    shape = input._storage.physical.shape[2:]
    if size is not None:
        counts = [_as_int(count) for count in _per_axis(size, input, "output", "output size")]
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    elif scale_factor is not None:
        factors = _per_axis(scale_factor, input, "scale_factor", "scale_factor")
        for factor in factors:
            if isinstance(factor, (str, bool)):
                raise TypeError(
                    "interpolate(): argument 'scale_factor' must be tuple of floats, but found "
                    f"{type(factor).__name__}"
                )
        factors = [float(factor) for factor in factors]
        counts = [math.floor(n * factor) for n, factor in zip(shape, factors)]
        if recompute_scale_factor or mode == "area":
            factors = [None] * ndim
    else:
        raise ValueError("either size or scale_factor should be defined")
    if min(*shape, *counts) < 1:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {shape} and output "
            f"{tuple(counts)}"
        )
    if not input.shape[1] and mode != "area":
        raise RuntimeError(
            f"Non-empty {input.ndim}D data tensor expected but got a tensor with sizes "
            f"{list(input.shape)}"
        )
    if input.dtype.kind not in "fc" and input.dtype.name != "uint8":
        refuse(f"upsample_{mode}", input.dtype)
    expect_storage((*input.shape[:2], *counts), input.dtype.itemsize)
    if mode == "area":
        return adaptive_average(input, tuple(counts))
    return _resampled(input, counts, factors, mode, bool(align_corners), antialias)


def _as_int(value: Any) -> int:
    return whole_number("interpolate(): argument 'size'", value)


@autocasts("upsample_nearest1d")
def _resampled(
    x: Tensor, counts: list, factors: list, mode: str, corners: bool, antialias: bool
) -> Tensor:
    shape = x._storage.physical.shape[2:]
    whole = x.dtype.kind == "u" and mode not in _ANY
    in_bytes = whole and len(shape) == 2  # rounded after each axis, with whole weights
    rounded = exact if x.dtype.itemsize == 8 or in_bytes else single
    if whole:
        x, dtype = x.int() if in_bytes else x.float(), x.dtype

    def taps(axis: int) -> Taps:
        n, count, factor = shape[axis], counts[axis], factors[axis]
        if mode in _ANY:
            if count == n and len(shape) == 2:  # for images PyTorch forgets a factor near one
                factor = None
            return nearest_taps(n, count, factor, mode != "nearest")
        if antialias:
            return smooth_taps(n, count, corners, factor, mode == "bicubic")
        maker = cubic_taps if mode == "bicubic" else linear_taps
        return maker(n, count, corners, factor, rounded)

    # The last axis is the slowest to gather along: first when growing, last when shrinking.
    axes = sorted(range(len(shape)), key=lambda axis: counts[axis] > shape[axis])
    growing = [axis for axis in axes if counts[axis] > shape[axis]]
    axes = [1, 0] if in_bytes else axes[: len(axes) - len(growing)] + growing[::-1]
    start = x
    for axis in axes:
        along = taps(axis)
        if counts[axis] != shape[axis] or along.rows != [[(i, 1.0)] for i in range(shape[axis])]:
            if in_bytes:
                along, bits = whole_taps(along)
                x = apply(Resample, x, axis=axis + 2, taps=along)
                x = ((x + (1 << bits >> 1)) >> bits).clamp(0, 255)
            else:
                x = apply(Resample, x, axis=axis + 2, taps=along)
    if x is start:
        x = in_format_of(x.clone(), x)
    return x.round().clamp(0, 255).to(dtype) if whole else x


@public("functional")
def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The former name of `interpolate`."""
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=level_outside(),
    )
    return interpolate(input, size, scale_factor, mode, align_corners)
