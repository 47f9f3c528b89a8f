"""Fetching: from the indices of a batch to the batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorflow_lite_clone.ops.create.constructors import as_tensor
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils.data._utils.collate import (
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
)
from tensorflow_lite_clone.utils.data.dataset import Subset, TensorDataset, get_items

INTEGERS = {int}


class _DatasetKind:
    """What kind of dataset a loader reads; PyTorch's names, which some programs compare with."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool
    ) -> Callable[[Any], Any]:
        """A function from indices (or one index, without auto_collation) to collated data."""
        if kind == _DatasetKind.Iterable:
            return IterableFetcher(dataset, auto_collation, collate_fn, drop_last)
        return MapFetcher(dataset, auto_collation, collate_fn)


class MapFetcher:
    """Looks up the samples of a batch and collates them."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.gathers = (
            auto_collation
            and collate_fn is default_collate
            and default_collate_fn_map.get(Tensor) is collate_tensor_fn
        )

    def __call__(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        if self.gathers:
            batch = gather(self.dataset, index)
            if batch is not None:
                return batch
        return self.collate_fn(get_items(self.dataset, index))


class IterableFetcher:
    """Takes the next samples of a stream, as many as the batch has indices, and collates them.

    Raises StopIteration when the stream has ended (or has too few samples left, if `drop_last`).
    """

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Callable, drop_last: bool
    ) -> None:
        self.iterator = iter(dataset)
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last
        self.ended = False

    def __call__(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.iterator))
        samples = []
        for _ in index:
            try:
                samples.append(next(self.iterator))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)


def gather(dataset: Any, indices: Sequence) -> list[Tensor] | None:
    """The batch that `default_collate` would make of a TensorDataset's samples, in one read.

    Indexing each tensor once with all indices spares a tensor per sample. Returns None where the
    plain way might differ: subclasses, indices that are not a list of ints, tensors that want
    gradients.
    """
    if type(indices) is not list:
        return None
    while type(dataset) is Subset:
        indices = [dataset.indices[i] for i in indices]
        dataset = dataset.dataset
    if type(dataset) is not TensorDataset or set(map(type, indices)) != INTEGERS:
        return None
    if any(type(t) is not Tensor or t.requires_grad for t in dataset.tensors):
        return None
    rows = as_tensor(indices, device=dataset.tensors[0].device)
    return [t[rows.to(t.device)] for t in dataset.tensors]
