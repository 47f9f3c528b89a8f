"""The rows of the table for a GPU: what is done, and how long it is to take at most."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from tests.bench.cuda_steps import Training, training


class Row(NamedTuple):
    """One piece of work.

    `work(lib, channels_last=False, wrap=None)` makes it for a library: a function with its
    arguments. `goal` is in microseconds, `pictures` says whether `channels_last` means something.
    """

    title: str
    goal: float
    work: Callable[..., Training]
    is_step: bool
    pictures: bool
    flops: float = 0
    bytes: float = 0


def _step(title: str, goal: float, name: str, batch: int, **options: Any) -> Row:
    pictures = name not in ("mlp", "vit")
    return Row(title, goal, partial(_trained, name, batch, options), True, pictures)


def _trained(name: str, batch: int, options: dict[str, Any], lib: Any, **more: Any) -> Training:
    return training(lib, name, batch, **options, **more)


STEPS = {
    "mlp": _step("MNIST MLP step b32", 45, "mlp", 32),
    "cnn": _step("MNIST CNN step b128", 450, "cnn", 128),
    "vit": _step("MNIST ViT step b128", 1000, "vit", 128),
    "resnet20": _step("ResNet-20 CIFAR step b128", 2500, "resnet20", 128),
    "resnet18": _step("ResNet-18 CIFAR step b512", 11000, "resnet18", 512),
    "resnet18-bf16": _step("ResNet-18 CIFAR step b512 bf16", 6000, "resnet18", 512, half=True),
}
ROWS: dict[str, Row] = {**STEPS}
