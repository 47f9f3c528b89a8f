"""Pictures of noise, for trying things out without files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone import random
from tensorflow_lite_clone.ops.create.constructors import empty
from tensorflow_lite_clone.ops.random.sampling import randint
from tensorflow_lite_clone.vision.datasets.vision import VisionDataset
from tensorflow_lite_clone.vision.transforms.functional import to_pil_image


class FakeData(VisionDataset):
    """PIL images of normal noise with random labels, the same ones each time.

    Args:
        size: how many.
        image_size: (C, H, W).
        num_classes: labels are below it.
        transform: applied to the picture, `target_transform` to the label.
        random_offset: added to the index, which seeds the sample's noise.
    """

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(transform=transform, target_transform=target_transform)
        self.size = size
        self.num_classes = num_classes
        self.image_size = image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        state = random.get_rng_state()
        random.manual_seed(index + self.random_offset)
        noise = empty(self.image_size).normal_()
        target = int(randint(0, self.num_classes, (1,)))
        random.set_rng_state(state)
        return self._transformed(to_pil_image(noise), target)

    def __len__(self) -> int:
        return self.size
