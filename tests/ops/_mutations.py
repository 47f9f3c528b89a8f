"""Samples with one argument replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


def mutations(
    args: tuple, kwargs: dict[str, Any], replacements: Callable[[Any], Iterable[Any]]
) -> Iterator[tuple[tuple, dict[str, Any]]]:
    """The arguments with each of them, one at a time, replaced by each of its replacements."""
    for position, value in enumerate(args):
        for other in replacements(value):
            yield (*args[:position], other, *args[position + 1 :]), kwargs
    for name, value in kwargs.items():
        for other in replacements(value):
            yield args, {**kwargs, name: other}
