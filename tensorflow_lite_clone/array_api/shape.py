"""The standard's manipulation functions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._register import word
from tensorflow_lite_clone.autograd.apply import apply, apply_view
from tensorflow_lite_clone.core.shape import broadcast_shapes as _broadcast_shapes
from tensorflow_lite_clone.core.shape import normalize_dims
from tensorflow_lite_clone.ops import join, memory, rearrange, slices
from tensorflow_lite_clone.ops import shape as views
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
    return views._get_mT(x)


@word
def moveaxis(x: Tensor, source: Any, destination: Any, /) -> Tensor:
    """Dimensions moved to other places."""
    return views.movedim(x, source, destination)


@word
def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """With a dimension of size one at `axis`."""
    return views.unsqueeze(x, axis)


@word
def squeeze(x: Tensor, /, axis: Any) -> Tensor:
    """Without the dimensions `axis`; ValueError unless their size is one."""
    shape = x._storage.array.shape
    axes = normalize_dims(axis, len(shape))
    if any([shape[a] != 1 for a in axes]):
        raise ValueError(f"squeeze: dimensions {axis} of shape {tuple(shape)} must have size one")
    return apply_view(views.Squeeze, x, axis=axes, shape=shape)


@word
def broadcast_to(x: Tensor, /, shape: Any) -> Tensor:
    """`x` expanded to `shape`."""
    return views.expand(x, tuple(shape))


@word
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """All arrays expanded to their common shape."""
    return views.broadcast_tensors(*arrays)


@word
def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which all shapes broadcast."""
    return _broadcast_shapes(*shapes)


@word
def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays joined along `axis`; flattened first for None."""
    if axis is None:
        arrays, axis = [views.reshape(x, (-1,)) for x in arrays], 0
    return join.cat(arrays, axis)


@word
def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays joined along a new dimension."""
    return join.stack(arrays, axis)


@word
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """All slices along `axis`."""
    return slices.unbind(x, axis)


@word
def flip(x: Tensor, /, *, axis: Any = None) -> Tensor:
    """Elements in reversed order along `axis`, by default along all."""
    axes = range(x.ndim) if axis is None else axis
    return rearrange.flip(x, axes if hasattr(axes, "__index__") else tuple(axes))


@word
def roll(x: Tensor, /, shift: Any, *, axis: Any = None) -> Tensor:
    """Elements shifted cyclically along `axis`, by default along the flattened array."""
    return rearrange.roll(x, shift, axis)


@word
def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Every element repeated."""
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
    return join.meshgrid(*arrays, indexing=indexing)


@word
def copy(x: Tensor, /) -> Tensor:
    """A contiguous copy."""
    return apply(memory.Clone, x)


@word
def as_strided(x: Tensor, shape: tuple, strides: tuple, offset: int = 0) -> Tensor:
    """A view of any geometry; `offset` counts from x's first element."""
    storage = x._storage
    source = (storage.array.shape, storage.backend.strides(storage.array))
    return apply_view(
        slices.AsStrided, x, shape=tuple(shape), strides=tuple(strides), offset=offset,
        source=source,
    )  # fmt: skip
