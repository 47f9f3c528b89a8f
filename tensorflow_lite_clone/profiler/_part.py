"""What is found out about one module of a model."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.core.device import Device


class Part:
    """What one module does itself, without what its children do; or what the loss does.

    ``host[0]`` and ``device[0]`` are microseconds of each run's forward, ``[1]`` of its backward.
    """

    def __init__(self, name: str, module: Any = None) -> None:
        self.name, self.module = name, module
        self.host: tuple[list[float], list[float]] = ([], [])
        self.device: tuple[list[float], list[float]] = ([], [])
        self.gpu: Device | None = None  # where it is timed beside the host
        # What one run showed:
        self.changes = [0, 0]  # from and to other parts, by calls in forward, by nodes in backward
        self.calls = 0
        self.order: int | None = None  # of the first call, among all modules
        self.shape: list[tuple[int, ...]] = []  # of the tensors that the first call gave
        self.takes: dict[Device, None] = {}  # the devices of its inputs
        self.gives: dict[Device, None] = {}  # and of its outputs
        self.memory = 0
        self.saved = 0
        self.copies = 0
        self.copied = 0  # bytes
        self.flops = 0
