"""DataLoader: batches of a dataset, in order, shuffled, or from worker processes."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.utils.data._iterators import (
    _BaseDataLoaderIter,
    _SingleProcessDataLoaderIter,
)
from tensorflow_lite_clone.utils.data._utils.collate import default_collate, default_convert
from tensorflow_lite_clone.utils.data._utils.fetch import _DatasetKind
from tensorflow_lite_clone.utils.data._utils.worker import get_worker_info
from tensorflow_lite_clone.utils.data.dataset import Dataset, IterableDataset
from tensorflow_lite_clone.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
)

if TYPE_CHECKING:
    from tensorflow_lite_clone.ops.random.generators import Generator

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
_collate_fn_t = Callable[[list[Any]], Any]
_worker_init_fn_t = Callable[[int], None]

# What an initialized loader does not let change, since its samplers are made of them.
FIXED = frozenset(
    ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)


def multiprocess() -> Any:
    """The module of worker processes: a heavy import, and most programs start no worker."""
    from tensorflow_lite_clone.utils.data import _multiprocess

    return _multiprocess


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":
        return multiprocess()._MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _InfiniteConstantSampler(Sampler):
    """None without end: the sampler of an IterableDataset, which decides itself when it ends."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over batches of a dataset.

    Args:
        dataset: a map-style dataset (`__getitem__`, `__len__`) or an IterableDataset.
        batch_size: samples per batch; None for single samples without a batch dimension.
        shuffle: a new random order in every pass (see RandomSampler).
        sampler: indices to read instead; excludes `shuffle`.
        batch_sampler: lists of indices to read; excludes batch_size, shuffle, sampler, drop_last.
        num_workers: processes that fetch; 0 fetches in this process.
        collate_fn: makes a batch of a list of samples (default: `default_collate`, or
            `default_convert` without batches).
        pin_memory: put batches into page-locked memory, if a GPU is in use when the pass begins;
            with workers a thread does, beside the program.
        drop_last: leave out a last batch that is shorter than the others.
        timeout: seconds to wait for a worker's batch before RuntimeError; 0 waits for ever.
        worker_init_fn: called as `worker_init_fn(worker_id)` in each worker at its start.
        multiprocessing_context: a start method ("fork", "spawn", "forkserver") or a context.
        generator: source of the order and of the workers' seeds, instead of the global stream.
        prefetch_factor: batches under way in each worker (default 2).
        persistent_workers: keep the workers between passes.
        in_order: False returns batches as they arrive from the workers.

    The draws are PyTorch's: each iterator draws a base seed, then `shuffle` draws the order.
    Worker w runs with seed base seed + w for this framework and `random`; `numpy.random` gets a
    seed made of both numbers. An exception in a worker is raised here as the same type, with the
    worker's traceback in its message; a worker that dies raises RuntimeError.
    """

    multiprocessing_context: Any
    _iterator: _BaseDataLoaderIter | None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order

        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if iterable:
            refuse_order(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, "
                    "sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        if name == "multiprocessing_context":
            value = as_context(value, self.num_workers)
        super().__setattr__(name, value)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return multiprocess()._MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not (self.persistent_workers and self.num_workers):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # What a stream promises; its iterators warn when it yields more.
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warns when there are more workers than processors this process may use."""
        has_affinity = hasattr(os, "sched_getaffinity")
        limit = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count()
        if not self.num_workers or (limit is not None and self.num_workers <= limit):
            return
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. Our "
            f"suggested max number of worker in current system is {limit}, which is smaller than "
            "what this DataLoader is going to create. Please be aware that excessive worker "
            "creation might get DataLoader running slow or even freeze, lower the worker number "
            "to avoid potential slowness/freeze if necessary.",
            stacklevel=level_outside(),
        )


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    """Raises ValueError for settings of the workers that contradict each other."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            f"multiprocessing, got {num_workers}."
        )
    if timeout < 0:
        raise ValueError(f"timeout option should be non-negative, got {timeout}")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. Let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError(f"prefetch_factor option should be non-negative, got {prefetch_factor}")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def refuse_order(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Raises ValueError if an order is asked of an IterableDataset, which has its own."""
    for name, value in [
        ("shuffle", None if shuffle in {False, None} else shuffle),
        ("sampler", sampler),
        ("batch_sampler", batch_sampler),
    ]:
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def as_context(context: Any, num_workers: int) -> Any:
    """The multiprocessing context of that name, or the context itself; None is the default's."""
    if context is None:
        return None
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )
    return multiprocess().as_context(context)
