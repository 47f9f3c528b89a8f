"""Tensors joined: cat, stack and their kin."""

from __future__ import annotations

import itertools
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, wrap
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.shape import contiguous_strides, normalize_dim
from tensorflow_lite_clone.core.strides import is_channels_last, suggested_strides
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops.decorators.out import with_out
from tensorflow_lite_clone.ops.pointwise._operands import cast, operand_dtype
from tensorflow_lite_clone.ops.shape.views import (
    _one,
    _three,
    _two,
    expand,
    flatten,
    reshape,
)
from tensorflow_lite_clone.tensor import Tensor


def _joined(shape: tuple, operands: tuple) -> tuple:
    """channels_last where all operands are."""
    if all([len(own) in (4, 5) and is_channels_last(own, strides) for own, strides in operands]):
        return suggested_strides(shape, operands[0])
    return contiguous_strides(shape)


class Cat(Op):
    """Arrays one after the other along a dimension, where they have the given sizes."""

    layout_agnostic = True

    def layout(shape, operands, parameters):
        return _joined(shape, operands)

    def forward(F, *xs, axis, sizes):
        return F.concat(xs, axis=axis)

    def backward(F, g, *, axis, sizes, needs):
        before = (slice(None),) * axis
        grads = []
        start = 0
        for size, need in zip(sizes, needs):
            grads.append(g[(*before, slice(start, start + size))] if need else None)
            start += size
        return tuple(grads)


class Stack(Op):
    """Arrays of one shape along a new dimension."""

    def layout(shape, operands, parameters):
        axis, own = parameters["axis"], operands[0][0]
        if axis == len(own):
            return contiguous_strides(shape)
        longer = (*own[:axis], shape[axis] * own[axis], *own[axis + 1 :])
        strides = _joined(longer, operands)  # PyTorch's is a view of what `cat` gives
        return (*strides[:axis], own[axis] * strides[axis], *strides[axis:])

    def forward(F, *xs, axis):
        return F.stack(xs, axis=axis)

    def backward(F, g, *, axis, needs):
        before = (slice(None),) * axis
        return tuple([g[(*before, i, ...)] if need else None for i, need in enumerate(needs)])


def _tensors(name: str, tensors: Any) -> list:
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {type(tensor).__name__}"
            )
    return list(tensors)


def _of_one_dtype(tensors: list) -> list:
    first = tensors[0]._storage.physical.dtype
    for tensor in tensors:
        if tensor._storage.physical.dtype != first:
            dtype = operand_dtype(*tensors)
            return [cast(tensor, dtype) for tensor in tensors]
    return tensors


@public("torch", names=("cat", "concat", "concatenate"))
@with_out
def cat(tensors: Any, dim: int = 0) -> Tensor:
    """The tensors one after the other along `dim`, in their promoted dtype.

    All other sizes must be equal; one-dimensional empty tensors are left out. Raises RuntimeError
    for sizes that do not match and for zero-dim tensors, ValueError for an empty list.
    """
    given = _tensors("cat", tensors)
    if not given:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    shapes = [tensor._storage.physical.shape for tensor in given]
    if () in shapes:
        raise RuntimeError(
            f"zero-dimensional tensor (at position {shapes.index(())}) cannot be concatenated"
        )
    given = _of_one_dtype(given)
    left_out = None
    if (0,) in shapes:
        left_out = next((x for x, s in zip(given, shapes) if s == (0,) and x.requires_grad), None)
        kept = [tensor for tensor, shape in zip(given, shapes) if shape != (0,)] or given[:1]
        given, shapes = kept, [tensor._storage.physical.shape for tensor in kept]
    first = shapes[0]
    axis = normalize_dim(dim, len(first))
    before, after = first[:axis], first[axis + 1 :]
    for place, shape in enumerate(shapes):
        if shape[:axis] == before and shape[axis + 1 :] == after:
            continue
        if len(shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}"
            )
        for other, (have, want) in enumerate(zip(shape, first)):
            if have != want and other != axis:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size "
                    f"{want} but got size {have} for tensor number {place} in the list."
                )
    joined = apply(Cat, *given, axis=axis, sizes=tuple([shape[axis] for shape in shapes]))
    # What is left out has a gradient all the same.
    return joined if left_out is None else joined + left_out.sum()


def _chunked_axis(tensors: list[Tensor], dim: int) -> int:
    """The axis that `dim` means for all tensors; RuntimeError where they do not fit together."""
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if not shapes:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if any([0 in shape for shape in shapes]):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    fewest = min(map(len, shapes))
    if dim < 0 and fewest != max(map(len, shapes)):
        raise RuntimeError(
            "_chunk_cat expects non-negative dim when input tensors have different ndims"
        )
    axis = dim + fewest if dim < 0 else dim
    if not 0 <= axis < fewest:
        raise RuntimeError(f"_chunk_cat expects dim < ndim for all input tensors, got {dim}")
    if any([shape[:axis] != shapes[0][:axis] for shape in shapes]):
        raise RuntimeError(
            f"_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors, got {shapes}"
        )
    return axis


