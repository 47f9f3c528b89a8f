"""Several tensors as one, so that one communication serves them all."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.core.strides import dense_strides
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.update import copy_each, update
from tensorflow_lite_clone.tensor import Tensor


class FlatBuffer:
    """Memory of one dimension, and a view of it for each of some tensors of a dtype and device.

    Views have the shapes of the tensors, and their strides but for gaps.
    """

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        first = tensors[0]
        count = sum([tensor.numel() for tensor in tensors])
        self.memory = empty(count, dtype=first.dtype, device=first.device)
        self.views = views_of(self.memory, tensors)

    def fill(self, tensors: Sequence[Tensor]) -> None:
        """Copy the tensors here."""
        update(copy_each, self.views, list(tensors))

    def spill(self, tensors: Sequence[Tensor]) -> None:
        """Copy what is here to the tensors."""
        update(copy_each, list(tensors), self.views)


def views_of(memory: Tensor, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Parts of `memory` one after the other, with the shapes of tensors."""
    views = []
    start = 0
    for tensor in tensors:
        strides = dense_strides(tensor.shape, tensor.stride())
        views.append(memory.as_strided(tensor.shape, strides, start))
        start += tensor.numel()
    return views


def alike(tensors: Sequence[Tensor], most: float) -> list[list[Tensor]]:
    """The tensors in lists of one dtype and device, each of `most` bytes or of one tensor."""
    parts: list[list[Tensor]] = []
    filling: dict[tuple, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        key, size = (tensor.dtype, tensor.device), tensor.numel() * tensor.element_size()
        part, filled = filling.get(key, (None, 0))
        if part is None or filled + size > most:
            part, filled = [], 0
            parts.append(part)
        part.append(tensor)
        filling[key] = part, filled + size
    return parts
