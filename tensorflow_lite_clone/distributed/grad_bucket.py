"""Gradients that travel together: which, in which buffer, and what hooks see of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from tensorflow_lite_clone.core.device import sparse_coo
from tensorflow_lite_clone.distributed.flat_buffer import FlatBuffer, views_of
from tensorflow_lite_clone.ops.create.constructors import zeros_like
from tensorflow_lite_clone.ops.update import copy_each, update, zero_each
from tensorflow_lite_clone.tensor import Tensor


def assign_buckets(
    tensors: Sequence[Tensor],
    order: Iterable[int],
    limits: Sequence[float],
    alone: Collection[int] = (),
) -> list[list[int]]:
    """The places of tensors, in `order`, in buckets of one dtype and device.

    Each of the places `alone` has a bucket of its own. Another bucket is full when it has at least
    its limit of bytes. `limits` are those of the first buckets of a kind, the last one holds for
    all further ones. Buckets come in the order in which their last members do.
    """
    filling: dict[Any, tuple[list[int], int, Iterator[float], float]] = {}
    buckets: list[list[int]] = []
    position = {}
    for number, place in enumerate(order):
        tensor = tensors[place]
        position[place] = number
        if place in alone:
            buckets.append([place])
            continue
        kind = tensor.dtype, tensor.device
        if kind not in filling:
            sizes = iter(limits)
            filling[kind] = [], 0, sizes, next(sizes)
        bucket, size, sizes, limit = filling[kind]
        bucket.append(place)
        size += tensor.numel() * tensor.element_size()
        if size >= limit:
            buckets.append(bucket)
            bucket, size, limit = [], 0, next(sizes, limit)
        filling[kind] = bucket, size, sizes, limit
    buckets += [bucket for bucket, *_ in filling.values() if bucket]
    return sorted(buckets, key=lambda bucket: position[bucket[-1]])


class GradBucket:
    """Gradients that are reduced at once, as ``torch.distributed.GradBucket``.

    A communication hook gets one, and returns a Future of a tensor like its `buffer`.
    """

    def __init__(self, index: int, last: bool, places: list[int], parameters: list[Tensor]) -> None:
        #: The places of the parameters among all that are reduced.
        self.places = places
        self._index, self._last = index, last
        self._parameters = parameters
        self._flat = FlatBuffer(parameters)
        self._buffer = self._flat.memory

    def index(self) -> int:
        """The place of the bucket among all, in the order in which they are reduced."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last one that is reduced."""
        return self._last

    def buffer(self) -> Tensor:
        """All gradients, one after the other, in one dimension."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put another tensor in the place of the buffer, for the rest of this reduction."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The parts of the buffer, in the shapes of the parameters."""
        if self._buffer is self._flat.memory:
            return list(self._flat.views)
        return views_of(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return list(self._parameters)

    # -- for the reducer ----------------------------------------------------------------------

    def clear(self) -> None:
        """Fill the buffer with zeros."""
        self._buffer = self._flat.memory
        self._buffer.zero_()

    def collect(self, as_views: bool) -> None:
        """Copy the parameters' gradients to the buffer, with zeros for those that have none.

        With `as_views` they are parts of the buffer from then on, and need no copy next time.
        """
        self._buffer = self._flat.memory
        targets, sources, empty = [], [], []
        for parameter, view in zip(self._parameters, self._flat.views):
            g = parameter.grad
            if g is None:
                empty.append(view)
            elif g._storage is not view._storage:
                targets.append(view)
                sources.append(g)
                if as_views:
                    parameter.grad = view
        update(copy_each, targets, sources)
        update(zero_each, empty, read=())

    def hand_back(self, result: Tensor, used: Sequence[bool], as_views: bool) -> None:
        """Make the reduced gradients those of the parameters whose places are `used`."""
        if result is not self._flat.memory:
            self._flat.memory.copy_(result)
        targets, sources = [], []
        for place, parameter, view in zip(self.places, self._parameters, self._flat.views):
            if not used[place]:
                continue
            g = parameter.grad
            if g is None:
                parameter.grad = view if as_views else view.clone()
            elif g._storage is not view._storage:
                targets.append(g)
                sources.append(view)
        update(copy_each, targets, sources)


class SparseBucket(GradBucket):
    """The one sparse gradient of a parameter, which is its `buffer`."""

    def __init__(self, index: int, last: bool, places: list[int], parameters: list[Tensor]) -> None:
        self.places = places
        self._index, self._last = index, last
        self._parameters = parameters
        self.clear()

    def gradients(self) -> list[Tensor]:
        return [self._buffer]

    def clear(self) -> None:
        """Forget all elements."""
        (parameter,) = self._parameters
        self._buffer = zeros_like(parameter, layout=sparse_coo)
        self._buffer.sparse_resize_and_clear_(parameter.shape, 1, parameter.ndim - 1)

    def collect(self, as_views: bool) -> None:
        """Take the parameter's gradient, or one without elements."""
        (parameter,) = self._parameters
        if parameter.grad is None:
            self.clear()
        else:
            self._buffer = parameter.grad

    def hand_back(self, result: Tensor, used: Sequence[bool], as_views: bool) -> None:
        """Make the reduced gradient that of the parameter if its place is `used`."""
        if used[self.places[0]]:
            self._parameters[0].grad = result
