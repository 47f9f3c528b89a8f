"""Batches on a device, fetched and copied there beside what the program and the device do."""

import queue
import threading
from collections.abc import Iterator

import tensorflow_lite_clone as torch

Batch = tuple[torch.Tensor, ...]
AHEAD = 2  # batches of the loader that wait to be copied


class Prefetcher:
    """The batches of a loader on a device, cut into batches of `size`.

    On a GPU a thread fetches, and copies have a stream of their own: the next batch is on its way
    while the device works on the one that was given out. The loader's `pin_memory` makes copies run
    beside the program, and large batches make a loader's work small: it is done once for each.
    """

    def __init__(
        self, loader: torch.utils.data.DataLoader, device: torch.device | str, size: int
    ) -> None:
        self.loader, self.device, self.size = loader, torch.device(device), size
        self.stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    def __len__(self) -> int:
        return -(-len(self.loader.dataset) // self.size)

    def __iter__(self) -> Iterator[Batch]:
        """On a GPU fetching begins at once, not with the first batch that is asked for."""
        batches = iter(self.loader)
        return self.cut(batches if self.stream is None else Fetched(batches))

    def cut(self, batches: Iterator[list[torch.Tensor]]) -> Iterator[Batch]:
        """The parts of batches on the device."""
        coming = self.copied(next(batches, None))
        while coming is not None:
            parts = zip(*[tensor.split(self.size) for tensor in self.received(coming)])
            yield next(parts)
            coming = self.copied(next(batches, None))  # the device has work meanwhile
            yield from parts

    def copied(self, batch: list[torch.Tensor] | None) -> Batch | None:
        """A batch whose copies have begun; None at the end."""
        if batch is None:
            return None
        if self.stream is None:
            return tuple(tensor.to(self.device) for tensor in batch)
        with torch.cuda.stream(self.stream):
            return tuple(tensor.to(self.device, non_blocking=True) for tensor in batch)

    def received(self, batch: Batch) -> Batch:
        """The same, for the stream of the program, which waits for the copies on the device."""
        if self.stream is not None:
            here = torch.cuda.current_stream(self.device)
            here.wait_stream(self.stream)
            for tensor in batch:
                tensor.record_stream(here)
        return batch


class Fetched:
    """The batches of an iterator, which a thread asks for; its errors are raised here."""

    def __init__(self, batches: Iterator[list[torch.Tensor]]) -> None:
        self.results: queue.Queue = queue.Queue(AHEAD)
        self.ended = threading.Event()
        self.error: BaseException | None = None
        arguments = batches, self.results, self.ended
        threading.Thread(target=fetch, args=arguments, daemon=True).start()

    def __next__(self) -> list[torch.Tensor]:
        if self.error is None:
            batch, self.error = self.results.get()
        if self.error is not None:  # again and again: the thread has gone
            raise self.error
        return batch

    def __del__(self) -> None:
        self.ended.set()


def fetch(batches: Iterator, results: queue.Queue, ended: threading.Event) -> None:
    """Put batches, and at the end StopIteration or another error, until nobody wants them."""
    error = None
    while error is None:
        batch = None
        try:
            batch = next(batches)
        except BaseException as raised:
            error = raised
        while not ended.is_set():
            try:
                results.put((batch, error), timeout=0.1)
                break
            except queue.Full:
                pass
        else:
            return
