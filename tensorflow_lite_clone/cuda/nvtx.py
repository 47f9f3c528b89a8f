"""Ranges and marks in the timelines of NVIDIA's profilers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow_lite_clone.cuda._devices import layer


def range_push(msg: str) -> None:
    """Open a range."""
    layer("runtime").range_push(msg)


def range_pop() -> None:
    """Close the innermost range."""
    layer("runtime").range_pop()


def mark(msg: str) -> None:
    """Mark this moment."""
    layer("runtime").mark(msg)


@contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A range around a block or, as a decorator, a function; `msg` is a format for the rest."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
