"""``affine_grid`` and ``grid_sample``: images looked up at places given by tensors."""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.ops.create.progressions import linspace
from tensorflow_lite_clone.ops.decorators.autocast import autocasts
from tensorflow_lite_clone.ops.linalg.matmul import matmul
from tensorflow_lite_clone.ops.shape._views import stepwise
from tensorflow_lite_clone.ops.shape.join import stack
from tensorflow_lite_clone.tensor import Tensor

_ADVICE = (
    "Default grid_sample and affine_grid behavior is align_corners=False. Please specify "
    "align_corners=True if the old behavior is desired."
)


def _ends(count: int, corners: bool, like: Tensor) -> Tensor:
    """`count` places from -1 to 1: their ends there, or half a step before them."""
    if count <= 1:
        return like.new_zeros((count,))
    places = linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    return places if corners else places * ((count - 1) / count)


@public("torch", names=("affine_grid_generator",))
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`affine_grid` without defaults."""
    return affine_grid(theta, size, align_corners)


@public("functional")
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Places for `grid_sample` that map images of `size` (n, c, h, w) by `theta` (n, 2, 3), as
    (n, h, w, 2); or (n, c, d, h, w) by (n, 3, 4).
    """
    if align_corners is None:
        warnings.warn(_ADVICE, stacklevel=level_outside())
    if theta.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype!r}")
    size = tuple(size)
    ndim = len(size) - 2
    if ndim not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if tuple(theta.shape[1:]) != (ndim, ndim + 1):
        raise ValueError(
            f"Expected a batch of {ndim}D affine matrices of shape Nx{ndim}x{ndim + 1} for size "
            f"{size}. Got {list(theta.shape)}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. This is not an intended use case of affine_grid. See the "
            "documentation of affine_grid for details.",
            stacklevel=level_outside(),
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    space = size[2:]
    coordinates = []
    for axis in reversed(range(ndim)):
        places = _ends(space[axis], bool(align_corners), theta)
        shape = [-1 if i == axis else 1 for i in range(ndim)]
        coordinates.append(places.reshape(shape).expand(space))
    coordinates.append(theta.new_ones(space))
    base = stack(coordinates, -1).reshape(1, math.prod(space), ndim + 1)
    return matmul(base, theta.transpose(1, 2)).reshape(size[0], *space, ndim)


def _to_elements(place: Tensor, size: int, corners: bool) -> Tensor:
    """Places in [-1, 1] as positions among elements."""
    if corners:
        return (place + 1) * ((size - 1) / 2)
    return ((place + 1) * size - 1) / 2


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    """Positions mirrored at both ends until they lie between them."""
    if low == high:
        return x * 0
    span = high - low
    distance = (x - low).abs()
    turns = (distance / span).floor()
    rest = distance - turns * span
    return (rest + low).where(turns % 2 == 0, high - rest)


def _inside(x: Tensor, size: int, padding_mode: str, corners: bool) -> Tensor:
    """Positions brought inside as the padding mode says; with zeros as they are."""
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        x = _reflected(x, low, high)
    return x if padding_mode == "zeros" else x.clamp(0, size - 1)


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Keys' kernel with a = -0.75 at distances 1 + t, t, 1 - t, 2 - t."""
    a = -0.75

    def near(d: Tensor) -> Tensor:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Tensor) -> Tensor:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _taps(
    position: Tensor, size: int, mode: str, padding_mode: str, corners: bool
) -> list[tuple[Tensor, Tensor | None]]:
    """Along one axis: the elements to look up (as floats) and their weights."""
    if mode == "bicubic":
        low = position.detach().floor()
        weights = _cubic_weights(position - low)
        places = [_inside(low + i, size, padding_mode, corners) for i in range(-1, 3)]
        return [(place.round(), weight) for place, weight in zip(places, weights)]
    position = _inside(position, size, padding_mode, corners)
    if mode == "nearest":
        return [(position.detach().round(), None)]
    low = position.detach().floor()
    return [(low, low + 1 - position), (low + 1, position - low)]


@public("functional")
@autocasts("grid_sampler")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """input (n, c, h, w) at the places grid (n, ho, wo, 2), whose last axis is x, y in [-1, 1]:
    (n, c, ho, wo). Or volumes at (n, do, ho, wo, 3).

    `mode`: bilinear, nearest or bicubic (images only). `padding_mode`, for places outside: zeros,
    border or reflection. Raises ValueError and RuntimeError for what does not fit.
    """
    _check_grid(input, grid, mode, padding_mode)
    if align_corners is None:
        warnings.warn(_ADVICE, stacklevel=level_outside())
    corners = bool(align_corners)
    input, grid = stepwise(input), stepwise(grid)
    n, c, *space = input.shape
    ndim, out = len(space), grid.shape[1:-1]
    axes = []
    for axis, size in enumerate(space):
        position = _to_elements(grid[..., ndim - 1 - axis], size, corners)
        axes.append(_taps(position, size, mode, padding_mode, corners))
    flat = input.reshape(n, c, math.prod(space))
    count = math.prod(out)
    result: Any = None
    for choice in product(*axes):
        index: Any = 0
        weight: Any = None
        valid: Any = None
        for (place, factor), size in zip(choice, space):
            index = index * size + place.clamp(0, size - 1).nan_to_num().long()
            if padding_mode == "zeros":
                within = (place >= 0) & (place < size)
                valid = within if valid is None else valid & within
            if factor is not None:
                weight = factor if weight is None else weight * factor
        looked = flat.gather(2, index.reshape(n, 1, count).expand(n, c, count))
        term = looked.reshape(n, c, *out)
        if weight is not None:
            term = term * weight.unsqueeze(1)
        if valid is not None:
            term = term.where(valid.unsqueeze(1), term.new_zeros(()))
        result = term if result is None else result + term
    if mode == "nearest" and grid.requires_grad:
        return result + grid[..., :0].sum()  # a gradient of zeros
    return result.contiguous()


def _check_grid(input: Tensor, grid: Tensor, mode: str, padding_mode: str) -> None:
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if input.dtype is not grid.dtype:
        raise RuntimeError(
            "grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{input.dtype!r} and grid has {grid.dtype!r}"
        )
    ndim = input.ndim - 2
    if ndim not in (2, 3) or grid.ndim != input.ndim:
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[0] != input.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != ndim:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {ndim} in last dimension, but got grid "
            f"with sizes {list(grid.shape)}"
        )
    if 0 in input.shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has "
            f"sizes {list(input.shape)}"
        )
    if mode == "bicubic" and ndim != 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


@public("torch")
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sample` with its modes as numbers."""
    mode = ("bilinear", "nearest", "bicubic")[interpolation_mode]
    padding = ("zeros", "border", "reflection")[padding_mode]
    return grid_sample(input, grid, mode, padding, align_corners)
