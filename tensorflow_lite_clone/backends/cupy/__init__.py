"""CUDA devices over CuPy: arrays, hand-written kernels, streams, graphs."""

from __future__ import annotations

import cupy

from tensorflow_lite_clone.backends.base import Backend
from tensorflow_lite_clone.backends.cupy import overrides  # noqa: F401  registers them
from tensorflow_lite_clone.backends.cupy.backend import CupyBackend
from tensorflow_lite_clone.core.errors import BackendUnavailableError

_made: dict[int, Backend] = {}


def device_count() -> int:
    """How many CUDA devices this process can use; 0 without a driver."""
    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def backend(index: int) -> Backend:
    """The backend of a device, -1 being the current one; made when first asked for.

    Raises BackendUnavailableError without a GPU, RuntimeError for an index that does not exist.
    """
    count = device_count()
    if not count:
        raise BackendUnavailableError(
            "No CUDA GPUs are available: CuPy is installed, but it finds no NVIDIA GPU, or no "
            "driver that is new enough for it"
        )
    if index < 0:
        index = cupy.cuda.runtime.getDevice()
    if index >= count:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: cuda:{index} was asked for, and the devices are "
            f"cuda:0 to cuda:{count - 1}"
        )
    if index not in _made:
        _made[index] = CupyBackend(index, count == 1)
    return _made[index]


__all__ = ["backend", "device_count"]
