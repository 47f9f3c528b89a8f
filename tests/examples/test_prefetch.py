"""The prefetching of the examples: the loader's batches, in order, copied beside other work."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator

import pytest

import tensorflow_lite_clone as tlc
from examples.prefetch import AHEAD, Fetched, Prefetcher

data = tlc.utils.data


def loader(count: int, **options: object) -> data.DataLoader:
    numbers = tlc.arange(count)
    return data.DataLoader(data.TensorDataset(numbers.float()[:, None], numbers), 4, **options)


@pytest.mark.parametrize("size", [4, 2, 3])
@pytest.mark.parametrize("count", [0, 3, 4, 11])
def test_every_sample_once_and_in_order(count: int, size: int) -> None:
    prefetcher = Prefetcher(loader(count), "cpu", size)
    for _ in range(2):
        found = list(prefetcher)
        assert [n for _, labels in found for n in labels.tolist()] == list(range(count))
        assert all((images[:, 0] == labels).all() for images, labels in found)
        assert all(len(labels) <= size for _, labels in found)
    if 4 % size == 0:
        assert len(found) == len(prefetcher) == -(-count // size)


def counted(fetched: list[int], most: int) -> Iterator[int]:
    for number in range(most):
        fetched.append(number)
        yield number


def wait_for(condition: object) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def test_a_thread_fetches_a_few_ahead_and_ends_with_its_user() -> None:
    seen: list[int] = []
    before = threading.active_count()
    fetched = Fetched(counted(seen, 100))
    assert [next(fetched), next(fetched)] == [0, 1]
    wait_for(lambda: len(seen) == 2 + AHEAD + 1)  # and one in its hand
    del fetched
    gc.collect()
    wait_for(lambda: threading.active_count() == before)
    assert len(seen) == 2 + AHEAD + 1


def test_errors_and_the_end_arrive_in_order() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise KeyError("lost")

    fetched = Fetched(failing())
    assert next(fetched) == 1
    for _ in range(2):
        with pytest.raises(KeyError, match="lost"):
            next(fetched)
    assert next(Fetched(iter([])), "end") == "end"


@pytest.mark.cuda
def test_copies_run_beside_the_program() -> None:
    """A batch is right on the program's stream, and its memory is not given away under it."""
    tlc.zeros(1, device="cuda")
    shuffled = Prefetcher(loader(4096, pin_memory=True), "cuda", 2)
    weight = tlc.randn(2048, 2048, device="cuda")
    sums = []
    for images, labels in shuffled:
        assert images.device.type == "cuda"
        weight = (weight @ weight).clamp(-1, 1)  # the device is behind the host
        sums.append((images[:, 0] - labels).abs().sum() + labels.sum())
    assert tlc.stack(sums).tolist() == [4.0 * i + 1 for i in range(2048)]


@pytest.mark.cuda
def test_a_copy_does_not_wait_for_the_step() -> None:
    """The next batch is there while the device is busy with what was queued before."""
    prefetcher = Prefetcher(loader(8, pin_memory=True), "cuda", 4)
    batches = iter(prefetcher)
    next(batches)
    weight = tlc.randn(4096, 4096, device="cuda")
    for _ in range(20):
        weight = (weight @ weight).clamp(-1, 1)
    busy = tlc.cuda.Event()
    busy.record()
    next(batches)
    prefetcher.stream.synchronize()
    assert not busy.query()
