"""CUDA devices, as ``torch.cuda``: this version has no backend for them, and says so.

Scripts that ask before they use a GPU run; asking for the device itself raises an error.
"""

from __future__ import annotations


def is_available() -> bool:
    """Whether tensors can be put on a CUDA device."""
    return device_count() > 0


def device_count() -> int:
    """How many CUDA devices can be used."""
    return 0


def is_initialized() -> bool:
    """Whether a CUDA device has been used."""
    return False


def manual_seed(seed: int) -> None:
    """Seed the current device's generator; without a device there is none."""


def manual_seed_all(seed: int) -> None:
    """Seed all devices' generators; without a device there are none."""


def empty_cache() -> None:
    """Give unused device memory back; without a device there is none."""


__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
]
