"""Who am I, inside a worker process of a DataLoader."""

from __future__ import annotations

from typing import Any, NamedTuple


class WorkerInfo(NamedTuple):
    """A worker's number `id` of `num_workers`, its random seed, its own copy of the dataset."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker this process is, or None in the main process."""
    return _worker_info


def set_worker_info(info: WorkerInfo) -> None:
    """Says that this process is a worker; the worker loop calls it."""
    global _worker_info
    _worker_info = info
