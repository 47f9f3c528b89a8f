"""What all datasets of pictures share: a place, transforms, a repr."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.utils.data import Dataset

Path = str | os.PathLike


class VisionDataset(Dataset):
    """A dataset of pictures in files below `root`.

    Args:
        root: the folder; None for a dataset that has none.
        transforms: called with picture and target, gives both; ValueError beside one of the two
        transform: applied to the picture.
        target_transform: applied to the target.
    """

    def __init__(
        self,
        root: Path | None = None,
        transforms: Callable | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
    ) -> None:
        self.root: Any = os.path.expanduser(root) if isinstance(root, str) else root
        if transforms is not None and (transform is not None or target_transform is not None):
            raise ValueError(
                "Only transforms or transform/target_transform can be passed as argument"
            )
        self.transform = transform
        self.target_transform = target_transform
        if transform is not None or target_transform is not None:
            transforms = StandardTransform(transform, target_transform)
        self.transforms = transforms

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Lines a subclass adds to its repr."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        if self.transforms is not None:
            lines.append(repr(self.transforms))
        return "\n    ".join([f"Dataset {type(self).__name__}", *lines])

    def _transformed(self, picture: Any, target: Any) -> tuple[Any, Any]:
        """The sample after the two transforms."""
        if self.transform is not None:
            picture = self.transform(picture)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return picture, target


class StandardTransform:
    """A transform of pictures and one of targets, as one of both; None leaves its part alone."""

    def __init__(
        self, transform: Callable | None = None, target_transform: Callable | None = None
    ) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        text = type(self).__name__
        for head, value in [
            ("Transform: ", self.transform),
            ("Target transform: ", self.target_transform),
        ]:
            if value is not None:
                text += f"\n{head}" + repr(value).replace("\n", "\n" + " " * len(head))
        return text
