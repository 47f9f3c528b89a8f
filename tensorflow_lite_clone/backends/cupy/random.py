"""Random numbers on a CUDA device: Philox, with seed and offset in device memory."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np


class Generator:
    """One device's stream. `ticket(count)` reserves counters; kernels draw by them."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._seed = 0
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        self._seed = seed
        self._state = cupy.asarray(np.array([seed % 2**64, 0], np.uint64))
        return self
