"""Which parts of a tensor this process has.

A part is a box: where it begins in the whole, and the elements. A plain tensor is one box, the
whole, on every process. Whatever else is to be saved by its parts, as a wrapper that keeps a piece
of each parameter, has the attributes of `Sharded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol, runtime_checkable

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed.tensor import DTensor
from tensorflow_lite_clone.distributed.tensor._utils import compute_local_shape_and_global_offset
from tensorflow_lite_clone.ops.create import empty
from tensorflow_lite_clone.tensor import Tensor

Offsets = tuple[int, ...]
Shards = list[tuple[Offsets, Tensor]]


@runtime_checkable
class Sharded(Protocol):
    """A tensor of which each process has some boxes, which together cover it.

    Boxes of one process do not overlap; the same box on several processes has the same elements.
    """

    @property
    def shape(self) -> Size:
        """The shape of the whole."""

    @property
    def dtype(self) -> DType:
        """The dtype of the whole."""

    def __shards__(self) -> Shards:
        """This process's boxes: where each begins in the whole, and a tensor of its elements.

        The tensors share memory with this object, so that what is written to them changes it.
        """

    def full_tensor(self) -> Tensor:
        """The whole on every process; all processes call it together."""


def is_sharded(value: Any) -> bool:
    """Whether this process may have less than the whole of a tensor."""
    return isinstance(value, DTensor) or hasattr(type(value), "__shards__")


def is_tensor(value: Any) -> bool:
    """Whether a value is saved by its elements."""
    return isinstance(value, Tensor) or is_sharded(value)


def shards_of(value: Any) -> Shards:
    """The boxes that this process has, in its own memory."""
    if hasattr(type(value), "__shards__"):
        if not prod(value.shape):  # nobody has a box of it, and it is to be saved all the same
            return [((0,) * len(value.shape), empty(value.shape, dtype=value.dtype))]
        return [(tuple(offsets), local) for offsets, local in value.__shards__()]
    if not isinstance(value, DTensor):
        return [((0,) * value.ndim, value)]
    if any([placement.is_partial() for placement in value.placements]):
        raise ValueError(
            "a DTensor of terms that are still to be reduced has no elements to save: "
            f"placements {tuple(value.placements)}"
        )
    if value.device_mesh.get_coordinate() is None:
        return []
    _, offsets = compute_local_shape_and_global_offset(
        value.shape, value.device_mesh, value.placements
    )
    local: Any = value.to_local()
    if local.numel() == 0 and prod(value.shape):
        return []  # there are more processes than slices
    return [(tuple(offsets), local)]


def flat_shards(shape: Sequence[int], start: int, local: Tensor) -> Shards:
    """The boxes of a piece of a flattened tensor.

    `local` (n) has the elements `start` to `start` + n of a tensor of `shape`, in the order of
    `flatten`. The boxes' tensors are views of it. A piece that begins and ends within rows takes
    up to three boxes for a matrix, and two more for each further dimension.
    """
    boxes: Shards = []
    place = 0
    for offsets, sizes in _boxes_of_range(tuple(shape), start, start + local.numel()):
        count = prod(sizes)
        boxes.append((offsets, local[place : place + count].view(sizes)))
        place += count
    return boxes


def _boxes_of_range(shape: Offsets, start: int, stop: int) -> list[tuple[Offsets, Offsets]]:
    """Offsets and sizes of boxes that hold the elements `start` to `stop`, in order."""
    if start >= stop:
        return []
    if not shape:
        return [((), ())]
    row = prod(shape[1:])
    first, ahead = divmod(start, row)
    last, behind = divmod(stop, row)

    def within(index: int, begin: int, end: int) -> list[tuple[Offsets, Offsets]]:
        return [
            ((index, *offsets), (1, *sizes))
            for offsets, sizes in _boxes_of_range(shape[1:], begin, end)
        ]

    if first == last:
        return within(first, ahead, behind)
    boxes = within(first, ahead, row) if ahead else []
    whole = first + bool(ahead)
    if whole < last:
        boxes.append(((whole, *[0] * len(shape[1:])), (last - whole, *shape[1:])))
    return boxes + within(last, 0, behind)


def narrowed(tensor: Tensor, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """The box of `sizes` at `offsets` of a tensor, as a view."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if size != tensor.shape[dim]:
            tensor = tensor.narrow(dim, offset, size)
    return tensor


@no_grad()
def fill(value: Any, full: Tensor) -> None:
    """Write to `value` its parts of the whole."""
    if tuple(value.shape) != tuple(full.shape):
        raise ValueError(f"the whole has shape {tuple(full.shape)}, not {tuple(value.shape)}")
    for offsets, local in shards_of(value):
        local.detach().copy_(narrowed(full, offsets, local.shape))
