"""Batches on a device, copied there beside what the device computes."""

from collections.abc import Iterator

import tensorflow_lite_clone as torch

Batch = tuple[torch.Tensor, ...]


class Prefetcher:
    """The batches of a loader, on a device.

    On a GPU the next batch is fetched and copied while the device works on the one that was given
    out: the copies have a stream of their own. The loader's `pin_memory` makes them run beside the
    program; a batch from other memory is waited for.
    """

    def __init__(self, loader: torch.utils.data.DataLoader, device: torch.device | str) -> None:
        self.loader, self.device = loader, torch.device(device)
        self.stream = torch.cuda.Stream(self.device) if self.device.type == "cuda" else None

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Batch]:
        batches = iter(self.loader)
        coming = self.copied(next(batches, None))
        while coming is not None:
            batch = self.received(coming)
            yield batch
            coming = self.copied(next(batches, None))

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
