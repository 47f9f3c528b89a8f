"""Datasets that are folders: one for each class, with that class's samples in it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.vision._pillow import open_image
from tensorflow_lite_clone.vision.datasets.vision import Path, VisionDataset

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
# Pillow's names of the formats that those names promise, and GIF.
FORMATS = ("JPEG", "PNG", "PPM", "BMP", "TIFF", "WEBP", "GIF")


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether the name ends in one of the extensions, whatever its case."""
    return filename.lower().endswith(extensions if isinstance(extensions, str) else (*extensions,))


def is_image_file(filename: str) -> bool:
    """Whether the name ends like a picture's."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: Path) -> tuple[list[str], dict[str, int]]:
    """The folders in a directory, sorted, and the number of each; FileNotFoundError if none."""
    folder: Any = directory
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(
    directory: Path,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """(path, number of the class) of every sample below `directory/CLASS`, in order of the names.

    A sample has one of the `extensions`, or `is_valid_file(path)` is true; exactly one of the
    two is given (ValueError). `class_to_idx` is that of `find_classes` by default. Raises
    FileNotFoundError for classes without a sample, unless `allow_empty`.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        class_to_idx = find_classes(directory)[1]
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError(
            "Both extensions and is_valid_file cannot be None or not None at the same time"
        )
    if is_valid_file is None:
        is_valid_file = lambda path: has_file_allowed_extension(path, extensions)  # type: ignore[arg-type]
    samples: list[tuple[str, int]] = []
    empty = []
    for name in sorted(class_to_idx):
        before = len(samples)
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            paths = [os.path.join(folder, file) for file in sorted(files)]
            samples += [(path, class_to_idx[name]) for path in paths if is_valid_file(path)]
        if len(samples) == before:
            empty.append(name)
    if empty and not allow_empty:
        message = f"Found no valid file for the classes {', '.join(empty)}. "
        if extensions is not None:
            listed = extensions if isinstance(extensions, str) else ", ".join(extensions)
            message += f"Supported extensions are: {listed}"
        raise FileNotFoundError(message)
    return samples


def pil_loader(path: Path) -> Any:
    """The picture in a file, as a PIL image in RGB.

    It must be one of `FORMATS`, whatever its name says; else Pillow's UnidentifiedImageError.
    """
    with open(path, "rb") as file:
        return open_image(file, FORMATS).convert("RGB")


def default_loader(path: Path) -> Any:
    """How `ImageFolder` reads a file: `pil_loader`."""
    return pil_loader(path)


class DatasetFolder(VisionDataset):
    """Samples in `root/CLASS/.../FILE`.

    Args:
        root: the folder of the classes' folders.
        loader: gives the sample of a path.
        extensions: which files are samples; or `is_valid_file`, asked with a path.
        transform: applied to the sample, `target_transform` to the number of its class.
        allow_empty: classes without samples are allowed; else they raise FileNotFoundError.

    `classes` holds the names of the classes, `class_to_idx` their numbers, `samples` pairs of path
    and number, `targets` the numbers.
    """

    def __init__(
        self,
        root: Path,
        loader: Callable[[str], Any],
        extensions: tuple[str, ...] | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(
            self.root, self.class_to_idx, extensions, is_valid_file, allow_empty
        )
        self.loader = loader
        self.extensions = extensions
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(
        directory: Path,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """Finds the samples, as the function of that name; a subclass may do it otherwise."""
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: Path) -> tuple[list[str], dict[str, int]]:
        """Finds the classes, as the function of that name; a subclass may do it otherwise."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(DatasetFolder):
    """Pictures in `root/CLASS/.../FILE`, as PIL images in RGB; see `DatasetFolder`.

    `imgs` is another name of `samples`.
    """

    def __init__(
        self,
        root: Path,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        loader: Callable[[str], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(
            root, loader, extensions, transform, target_transform, is_valid_file, allow_empty
        )
        self.imgs = self.samples
