"""Nested state dicts as flat ones, whose names are paths with dots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tensorflow_lite_clone.distributed.checkpoint._shards import is_tensor

Path = tuple[str | int, ...]


class Leaf(NamedTuple):
    """A value of a nested state dict: ``container[key]``."""

    path: Path
    container: Any
    key: Any

    @property
    def value(self) -> Any:
        """The value that is there now."""
        return self.container[self.key]

    @property
    def name(self) -> str:
        """The path in one word."""
        return ".".join(map(str, self.path))


def leaves(container: Any, path: Path = ()) -> Iterator[Leaf]:
    """The values of dictionaries within dictionaries, in order.

    Lists are entered where they have tensors or dictionaries. Other values are leaves, tuples too.
    """
    named = isinstance(container, Mapping)
    for key in list(container) if named else range(len(container)):
        value = container[key]
        here = (*path, str(key) if named else key)
        if _is_entered(value):
            yield from leaves(value, here)
        else:
            yield Leaf(here, container, key)


def _is_entered(value: Any) -> bool:
    if isinstance(value, list):
        return any([is_tensor(part) or _is_entered(part) for part in value])
    return isinstance(value, Mapping)


def flattened(state_dict: dict[str, Any]) -> dict[str, Leaf]:
    """The leaves by their names; ValueError where two have the same."""
    found: dict[str, Leaf] = {}
    for leaf in leaves(state_dict):
        if leaf.name in found:
            raise ValueError(f"duplicated flatten key {leaf.name}")
        found[leaf.name] = leaf
    return found


def nested(flat: dict[str, Any], paths: dict[str, Path]) -> dict[str, Any]:
    """The state dict whose values have these names and paths; gaps in lists are None."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        place: Any = root
        path = paths[name]
        for key, following in zip(path, path[1:]):
            place = _entry(place, key, list if isinstance(following, int) else dict)
        if isinstance(place, list) and isinstance(path[-1], int):
            _lengthen(place, path[-1])
        place[path[-1]] = value
    return root


def _entry(place: Any, key: Any, kind: type) -> Any:
    """The container under `key`, which is made if it is not there."""
    if isinstance(place, list):
        _lengthen(place, key)
        if place[key] is None:
            place[key] = kind()
        return place[key]
    return place.setdefault(key, kind())


def _lengthen(values: list, index: int) -> None:
    values += [None] * (index + 1 - len(values))
