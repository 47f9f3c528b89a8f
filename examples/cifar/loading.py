"""CIFAR-10 through worker processes and page-locked memory, a part of it for each process."""

from collections.abc import Iterator
from pathlib import Path

import tensorflow_lite_clone as torch
from examples.cifar import data
from examples.world import World

Batch = tuple[torch.Tensor, torch.Tensor]


class Photographs(torch.utils.data.Dataset):
    """Pictures as bytes (height, width, 3) with labels; a loader fetches a batch in one gather.

    With `augment` each is moved by up to four pixels over black and half of them are mirrored.
    """

    def __init__(self, pixels: torch.Tensor, labels: torch.Tensor, augment: bool = False) -> None:
        self.pixels = data.with_margin(pixels) if augment else pixels
        self.labels, self.augment = labels, augment

    def __len__(self) -> int:
        return len(self.labels)

    def __getitems__(self, indices: list[int]) -> Batch:
        chosen = torch.tensor(indices)
        labels = self.labels[chosen]
        if not self.augment:
            return self.pixels[chosen], labels
        count = len(indices)
        moves = torch.randint(0, 2 * data.MARGIN + 1, (count, 2))
        return data.moved(self.pixels, chosen, moves, torch.rand(count) < 0.5), labels


def as_it_is(batch: Batch) -> Batch:
    """What a loader does to a batch that was fetched as one."""
    return batch


class Loader:
    """Batches on a device, normalised there; labels on `labels_to`, by default the same."""

    def __init__(
        self,
        photographs: Photographs,
        device: torch.device,
        labels_to: torch.device | None = None,
        **options: object,
    ) -> None:
        self.loader = torch.utils.data.DataLoader(
            photographs, collate_fn=as_it_is, pin_memory=device.type == "cuda", **options
        )
        self.count = len(photographs)
        self.device, self.labels_to = device, labels_to or device
        self.mean, self.std = data.statistics(device)

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Batch]:
        for pixels, labels in self.loader:
            pixels = pixels.to(self.device, non_blocking=True)
            yield (
                data.normalised(pixels, self.mean, self.std),
                labels.to(self.labels_to, non_blocking=True),
            )


class Training(Loader):
    """This process's part of each batch of `batch_size`, in another order every epoch.

    However many processes there are, the parts of a batch make up the same one: the sampler deals
    the order that one process would read, picture by picture. The rest of an epoch, which would be
    a smaller batch, is left out.
    """

    def __init__(
        self,
        photographs: Photographs,
        batch_size: int,
        world: World,
        *,
        seed: int,
        workers: int,
        labels_to: torch.device | None = None,
    ) -> None:
        if batch_size % world.size:
            raise ValueError(f"a batch of {batch_size} for {world.size} processes")
        self.sampler = torch.utils.data.DistributedSampler(
            photographs, world.size, world.rank, seed=seed, drop_last=True
        )
        super().__init__(
            photographs,
            world.device,
            labels_to,
            batch_size=batch_size // world.size,
            sampler=self.sampler,
            drop_last=True,
            num_workers=workers,
            persistent_workers=workers > 0,
        )

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next pass."""
        self.sampler.set_epoch(epoch)


def read(place: Path, train: bool, limit: int | None, augment: bool = False) -> Photographs:
    """At most `limit` pictures of the official files in `place`, in this process's memory."""
    return Photographs(*data.read(place, train, limit, "cpu"), augment)
