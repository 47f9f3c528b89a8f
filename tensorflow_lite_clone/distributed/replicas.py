"""The same module in each process of a group: checks that it is, and copies of one process's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.autograd.mode import no_grad
from tensorflow_lite_clone.core.dtypes import uint8
from tensorflow_lite_clone.distributed.collectives import broadcast
from tensorflow_lite_clone.distributed.flat_buffer import FlatBuffer, alike
from tensorflow_lite_clone.distributed.objects import all_gather_object
from tensorflow_lite_clone.tensor import Tensor

Named = Sequence[tuple[str, Tensor]]


def expect_same_parameters(group: Any, named: Named) -> None:
    """Raise RuntimeError in every process unless all have parameters of the same description.

    That is their names, shapes, dtypes and whether they want gradients, in the same order.
    """

    def description(tensor: Tensor) -> str:
        frozen = "" if tensor.requires_grad else ", without gradient"
        return f"{tensor.dtype} of shape {list(tensor.shape)}{frozen}"

    _expect_same(group, [(name, description(tensor)) for name, tensor in named])


def expect_same_values(group: Any, named: Named) -> None:
    """Raise RuntimeError in every process unless tensors have the same values in all of them."""
    _expect_same(group, [(name, f"values with digest {_digest(value)}") for name, value in named])


def _digest(tensor: Tensor) -> str:
    flat = tensor.detach().contiguous().reshape(-1).view(uint8).cpu()
    return hashlib.blake2b(flat.numpy().tobytes(), digest_size=8).hexdigest()


def _expect_same(group: Any, signature: list[tuple[str, str]]) -> None:
    if (different := first_different(group, signature)) is not None:
        raise RuntimeError(
            "DistributedDataParallel expects the same model in all processes: "
            + _difference(*different)
        )


def first_different(group: Any, value: Any) -> tuple[Any, int, Any] | None:
    """Rank 0's value, the first rank with another one, and that one; None where all are equal.

    Digests are compared first, so that the values travel only where they differ.
    """
    own = hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()
    if len(set(_gathered(group, own))) == 1:
        return None
    first, *others = _gathered(group, value)
    return next((first, rank, each) for rank, each in enumerate(others, 1) if each != first)


def _gathered(group: Any, value: Any) -> list[Any]:
    values: list[Any] = [None] * group.size()
    all_gather_object(values, value, group=group)
    return values


def _difference(first: list, rank: int, other: list) -> str:
    """What is the first difference between the descriptions in rank 0 and in `rank`."""
    for (name, local), (other_name, remote) in zip(first, other):
        if name != other_name:
            return f"where rank 0 has the parameter '{name}', rank {rank} has '{other_name}'"
        if local != remote:
            return f"the parameter '{name}' has {local} in rank 0, but {remote} in rank {rank}"
    longer, named = (0, first) if len(first) > len(other) else (rank, other)
    extra = named[min(len(first), len(other))][0]
    return (
        f"rank 0 has {len(first)} parameters, rank {rank} has {len(other)}; only rank {longer} has "
        f"'{extra}'"
    )


class Coalesced:
    """Tensors that travel together again and again, in buffers by dtype and device.

    A buffer has at most `most` bytes, or one tensor.
    """

    def __init__(self, tensors: Sequence[Tensor], most: float = 250 * 2**20) -> None:
        self._storages = [tensor._storage for tensor in tensors]
        parts = alike([tensor.detach() for tensor in tensors], most)
        self._parts = [(FlatBuffer(part), part) for part in parts]

    def is_of(self, tensors: Sequence[Tensor]) -> bool:
        """Whether these are the tensors, in the same memory."""
        return [tensor._storage for tensor in tensors] == self._storages

    @no_grad()
    def broadcast(self, group: Any, source: int = 0) -> None:
        """Give the tensors the values that they have in the process `source` of the group."""
        if group.size() == 1:
            return
        is_source = group.rank() == source
        for flat, part in self._parts:
            if is_source:
                flat.fill(part)
            broadcast(flat.memory, group=group, group_src=source)
            if not is_source:
                flat.spill(part)


def broadcast_coalesced(
    group: Any, tensors: Sequence[Tensor], source: int = 0, most: float = 250 * 2**20
) -> None:
    """Give tensors the values that they have in the process `source` of the group, once."""
    Coalesced(tensors, most).broadcast(group, source)


def sync_module_states(
    group: Any, module: Any, source: int = 0, ignored: Callable[[str], bool] = lambda name: False
) -> None:
    """Give a module's parameters and buffers the values that they have in the process `source`."""
    members = [*module.named_parameters(), *module.named_buffers()]
    broadcast_coalesced(group, [x for name, x in members if not ignored(name)], source)
