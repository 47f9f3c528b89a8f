"""Geometry of views: sizes and strides, in elements, without any array."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from tensorflow_lite_clone.core.shape import Shape, contiguous_strides, infer_size, normalize_dim
from tensorflow_lite_clone.core.signature import classes, expect_longs, whole_number

Geometry = tuple[Shape, Shape]


class MemoryFormat:
    """An order of a tensor's dimensions in memory, as ``torch.memory_format``."""

    __slots__ = ("name", "ndim", "order")

    def __init__(self, name: str, order: Shape = ()) -> None:
        self.name = name
        self.order = order  # the dimensions from the slowest to the fastest
        self.ndim = len(order)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


classes["MemoryFormat"] = MemoryFormat

contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last", (0, 2, 3, 1))
channels_last_3d = MemoryFormat("channels_last_3d", (0, 2, 3, 4, 1))


def view_strides(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> Any:
    """The strides that show memory of (shape, strides) as a tensor of the shape `wanted`.

    None when there are none. Both shapes have the same number of elements.
    """
    if not shape:
        return (1,) * len(wanted)
    if 0 in shape:
        return tuple(strides) if tuple(shape) == tuple(wanted) else contiguous_strides(wanted)
    result = [0] * len(wanted)
    place = len(wanted) - 1
    have = 1  # elements of the present run of dimensions that lie evenly in memory
    step = strides[-1]  # between neighbours of this run
    for dim in range(len(shape) - 1, -1, -1):
        have *= shape[dim]
        if dim and (shape[dim - 1] == 1 or strides[dim - 1] == have * step):
            continue  # the next slower dimension prolongs the run
        filled = 1
        while place >= 0 and (filled < have or wanted[place] == 1):
            result[place] = filled * step
            filled *= wanted[place]
            place -= 1
        if filled != have:
            return None
        if dim:
            have, step = 1, strides[dim - 1]
    return tuple(result) if place < 0 else None


def expanded(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> Geometry:
    """Sizes and strides of a tensor expanded to `wanted`, in which -1 keeps a size.

    Raises RuntimeError when a size other than one would have to change.
    """
    new = len(wanted) - len(shape)
    if new < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(wanted)}) must be greater or equal to "
            f"the number of dimensions in the tensor ({len(shape)})"
        )
    sizes, steps = list(wanted), [0] * len(wanted)
    if not shape and -1 not in wanted:
        return tuple(sizes), tuple(steps)
    for dim in range(len(wanted) - 1, -1, -1):
        old = dim - new
        if old >= 0:
            size, step = shape[old], strides[old]
        else:
            size, step = 1, sizes[dim + 1] * steps[dim + 1] if dim + 1 < len(sizes) else 1
        target = wanted[dim]
        if target == -1:
            if old < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {dim}"
                )
            target = size
        if size != target:
            if size != 1 or target < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({target}) must match the existing size "
                    f"({size}) at non-singleton dimension {dim}.  Target sizes: {list(wanted)}.  "
                    f"Tensor sizes: {list(shape)}"
                )
            step = 0
        sizes[dim], steps[dim] = target, step
    return tuple(sizes), tuple(steps)


def unsqueezed(shape: Sequence[int], strides: Sequence[int], dim: int) -> Geometry:
    """Sizes and strides with a dimension of size one inserted before `dim`."""
    step = shape[dim] * strides[dim] if dim < len(shape) else 1
    return (*shape[:dim], 1, *shape[dim:]), (*strides[:dim], step, *strides[dim:])


def unfolded(
    shape: Sequence[int], strides: Sequence[int], dim: int, size: int, step: int
) -> Geometry:
    """Sizes and strides of windows of `size` every `step` along `dim`, in a new last dimension.

    Raises RuntimeError when the window does not fit.
    """
    length = shape[dim] if shape else 1
    if size > length:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {length} but size is {size}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if not shape:
        return (size,), (1,)
    count = (length - size) // step + 1
    sizes = (*shape[:dim], count, *shape[dim + 1 :], size)
    return sizes, (*strides[:dim], strides[dim] * step, *strides[dim + 1 :], strides[dim])


