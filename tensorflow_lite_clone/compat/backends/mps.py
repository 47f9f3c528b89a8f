"""``torch.backends.mps``: Apple's GPUs are not served."""

from __future__ import annotations


def is_built() -> bool:
    """False: there is no such backend."""
    return False


def is_macos_or_newer(major: int, minor: int) -> bool:
    """False: there is no such backend."""
    return False


def is_available() -> bool:
    """False: there is no such backend."""
    return False
