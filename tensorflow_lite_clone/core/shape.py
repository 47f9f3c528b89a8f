"""Pure shape arithmetic: no arrays, only integers and tuples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.core.signature import expect_long, is_int, whole_number

Shape = tuple[int, ...]
LARGEST_STORAGE = (1 << 63) - 1  # bytes


class Size(tuple):
    """A tensor's shape: a tuple of ints printed as ``torch.Size([2, 3])``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        return math.prod(self)

    def __getitem__(self, item: Any) -> Any:
        result = tuple.__getitem__(self, item)
        return Size(result) if isinstance(item, slice) else result

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __mul__(self, other: Any) -> Size:
        return Size(tuple.__mul__(self, other))


def normalize_dim(dim: int, ndim: int) -> int:
    """`dim` in ``[0, ndim)``; a zero-dim tensor counts as one-dimensional.

    Raises IndexError outside ``[-ndim, ndim)``, TypeError when `dim` is no integer, and ValueError
    for one of more than 64 bits.
    """
    if type(dim) is not int:
        dim = whole_number("argument 'dim'", dim)
    bound = ndim or 1
    if not -bound <= dim < bound:
        expect_long("argument 'dim'", dim)
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], "
            f"but got {dim})"
        )
    return dim % bound


def normalize_dims(dims: Any, ndim: int) -> Shape:
    """Every dim in ``[0, ndim)``; raises RuntimeError when one appears twice."""
    if is_int(dims):
        return (normalize_dim(dims, ndim),)
    result = tuple([normalize_dim(dim, ndim) for dim in dims])
    if len(set(result)) != len(result):
        twice = next(dim for dim in result if result.count(dim) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return result


def broadcast_shapes(*shapes: Sequence[int]) -> Shape:
    """The shape to which all `shapes` broadcast; raises RuntimeError when they do not."""
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        offset = ndim - len(shape)
        for position, size in enumerate(shape, offset):
            if size == 1 or size == result[position]:
                continue
            if result[position] != 1:
                raise RuntimeError(
                    f"The size of tensor a ({result[position]}) must match the size of tensor b "
                    f"({size}) at non-singleton dimension {position}"
                )
            result[position] = size
    return tuple(result)


def infer_size(shape: Sequence[int], numel: int) -> Shape:
    """`shape` with its one -1 replaced so that it holds `numel` elements."""
    shape = tuple(shape)
    known, unknown = 1, None
    for position, size in enumerate(shape):
        if size == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = position
        elif size < 0:
            raise RuntimeError(f"invalid shape dimension {size}")
        else:
            known *= size
    if unknown is None:
        if known != numel:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
        return shape
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            f"unspecified dimension size -1 can be any value and is ambiguous"
        )
    if numel % known:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    return (*shape[:unknown], numel // known, *shape[unknown + 1 :])


def expect_storage(shape: Sequence[int], itemsize: int, strides: Sequence[int] = ()) -> None:
    """RuntimeError for sizes of which no memory could hold the elements."""
    if math.prod(shape) * itemsize > LARGEST_STORAGE or min(shape, default=0) < 0:
        with_strides = f" and strides={list(strides)}" if strides else ""
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)}{with_strides}"
        )


def contiguous_strides(shape: Sequence[int]) -> Shape:
    """Row-major strides, in elements, as torch counts them (sizes of zero count as one)."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def reduced_axes(shape: Sequence[int], target: Sequence[int]) -> Shape:
    """The axes of `shape` along which `target` was broadcast to it."""
    offset = len(shape) - len(target)
    return tuple(
        axis
        for axis, size in enumerate(shape)
        if axis < offset or (target[axis - offset] == 1 and size != 1)
    )
