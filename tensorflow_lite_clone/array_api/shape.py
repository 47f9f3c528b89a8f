"""The standard's manipulation functions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._axes import one_axis, several_axes
from tensorflow_lite_clone.array_api._promotion import alike
from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply, apply_view
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.shape import broadcast_shapes as _broadcast_shapes
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.shape import join, memory, rearrange, slices, views
from tensorflow_lite_clone.tensor import Tensor


@word
def reshape(x: Tensor, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """`x` in another shape; `copy` may demand a copy or forbid one (ValueError)."""
    if copy:
        return views.reshape(x.clone(), shape)
    if copy is False:
        try:
            return views.view(x, shape)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
    return views.reshape(x, shape)


@word
def permute_dims(x: Tensor, /, axes: Any) -> Tensor:
    """Dimensions in the order `axes`."""
    return views.permute(x, axes)


@word
def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two dimensions exchanged."""
    return x.mT


@word
def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Dimensions moved to other places."""
    return views.movedim(x, source, destination)


@word
def expand_dims(x: Tensor, /, axis: Any) -> Tensor:
    """With a dimension of size one at `axis`, or at each of several places in the result.

    Raises IndexError for places out of range or named twice.
    """
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    try:
        places = several_axes(axis, x.ndim + count)
    except ValueError as error:
        raise IndexError(str(error)) from None
    for place in places:
        x = views.unsqueeze(x, place)
    return x


@word
def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Without the dimensions `axis`; ValueError unless their size is one."""
    shape = x._storage.physical.shape
    axes = several_axes(axis, len(shape))
    if any([shape[a] != 1 for a in axes]):
        raise ValueError(f"squeeze: dimensions {axis} of shape {tuple(shape)} must have size one")
    return apply_view(views.Squeeze, x, axis=axes, shape=shape)


@word
def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """`x` expanded to `shape`."""
    shape = tuple(shape)
    if min(shape, default=0) < 0:
        raise ValueError(f"broadcast_to: shape {shape} has a negative size")
    return views.expand(x, shape)


@word
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """All arrays expanded to their common shape."""
    return views.broadcast_tensors(*arrays)


@word
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which all shapes broadcast; ValueError when they do not."""
    try:
        return _broadcast_shapes(*shapes)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@word
def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along `axis`, in their common dtype; flattened first for None."""
    arrays = alike(arrays)
    if axis is None:
        arrays, axis = [views.reshape(x, (-1,)) for x in arrays], 0
    ndim = arrays[0].ndim
    if any([x.ndim != ndim for x in arrays]):
        raise ValueError(f"concat: arrays of {[x.ndim for x in arrays]} dimensions do not fit")
    return join.cat(arrays, one_axis(axis, ndim))


@word
def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays joined along a new dimension, in their common dtype."""
    return join.stack(alike(arrays), axis)


@word
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """All slices along `axis`."""
    return slices.unbind(x, one_axis(axis, x.ndim))


@word
def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Elements in reversed order along `axis`, by default along all."""
    return rearrange.flip(x, several_axes(axis, x.ndim))


@word
def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements shifted cyclically along `axis`, by default along the flattened array.

    One shift holds for all axes; of several each has its axis.
    """
    if axis is None:
        return rearrange.roll(x, shift)
    axes = (axis,) if hasattr(axis, "__index__") else tuple(axis)
    shifts = (shift,) * len(axes) if hasattr(shift, "__index__") else tuple(shift)
    axes = tuple([one_axis(one, x.ndim) for one in axes])
    return rearrange.roll(x, shifts, axes) if axes else copy(x)


@word
def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Every element along `axis` repeated, as often as `repeats` says for all or for each.

    Without an axis it is the flattened array's. A number of repeats for each must be known on the
    host, so a GPU is waited for.
    """
    if isinstance(repeats, Tensor):
        if repeats.dtype.kind not in "iu":
            raise TypeError(f"repeat: repeats must be integers, not {repeats.dtype.name}")
        repeats = cast(repeats, int64)
    axis = None if axis is None else one_axis(axis, x.ndim)
    return rearrange.repeat_interleave(x, repeats, axis)


@word
def tile(x: Tensor, repetitions: Any, /) -> Tensor:
    """Copies of `x` side by side."""
    return rearrange.tile(x, tuple(repetitions))


@word
def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle, zeros elsewhere."""
    return rearrange.tril(x, k)


@word
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle, zeros elsewhere."""
    return rearrange.triu(x, k)


@word
def diag(x: Tensor, /, k: int = 0) -> Tensor:
    """A matrix with the vector x on diagonal number `k`, or that diagonal of a matrix.

    It is NumPy's, not the standard's: SciPy asks it of every namespace.
    """
    return rearrange.diag(x, k)


@word
def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinate matrices of coordinate vectors."""
    if not arrays:
        return ()
    return join.meshgrid(*arrays, indexing=indexing)


@word
def copy(x: Tensor, /) -> Tensor:
    """A contiguous copy."""
    return apply(memory.Clone, x)


@word
def as_strided(x: Tensor, shape: tuple, strides: tuple, offset: int = 0) -> Tensor:
    """A view of any geometry; `offset` counts from x's first element."""
    storage = x._storage
    source = (storage.physical.shape, storage.backend.strides(storage.array))
    return apply_view(
        slices.AsStrided, x, shape=tuple(shape), strides=tuple(strides), offset=offset,
        source=source,
    )  # fmt: skip