@public("torch")
@with_out
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Tensor:
    """Every tensor in `num_chunks` chunks along `dim`, the last ones filled up with zeros, and the
    chunks of all tensors side by side: (..., num_chunks, elements)."""
    given = _tensors("_chunk_cat", tensors)
    axis = _chunked_axis(given, dim)
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    rows = []
    for tensor in given:
        shape = tensor._storage.physical.shape
        missing = -shape[axis] % num_chunks
        filling = tensor.new_zeros((*shape[:axis], missing, *shape[axis + 1 :]))
        rows.append(reshape(cat([tensor, filling], axis), (*shape[:axis], num_chunks, -1)))
    return cat(rows, -1)


@public("torch")
@with_out
def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Tensors of one shape along a new dimension `dim`, in their promoted dtype."""
    given = _tensors("stack", tensors)
    if not given:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = given[0]._storage.physical.shape
    axis = normalize_dim(dim, len(first) + 1)
    for place, tensor in enumerate(given):
        shape = tensor._storage.physical.shape
        if shape != first:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 "
                f"and {list(shape)} at entry {place}"
            )
    return apply(Stack, *_of_one_dtype(given), axis=axis)


@public("torch")
@with_out
def hstack(tensors: Any) -> Tensor:
    """The tensors side by side: along the second dimension, one-dimensional ones in a row."""
    given = [_one(tensor) for tensor in _tensors("hstack", tensors)]
    if not given:
        raise RuntimeError("hstack expects a non-empty TensorList")
    return cat(given, 0 if given[0]._storage.physical.ndim == 1 else 1)


@public("torch", names=("vstack", "row_stack"))
@with_out
def vstack(tensors: Any) -> Tensor:
    """The tensors below each other; one-dimensional ones are rows."""
    given = [_two(tensor) for tensor in _tensors("vstack", tensors)]
    if not given:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat(given, 0)


@public("torch")
@with_out
def dstack(tensors: Any) -> Tensor:
    """The tensors behind each other, along the third dimension."""
    given = [_three(tensor) for tensor in _tensors("dstack", tensors)]
    if not given:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat(given, 2)


@public("torch")
@with_out
def column_stack(tensors: Any) -> Tensor:
    """The tensors side by side; one-dimensional ones are columns."""
    given = _tensors("column_stack", tensors)
    if not given:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    columns = [
        reshape(tensor, (tensor._storage.physical.size, 1)) if tensor.ndim <= 1 else tensor
        for tensor in given
    ]
    return hstack(columns)


@public("torch")
def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix with the given matrices along its diagonal and zeros elsewhere."""
    blocks = []
    for place, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"block_diag(): expected Tensors, but argument {place} is a {type(tensor).__name__}"
            )
        if tensor.ndim > 2:
            raise RuntimeError(
                "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                f"{place} has {tensor.ndim} dimensions"
            )
        blocks.append(tensor)
    blocks = [_two(block) for block in _of_one_dtype(blocks)]
    width = sum([block.shape[1] for block in blocks])
    rows = []
    left = 0
    for block in blocks:
        height, columns = block.shape
        right = width - left - columns
        rows.append(cat([_zeros(block, height, left), block, _zeros(block, height, right)], 1))
        left += columns
    return cat(rows, 0)


def _zeros(like: Tensor, *size: int) -> Tensor:
    return like.new_zeros(size)


def _vectors(name: str, tensors: tuple) -> list:
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return _tensors(name, tensors)


@public("torch")
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Coordinate grids of coordinate vectors; the first two dimensions are exchanged for "xy"."""
    given = _vectors("meshgrid", tensors)
    if not given:
        raise ValueError("meshgrid expects a non-empty TensorList")
    dtype: DType = given[0].dtype
    for tensor in given:
        if tensor.ndim > 1:
            raise RuntimeError(
                "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: shape "
                f"{list(tensor.shape)}"
            )
        if tensor.dtype is not dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    swap = indexing == "xy" and len(given) > 1
    if swap:
        given[:2] = given[1::-1]
    shape = tuple([tensor._storage.physical.size for tensor in given])
    grids = []
    for axis, tensor in enumerate(given):
        place = (1,) * axis + (shape[axis],) + (1,) * (len(shape) - axis - 1)
        grids.append(expand(reshape(tensor, place), shape))
    if swap:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def _expect_vector(tensor: Tensor) -> None:
    if tensor.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor.shape)}")


@public("torch")
def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element of each vector, as rows."""
    given = _vectors("cartesian_prod", tensors)
    for tensor in given:
        _expect_vector(tensor)
    if len(given) == 1:
        return given[0]
    return stack([flatten(grid) for grid in meshgrid(*given, indexing="ij")], 1)


@public("torch")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All subsets of `r` elements of a vector, as rows, in the order of their positions."""
    _expect_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(pick(range(input.shape[0]), r))
    backend = input._storage.backend
    index = backend.F.reshape(backend.F.asarray(places, dtype=backend.F.int64), (len(places), r))
    return input[wrap(index, backend)]
