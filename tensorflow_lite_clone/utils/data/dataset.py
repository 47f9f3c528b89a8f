"""Datasets: what a sample is, and how datasets are joined, cut and split."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.random.generators import Generator, default_generator
from tensorflow_lite_clone.tensor import Tensor
from tensorflow_lite_clone.utils.data.sampler import shuffled

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """A map from indices (or keys) to samples: subclasses write `__getitem__`, most also `__len__`.

    A subclass may add `__getitems__(indices) -> list of samples`, which `DataLoader` then calls
    once for each batch. `a + b` is `ConcatDataset([a, b])`.
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable):
    """A stream of samples: subclasses write `__iter__`.

    With worker processes every worker iterates its own copy: use `get_worker_info()` in `__iter__`
    (or `worker_init_fn`) to give each a part. `a + b` is `ChainDataset([a, b])`.
    """

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Samples `(t[i] for t in tensors)`; the tensors' first dimensions must agree."""

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Datasets of equal length side by side.

    `StackDataset(a, b)[i]` is `(a[i], b[i])`; `StackDataset(x=a, y=b)[i]` is a dict.
    Raises ValueError for different lengths, for no dataset, and for both kinds of arguments.
    """

    datasets: tuple | dict

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like "
                "input/output, but both types are given."
            )
        datasets: list[Any] = [*args, *kwargs.values()]
        if not datasets:
            raise ValueError("At least one dataset should be passed")
        self._length = len(datasets[0])
        if any(len(dataset) != self._length for dataset in datasets):
            raise ValueError("Size mismatch between datasets")
        self.datasets = kwargs or args

    def _build(self, columns: Iterable[Any]) -> tuple | dict:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, columns))
        return tuple(columns)

    def _parts(self) -> list[Any]:
        return list(self.datasets.values() if isinstance(self.datasets, dict) else self.datasets)

    def __getitem__(self, index: Any) -> tuple | dict:
        return self._build(dataset[index] for dataset in self._parts())

    def __getitems__(self, indices: list) -> list:
        columns = []
        for dataset in self._parts():
            items = get_items(dataset, indices)
            if len(items) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. "
                    f"Expected {len(indices)}, got {len(items)}"
                )
            columns.append(items)
        return [self._build(row) for row in zip(*columns)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Map-style datasets one after the other; `cumulative_sizes[k]` is where part k ends."""

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Running totals of the lengths."""
        return list(itertools.accumulate(len(part) for part in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    @property
    def cummulative_sizes(self) -> list[int]:
        """An older name of `cumulative_sizes`."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            FutureWarning,
            stacklevel=level_outside(),
        )
        return self.cumulative_sizes

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        part = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[part - 1] if part else 0
        return self.datasets[part][idx - start]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator:
        return itertools.chain.from_iterable(self._streams())

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`, in that order.

    A subclass that overrides `__getitem__` must override `__getitems__` as well, since the loader
    prefers the latter; NotImplementedError says so at construction.
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. DataLoader calls "
                "__getitems__ where there is one, so override both, for example by "
                "`return [self.__getitem__(idx) for idx in indices]`."
            )
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return get_items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def get_items(dataset: Any, indices: Sequence) -> list:
    """The samples at `indices`: by the dataset's own `__getitems__` if it has one."""
    many = getattr(dataset, "__getitems__", None)
    return many(indices) if callable(many) else [dataset[i] for i in indices]


def random_split(
    dataset: Dataset[T_co],
    lengths: Sequence[int | float],
    generator: Generator | None = default_generator,
) -> list[Subset[T_co]]:
    """Disjoint random subsets of the given lengths, which must add up to `len(dataset)`.

    Lengths that add up to 1 are fractions: each is rounded down, and what is left over goes one
    each to the first subsets. Raises ValueError for lengths that do not fit; warns of empty ones.
    """
    total = len(dataset)  # type: ignore[arg-type]
    sizes: list[Any] = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * fraction) for fraction in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.",
                    stacklevel=level_outside(),
                )
    if sum(sizes) != total:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! "
            f"The lengths {sizes} add up to {sum(sizes)}, the dataset has {total}."
        )
    order = shuffled(total, generator)
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes)]
