"""Which parts of a tensor this process has.

A part is a box: where it begins in the whole, and a tensor of its elements. A plain tensor is one
box, the whole, on every process. What else is to be saved by its parts, as a parameter of which a
wrapper keeps some rows, has the methods of `Sharded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Protocol, runtime_checkable

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.distributed.distributed_c10d import get_world_size
from tensorflow_lite_clone.distributed.objects import all_gather_object
from tensorflow_lite_clone.distributed.tensor import DTensor
from tensorflow_lite_clone.distributed.tensor._utils import compute_local_shape_and_global_offset
from tensorflow_lite_clone.ops.create.constructors import zeros
from tensorflow_lite_clone.tensor import Tensor

Offsets = tuple[int, ...]
Shards = list[tuple[Offsets, Tensor]]


@runtime_checkable
class Sharded(Protocol):
    """A tensor of which each process has some boxes, which together cover it.

    Boxes of one process do not overlap; the same box on several processes has the same elements.
    A method `full_tensor`, if there is one, gives the whole to all processes, which call it
    together.
    """

    @property
    def dtype(self) -> DType:
        """The dtype of the whole."""

    def __shards__(self) -> tuple[Sequence[int], Shards]:
        """The shape of the whole, and this process's boxes: where each begins in the whole, and a
        tensor of its elements.

        The tensors share memory with this object, so that what is written to them changes it.
        """


class Boxes:
    """A tensor of `shape` of which this process has the boxes `shards`, and no more than that."""

    def __init__(self, shape: Sequence[int], dtype: DType, shards: Shards) -> None:
        self.shape = Size(shape)
        self.dtype = dtype
        self._shards = shards

    def __shards__(self) -> tuple[Size, Shards]:
        return self.shape, self._shards


def is_sharded(value: Any) -> bool:
    """Whether this process may have less than the whole of a tensor."""
    return isinstance(value, DTensor) or hasattr(type(value), "__shards__")


def is_tensor(value: Any) -> bool:
    """Whether a value is saved by its elements."""
    return isinstance(value, Tensor) or is_sharded(value)


def shape_of(value: Any) -> Size:
    """The shape of the whole."""
    return Size(value.__shards__()[0] if hasattr(type(value), "__shards__") else value.shape)


def shards_of(value: Any) -> Shards:
    """The boxes that this process has, in its own memory."""
    if hasattr(type(value), "__shards__"):
        shape, shards = value.__shards__()
        if not prod(shape):  # nobody has a box of it, and it is to be saved all the same
            return [((0,) * len(shape), zeros(shape, dtype=value.dtype))]
        return [(tuple(offsets), local) for offsets, local in shards]
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


@no_grad()
def full_tensor(value: Any) -> Tensor:
    """The whole on all processes of the world, which call this together."""
    if not is_sharded(value):
        return value
    if hasattr(value, "full_tensor"):
        return value.full_tensor().detach()
    gathered: list[Any] = [None] * get_world_size()
    own = shards_of(value)
    all_gather_object(gathered, [(offsets, local.detach().cpu()) for offsets, local in own])
    full = zeros(shape_of(value), dtype=value.dtype, device=own[0][1].device if own else None)
    for offsets, local in [box for boxes in gathered for box in boxes]:
        narrowed(full, offsets, local.shape).copy_(local)
    return full


def narrowed(tensor: Tensor, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """The box of `sizes` at `offsets` of a tensor, as a view."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
        if size != tensor.shape[dim]:
            tensor = tensor.narrow(dim, offset, size)
    return tensor


@no_grad()
def fill(value: Any, source: Any) -> None:
    """Write to this process's boxes of `value` those of `source`: a whole, or the same boxes.

    Raises ValueError where the shapes differ, or `source` lacks a box.
    """
    if shape_of(value) != shape_of(source):
        raise ValueError(f"expected shape {tuple(shape_of(value))}, got {tuple(shape_of(source))}")
    boxes = dict(shards_of(source)) if is_sharded(source) else None
    for offsets, local in shards_of(value):
        if boxes is None:
            part = narrowed(source, offsets, local.shape)
        elif offsets in boxes and boxes[offsets].shape == local.shape:
            part = boxes[offsets]
        else:
            raise ValueError(f"no box of shape {tuple(local.shape)} at {offsets}: {list(boxes)}")
        local.detach().copy_(part)
