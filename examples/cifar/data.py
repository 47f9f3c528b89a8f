"""CIFAR-10, kept on the device as a whole, and its batches, cropped and mirrored there."""

import os
from collections.abc import Iterator
from pathlib import Path

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.vision import datasets

MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)  # of the training set's channels
SIZE = 32
MARGIN = 4  # black pixels around a picture that is to be cropped
CLASSES = 10
PLACE = "CIFAR10_DATA"  # environment variable


def statistics(device: torch.device | str) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean and standard deviation of the training set's channels, in bytes."""
    return torch.tensor(MEAN, device=device) * 255, torch.tensor(STD, device=device) * 255


def normalised(pixels: torch.Tensor, mean: torch.Tensor, std: torch.Tensor) -> torch.Tensor:
    """(N, height, width, 3) of bytes as float32 (N, 3, height, width), laid out as before."""
    return ((pixels.float() - mean) / std).permute(0, 3, 1, 2)


def with_margin(pixels: torch.Tensor) -> torch.Tensor:
    """Pictures (N, height, width, 3) with black pixels around them."""
    count, height, width, channels = pixels.shape
    padded = pixels.new_zeros(count, height + 2 * MARGIN, width + 2 * MARGIN, channels)
    padded[:, MARGIN:-MARGIN, MARGIN:-MARGIN] = pixels
    return padded


def moved(
    padded: torch.Tensor, chosen: torch.Tensor, moves: torch.Tensor, mirrored: torch.Tensor
) -> torch.Tensor:
    """The chosen ones of pictures with margins, cropped and some of them mirrored.

    `chosen` are n indices, `moves` int64 (n, 2) the first row and column that are kept, `mirrored`
    bool (n,).
    """
    along = torch.arange(SIZE, device=padded.device)
    rows = moves[:, :1] + along
    columns = moves[:, 1:] + torch.where(mirrored[:, None], SIZE - 1 - along, along)
    # one gather: picture, row and column of every pixel
    return padded[chosen[:, None, None], rows[:, :, None], columns[:, None, :]]


class Pictures:
    """Pictures with their labels on a device.

    `pixels` is uint8 (N, height, width, 3), `labels` int64 (N,).
    """

    def __init__(self, pixels: torch.Tensor, labels: torch.Tensor) -> None:
        self.pixels, self.labels = pixels, labels
        self.mean, self.std = statistics(pixels.device)

    def __len__(self) -> int:
        return len(self.labels)

    def normalised(self, pixels: torch.Tensor) -> torch.Tensor:
        """(N, height, width, 3) of bytes as float32 (N, 3, height, width), laid out as before."""
        return normalised(pixels, self.mean, self.std)

    def batches(self, batch_size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """All of them in order, as they are."""
        for pixels, labels in zip(self.pixels.split(batch_size), self.labels.split(batch_size)):
            yield self.normalised(pixels), labels


class Shuffled(Pictures):
    """Training pictures in another order every time, each moved by up to four pixels and mirrored.

    Iterating gives batches of `batch_size`; the rest, which would be a smaller one, is left out.
    What is drawn is drawn on the CPU for a whole epoch, so that a seed gives the same pictures on
    every device.
    """

    def __init__(self, pixels: torch.Tensor, labels: torch.Tensor, batch_size: int) -> None:
        super().__init__(with_margin(pixels), labels)
        self.batch_size = min(batch_size, len(labels))

    def __len__(self) -> int:
        return len(self.labels) // self.batch_size

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        count, device = len(self.labels), self.pixels.device
        order = torch.randperm(count).to(device)
        moves = torch.randint(0, 2 * MARGIN + 1, (count, 2)).to(device)
        mirrored = (torch.rand(count) < 0.5).to(device)
        for begin in range(0, len(self) * self.batch_size, self.batch_size):
            now = slice(begin, begin + self.batch_size)
            pixels = moved(self.pixels, order[now], moves[now], mirrored[now])
            yield self.normalised(pixels), self.labels[order[now]]


def folder(given: Path | None) -> Path:
    """The folder that is given, else the environment variable's; FileNotFoundError without data."""
    place = given or os.environ.get(PLACE)
    if not place:
        raise FileNotFoundError(f"no data: give its folder as --data or in the variable {PLACE}")
    if not (Path(place) / datasets.CIFAR10.base_folder).is_dir():
        raise FileNotFoundError(
            f"{place} has no folder {datasets.CIFAR10.base_folder}, which {datasets.CIFAR10.url} "
            "unpacks to"
        )
    return Path(place)


def read(
    place: Path, train: bool, limit: int | None, device: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels (N, 32, 32, 3) and labels of at most `limit` pictures.

    Raises RuntimeError if files are missing or broken.
    """
    files = datasets.CIFAR10(place, train=train)
    pixels = torch.from_numpy(files.data[:limit]).contiguous()
    return pixels.to(device), torch.tensor(files.targets[:limit], device=device)
