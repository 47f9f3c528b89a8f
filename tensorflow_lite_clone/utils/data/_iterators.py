"""Iterating a DataLoader in the loader's own process, and what all its iterators share."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.utils.data._utils.fetch import _DatasetKind
from tensorflow_lite_clone.utils.data._utils.pin_memory import pin_memory, pinning_helps
from tensorflow_lite_clone.utils.data.sampler import draw_seed

if TYPE_CHECKING:
    from tensorflow_lite_clone.utils.data.dataloader import DataLoader


class _BaseDataLoaderIter:
    """One pass over a loader's data."""

    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._sampler_iter = iter(self._index_sampler)
        # Drawn even without workers, and before the sampler's first draw: PyTorch's stream.
        self._base_seed = draw_seed(loader.generator)
        self._num_yielded = 0
        self._pin_memory = loader.pin_memory and pinning_helps()

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        """Starts another pass."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        if hooks.around_region:
            name = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
            data = hooks.run_region(name, self._next_data)
        else:
            data = self._next_data()
        self._num_yielded += 1
        promised = self._IterableDataset_len_called
        if promised is not None and self._num_yielded > promised:
            self._warn_of_length(promised)
        return data

    next = __next__

    def _warn_of_length(self, promised: int) -> None:
        hint = (
            " With workers this happens when every worker reads the whole stream; give each a "
            "part of it (see IterableDataset)."
            if self._num_workers
            else ""
        )
        warnings.warn(
            f"Length of IterableDataset {self._dataset} was reported to be {promised} (when "
            f"accessing len(dataloader)), but {self._num_yielded} samples have been fetched.{hint}",
            stacklevel=level_outside(),
        )

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Fetches each batch when it is asked for."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError(
                "timeout limits the wait for a worker, and num_workers is 0: expected timeout=0, "
                f"got {self._timeout}"
            )
        self._fetch = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )

    def _next_data(self) -> Any:
        data = self._fetch(self._next_index())
        return pin_memory(data) if self._pin_memory else data
