"""The words of F over batched arrays: rules, and a loop over the samples where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.dispatch.raw import STANDARD

#: word -> rule(backend, base word, *arguments); a rule makes arrays of the backend.
RULES: dict[str, Callable[..., Any]] = {}
#: Words of the standard's linalg and fft, likewise.
SUBRULES: dict[str, Callable[..., Any]] = {}
#: What has fallen back to a loop so far: it is said once.
announced: set[str] = set()


def rule(names: str, table: dict[str, Callable[..., Any]] = RULES) -> Callable[..., Any]:
    """Enter a function as the rule of these words."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names.split():
            if name in table:
                raise ValueError(f"two rules for '{name}'")
            table[name] = function
        return function

    return register


class Words:
    """A kit: the base backend's words under their rules."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        backend = self._backend
        base = backend.base
        if name.startswith("_") or (name not in STANDARD and not hasattr(base.kit, name)):
            raise AttributeError(name)
        word = getattr(base.F, name)
        if name in ("linalg", "fft"):
            return _Room(backend, name, word)
        if name in RULES:
            return partial(RULES[name], backend, word)
        if isinstance(word, type) or not callable(word):
            return word
        return partial(looped, backend, word, name)


class _Room:
    """The standard's linalg or fft over batched arrays."""

    def __init__(self, backend: Any, name: str, room: Any) -> None:
        self._backend, self._name, self._room = backend, name, room

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        word = getattr(self._room, name)
        backend = self._backend
        if name in SUBRULES:
            return partial(SUBRULES[name], backend, word)
        return partial(looped, backend, word, f"{self._name}.{name}")


def looped(backend: Any, word: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """A word without a rule: once for every sample, with a warning the first time."""
    if not any(map(backend.is_batched, _leaves((args, kwargs)))):
        return backend.make(word(*_chosen(backend, args, 0), **_chosen(backend, kwargs, 0)), True)
    announce(name, backend.size)
    rows = [
        word(*_chosen(backend, args, number), **_chosen(backend, kwargs, number))
        for number in range(backend.size)
    ]
    return _stacked(backend, rows)


def announce(name: str, size: int) -> None:
    """Say, once, that something is called for each of `size` samples; RuntimeError for none."""
    if not size:
        raise RuntimeError(
            f"There is no batching rule for {name}. The fallback path does not support vmap over "
            "dims of size 0."
        )
    if name not in announced:
        announced.add(name)
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule "
            f"for {name}.",
            UserWarning,
            stacklevel=level_outside(),
        )


def _stacked(backend: Any, rows: list) -> Any:
    first = rows[0]
    if first is None:
        return None
    if isinstance(first, (tuple, list)):
        columns = [_stacked(backend, list(column)) for column in zip(*rows, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
    base = backend.base
    arrays = [row if type(row) is base.array_type else base.asarray(row) for row in rows]
    return backend.make(base.F.stack(arrays, axis=0), False)


def _leaves(value: Any) -> list:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for entry in value for leaf in _leaves(entry)]
    return [value]


def _chosen(backend: Any, value: Any, number: int) -> Any:
    """The arguments of one sample."""
    if isinstance(value, dict):
        return {key: _chosen(backend, entry, number) for key, entry in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([_chosen(backend, entry, number) for entry in value])
    if type(value) is backend.array_type:
        return value.data if value.shared else value.data[number]
    return value