def indexed(shape: Sequence[int], strides: Sequence[int], items: tuple) -> tuple:
    """Sizes, strides and offset of a tensor indexed with ints, slices, None and one Ellipsis."""
    sizes, steps = list(shape), list(strides)
    named = sum([item is not None and item is not Ellipsis for item in items])
    dim = offset = 0
    for item in items:
        if item is None:
            steps.insert(dim, sizes[dim] * steps[dim] if dim < len(sizes) else 1)
            sizes.insert(dim, 1)
            dim += 1
        elif item is Ellipsis:
            dim += len(shape) - named
        elif type(item) is slice:
            start, stop, step = item.indices(sizes[dim])
            offset += start * steps[dim]
            sizes[dim] = len(range(start, stop, step))
            steps[dim] *= step
            dim += 1
        else:
            offset += (item + sizes[dim] if item < 0 else item) * steps[dim]
            del sizes[dim], steps[dim]
    return tuple(sizes), tuple(steps), offset


def diagonal(
    shape: Sequence[int], strides: Sequence[int], offset: int, dim1: int, dim2: int
) -> tuple:
    """Sizes, strides and offset of the diagonals of planes (dim1, dim2), as the last dimension."""
    first, second = normalize_dim(dim1, len(shape)), normalize_dim(dim2, len(shape))
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if offset >= 0:
        length = min(shape[first], shape[second] - offset)
    else:
        length = min(shape[first] + offset, shape[second])
    start = 0
    if length > 0:
        start = offset * strides[second] if offset >= 0 else -offset * strides[first]
    rest = [dim for dim in range(len(shape)) if dim not in (first, second)]
    sizes = (*[shape[dim] for dim in rest], max(length, 0))
    return sizes, (*[strides[dim] for dim in rest], strides[first] + strides[second]), start


def expect_format(value: Any) -> None:
    """Raise TypeError for what is no memory format."""
    if not isinstance(value, MemoryFormat):
        raise TypeError(
            f"argument 'memory_format' must be torch.memory_format, not {type(value).__name__}"
        )


def format_strides(shape: Sequence[int], memory_format: MemoryFormat) -> Shape:
    """The strides of a dense tensor in a memory format; RuntimeError for a wrong `ndim`."""
    if memory_format is contiguous_format:
        return contiguous_strides(shape)
    expect_format(memory_format)
    if len(shape) != memory_format.ndim:
        raise RuntimeError(
            f"required rank {memory_format.ndim} tensor to use {memory_format.name} format"
        )
    result = [0] * len(shape)
    step = 1
    for dim in reversed(memory_format.order):
        result[dim] = step
        step *= shape[dim]
    return tuple(result)


@lru_cache(4096)
def lies_channels_last(shape: Shape, strides: Shape, itemsize: int) -> bool | None:
    """Whether four dense axes lie channels_last rather than row-major; None where neither holds.

    False where both do. The strides are in bytes.
    """
    steps = [stride // itemsize for stride in strides]
    if has_format(shape, steps, contiguous_strides(shape)):
        return False
    return True if has_format(shape, steps, format_strides(shape, channels_last)) else None


def has_format(shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]) -> bool:
    """Whether a tensor has the strides `wanted`, up to dimensions of size one."""
    if 0 in shape:
        return True
    return all([n == 1 or s == w for n, s, w in zip(shape, strides, wanted)])


@lru_cache(4096)
def is_channels_last(shape: Shape, strides: Shape) -> bool:
    """Whether PyTorch takes four or five axes for channels_last: not where contiguous would do too.

    The strides may be in any unit.
    """
    if strides[1] == 0:
        return False
    step = 0
    for dim in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[dim] == 0 or strides[dim] < step or (dim == 0 and step == strides[1]):
            return False
        step = strides[dim] * max(shape[dim], 1)
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements lie without gaps or overlaps, in any order of dimensions."""
    step = 1
    for stride, size in sorted([(s, n) for n, s in zip(shape, strides) if n > 1]):
        if stride != step:
            return False
        step *= size
    return True


def may_overlap(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether several elements may be one place in memory; it may err on the side of yes."""
    reach = 0  # of the faster dimensions
    for stride, size in sorted([(s, n) for n, s in zip(shape, strides) if n > 1]):
        if stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def dense_strides(shape: Sequence[int], strides: Sequence[int]) -> Shape:
    """Strides without gaps or overlaps whose order of dimensions is that of `strides`."""
    return tuple(strides) if is_dense(shape, strides) else ordered_strides(shape, (strides,))


