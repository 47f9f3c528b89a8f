"""`gradient`: derivatives of sampled functions by finite differences."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.dtypes import uint8
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import normalize_dims
from tensorflow_lite_clone.ops.reduce._arguments import as_floating
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.ops.shape.slices import narrow
from tensorflow_lite_clone.tensor import Tensor


@public("torch")
def gradient(
    input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """The derivatives along every dimension, or along `dim`, of a function's values on a grid.

    Central differences inside, one-sided ones of order `edge_order` (1 or 2) at the ends.
    `spacing` is the distance of the points, one per dimension, or a tensor of coordinates per
    dimension. Raises RuntimeError for too few points, or lists that do not fit.
    Source: Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids" (1988).
    """
    if isinstance(spacing, Tensor):
        if spacing.ndim:
            raise TypeError(
                "gradient() received an invalid combination of arguments: spacing is a number, or "
                "a list of numbers or tensors"
            )
        spacing = spacing.item()
    steps = _steps(input, spacing, dim)
    axes = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = list(normalize_dims(axes, input.ndim)) if len(axes) else []
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if input.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    if any(input.shape[axis] < edge_order + 1 for axis in axes):
        raise RuntimeError(
            "torch.gradient expected each dimension size to be at least edge_order+1"
        )
    steps = steps * len(axes) if len(steps) == 1 else steps
    x = as_floating(input)
    return tuple([_along(x, axis, step, edge_order) for axis, step in zip(axes, steps)])


def _steps(input: Tensor, spacing: Any, dim: Any) -> list[Any]:
    """One spacing for all dimensions, or one for each; RuntimeError for other numbers of them."""
    if not isinstance(spacing, (list, tuple)):
        return [1 if spacing is None else spacing]
    if dim is None and len(spacing) != input.ndim:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
            f"equal to 'self.dim() = {input.ndim}', since dim argument was not given, but got a "
            f"list of length {len(spacing)}"
        )
    count = 1 if isinstance(dim, int) else input.ndim if dim is None else len(dim)
    if len(spacing) != count:
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
            "arguments to have the same length, but got a spacing argument of length "
            f"{len(spacing)} and a dim argument of length {count}."
        )
    return list(spacing)


def _along(x: Tensor, axis: int, step: Any, order: int) -> Tensor:
    size = x.shape[axis]

    def at(start: int, length: int = 1) -> Tensor:
        return narrow(x, axis, start, length)

    if isinstance(step, Tensor):
        first, inner, last = _uneven(at, axis, x.ndim, step, size, order)
    else:
        inner = (at(2, size - 2) - at(0, size - 2)) / (2 * step) if size > 2 else None
        if order == 1:
            first, last = (at(1) - at(0)) / step, (at(size - 1) - at(size - 2)) / step
        else:
            first = (-1.5 * at(0) + 2 * at(1) - 0.5 * at(2)) / step
            last = (0.5 * at(size - 3) - 2 * at(size - 2) + 1.5 * at(size - 1)) / step
    return cat([part for part in (first, inner, last) if part is not None], axis)


def _uneven(at: Any, axis: int, ndim: int, places: Tensor, size: int, order: int) -> tuple:
    """As in `_along`, for points at the coordinates `places`, (size,).

    As in PyTorch, one row of differences may serve several, and otherwise the sizes must fit.
    """
    if places.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an "
            f"element with {places.ndim} dimensions!"
        )
    distances = places[1:] - places[:-1]
    shape = [1] * ndim
    shape[axis] = -1
    before, after = distances[:-1].reshape(shape), distances[1:].reshape(shape)
    both = before + after
    inner = (
        at(0, size - 2) * (-after / (before * both))
        + at(1, size - 2) * ((after - before) / (before * after))
        + at(2, size - 2) * (before / (after * both))
    )
    if order == 1:
        first = (at(1) - at(0)) / distances[0]
        last = (at(size - 1) - at(size - 2)) / distances[-1]
        return first, inner, last
    return (
        _edge(at(0), at(1), at(2), distances[0], distances[1]),
        inner,
        -_edge(at(size - 1), at(size - 2), at(size - 3), distances[-1], distances[-2]),
    )


def _edge(x0: Tensor, x1: Tensor, x2: Tensor, h1: Tensor, h2: Tensor) -> Tensor:
    """The derivative at x0 from three points at distances h1 and then h2."""
    both = h1 + h2
    return -(x0 * ((h1 + both) / (h1 * both))) + x1 * (both / (h1 * h2)) - x2 * (h1 / (h2 * both))
