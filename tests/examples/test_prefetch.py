"""The prefetching of the examples: the loader's batches, in order, copied beside other work."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from examples.prefetch import Prefetcher

data = tlc.utils.data


def loader(count: int, **options: object) -> data.DataLoader:
    numbers = tlc.arange(count)
    return data.DataLoader(data.TensorDataset(numbers.float()[:, None], numbers), 4, **options)


@pytest.mark.parametrize("count", [0, 3, 4, 11])
def test_every_batch_once_and_in_order(count: int) -> None:
    prefetcher = Prefetcher(loader(count), "cpu")
    for _ in range(2):
        found = list(prefetcher)
        assert len(found) == len(prefetcher) == -(-count // 4)
        assert [n for _, labels in found for n in labels.tolist()] == list(range(count))
        assert all((images[:, 0] == labels).all() for images, labels in found)


def test_the_next_batch_is_fetched_when_the_program_is_done_with_one() -> None:
    """Not before: what it queued for the device comes first."""
    fetched = []

    class Noting(data.Dataset):
        def __getitem__(self, index: int) -> int:
            fetched.append(index)
            return index

        def __len__(self) -> int:
            return 3

    batches = iter(Prefetcher(data.DataLoader(Noting(), batch_size=None, collate_fn=pair), "cpu"))
    next(batches)
    assert fetched == [0]
    next(batches)
    assert fetched == [0, 1]


def pair(number: int) -> tuple[tlc.Tensor]:
    return (tlc.tensor(number),)


@pytest.mark.cuda
def test_copies_run_beside_the_program() -> None:
    """A batch is right on the program's stream, and its memory is not given away under it."""
    tlc.zeros(1, device="cuda")
    shuffled = Prefetcher(loader(4096, pin_memory=True), "cuda")
    weight = tlc.randn(2048, 2048, device="cuda")
    sums = []
    for images, labels in shuffled:
        assert images.device.type == "cuda"
        weight = (weight @ weight).clamp(-1, 1)  # the device is behind the host
        sums.append((images[:, 0] - labels).abs().sum() + labels.sum())
    assert tlc.stack(sums).tolist() == [16.0 * i + 6 for i in range(1024)]


@pytest.mark.cuda
def test_a_copy_does_not_wait_for_the_step() -> None:
    """The next batch is there while the device is busy with what was queued before."""
    prefetcher = Prefetcher(loader(8, pin_memory=True), "cuda")
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