@lru_cache(4096)
def elementwise_strides(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """The strides of a new elementwise result of `shape`, from the operands' shapes and strides.

    Operands of one shape that lie alike and without gaps hand their strides on. Otherwise the
    result is dense, and the first operand that tells two dimensions apart says which is slower.
    """
    if all([own == shape for own, _ in operands]):
        formats = [contiguous_strides(shape)]
        if len(shape) == channels_last.ndim:
            formats.append(format_strides(shape, channels_last))
        for strides in formats:
            if all([has_format(shape, own, strides) for _, own in operands]):
                return strides
        strides = operands[0][1]
        if is_dense(shape, strides) and all([own == strides for _, own in operands]):
            return strides
    return ordered_strides(shape, [_broadcast_strides(shape, *operand) for operand in operands])


def _broadcast_strides(wanted: Shape, shape: Shape, strides: Shape) -> Shape:
    new = len(wanted) - len(shape)
    steps = [0 if n == 1 != m else s for n, m, s in zip(shape, wanted[new:], strides)]
    return (*[0] * new, *steps)


def ordered_strides(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> Shape:
    """Dense strides whose dimensions are ordered as those of operands (strides of that shape)."""
    order = list(range(len(shape) - 1, -1, -1))  # from the fastest dimension to the slowest
    for start in range(1, len(order)):
        here = start
        for place in range(start - 1, -1, -1):
            longer = _longer(shape, operands, order[place], order[here])
            if longer < 0:
                break
            if longer > 0:
                order[place], order[here] = order[here], order[place]
                here = place
    return permuted_strides(shape, order[::-1])


def permuted_strides(shape: Sequence[int], order: Sequence[int]) -> Shape:
    """Dense strides of a shape whose dimensions lie in this order, the slowest first."""
    result = [0] * len(shape)
    step = 1
    for dim in reversed(order):
        result[dim] = step
        step *= max(shape[dim], 1)
    return tuple(result)


def _longer(
    shape: Sequence[int], operands: Sequence[Sequence[int]], first: int, second: int
) -> int:
    """Whether `first` takes longer steps than `second` (1), shorter ones (-1) or neither (0)."""
    for strides in operands:
        one, two = strides[first], strides[second]
        if one == 0 or two == 0:
            continue  # an expanded dimension may stand anywhere
        if one != two:
            return 1 if one > two else -1
        if shape[first] > shape[second]:
            return 1
    return 0


@lru_cache(4096)
def suggested_strides(shape: Shape, like: Geometry) -> Shape:
    """The strides of a new tensor of `shape` in the memory format of one of as many dimensions.

    That is channels_last or row-major.
    """
    if len(shape) in (4, 5) and is_channels_last(*like):
        return format_strides(shape, channels_last if len(shape) == 4 else channels_last_3d)
    return contiguous_strides(shape)


def gradient_strides(shape: Shape, strides: Shape) -> Shape:
    """The strides of the gradient of a leaf: its own where it is dense, else row-major."""
    return strides if is_dense(shape, strides) else contiguous_strides(shape)


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How many elements of memory a tensor spans from its first one on."""
    if 0 in shape:
        return 0
    return 1 + sum([(n - 1) * s for n, s in zip(shape, strides)])


def sizes_of(args: tuple, name: str = "size", keywords: dict[str, Any] | None = None) -> Shape:
    """The ints of ``f(2, 3)``, ``f((2, 3))`` or ``f(name=(2, 3))``; TypeError for no ints."""
    if keywords:
        if args or list(keywords) != [name]:
            unknown = ", ".join(keywords)
            raise TypeError(f"got an unexpected keyword argument: {unknown}, expected '{name}'")
        args = (keywords[name],)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    try:
        sizes = tuple([size if type(size) is int else whole_number("size", size) for size in args])
    except TypeError:
        kinds = ", ".join([type(size).__name__ for size in args])
        raise TypeError(f"argument '{name}' must be tuple of ints, but found ({kinds})") from None
    expect_longs(f"argument '{name}'", sizes)
    return sizes


def wanted_sizes(shape: tuple, size: int) -> Shape:
    """The sizes that a tensor of `size` elements is to have, from a function's arguments."""
    given = shape
    if len(shape) == 1 and type(shape[0]) is not int:
        shape = shape[0] if type(shape[0]) is tuple else sizes_of(shape)
    try:
        product = prod(shape)
        if product == size and type(product) is int:
            if not shape or min(shape) >= 0:
                return shape
        elif product < 0 and size % product == 0 and shape.count(-1) == 1 and min(shape) == -1:
            place = shape.index(-1)
            return (*shape[:place], size // -product, *shape[place + 1 :])
    except TypeError:
        pass
    return infer_size(sizes_of(given), size)
