"""Pieces of flattened tensors as boxes, for checkpoints of what is cut in no dimension."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tensorflow_lite_clone.distributed.checkpoint._shards import Offsets, Shards
from tensorflow_lite_clone.tensor import Tensor


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
