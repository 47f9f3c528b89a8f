"""The words of F over batched arrays: rules, and a loop over the samples where there is none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.dispatch.kinds import Kind
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES, is_primitive

#: Primitive or kind -> rule(backend, base primitive, *arguments); it makes arrays of the backend.
RULES: dict[str | Kind, Callable[..., Any]] = {}
#: What has fallen back to a loop so far: it is said once.
warned: set[str] = set()


def rule(*of: str | Kind) -> Callable[..., Any]:
    """Enter a function as the rule of kinds, or of primitives whose kind has none or another."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for key in of:
            if key in RULES:
                raise ValueError(f"two rules for '{key}'")
            RULES[key] = function
        return function

    return register


def rule_of(name: str) -> Callable[..., Any] | None:
    """The rule of a primitive: its own, else that of its kind."""
    return RULES.get(name) or RULES.get(PRIMITIVES[name].kind)


class Words:
    """The primitives of the base backend under their rules."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def __getattr__(self, name: str) -> Any:
        backend = self._backend
        base = backend.base
        if not is_primitive(name):
            raise AttributeError(name)
        word = getattr(base.F, name)
        if name in ("linalg", "fft"):
            return _Room(backend, name, word)
        if isinstance(word, type) or not callable(word):
            return word
        return _batched(backend, word, name)


class _Room:
    """The standard's linalg or fft over batched arrays."""

    def __init__(self, backend: Any, name: str, room: Any) -> None:
        self._backend, self._name, self._room = backend, name, room

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _batched(self._backend, getattr(self._room, name), f"{self._name}.{name}")


def _batched(backend: Any, word: Callable[..., Any], name: str) -> Callable[..., Any]:
    found = rule_of(name)
    return (
        partial(fallback_loop, backend, word, name)
        if found is None
        else partial(found, backend, word)
    )


def fallback_loop(
    backend: Any, word: Callable[..., Any], name: str, *args: Any, **kwargs: Any
) -> Any:
    """A word without a rule: once for every sample, with a warning the first time."""
    if not any(map(backend.is_batched, _leaves((args, kwargs)))):
        return backend.make(word(*_chosen(backend, args, 0), **_chosen(backend, kwargs, 0)), True)
    warn_once(name, backend.size)
    rows = [
        word(*_chosen(backend, args, number), **_chosen(backend, kwargs, number))
        for number in range(backend.size)
    ]
    return _stacked(backend, rows)


def warn_once(name: str, size: int) -> None:
    """Say, once, that something is called for each of `size` samples; RuntimeError for none."""
    if not size:
        raise RuntimeError(
            f"There is no batching rule for {name}. The fallback path does not support vmap over "
            "dims of size 0."
        )
    if name not in warned:
        warned.add(name)
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
