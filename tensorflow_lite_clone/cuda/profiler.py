"""Telling NVIDIA's profilers which part of a program to look at, as ``torch.cuda.profiler``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tensorflow_lite_clone.cuda._devices import layer

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Let a profiler that runs beside the program collect from now on."""
    layer("runtime").profile(True)


def stop() -> None:
    """Let it collect no more."""
    layer("runtime").profile(False)


@contextmanager
def profile() -> Iterator[None]:
    """A block that is collected."""
    start()
    try:
        yield
    finally:
        stop()
