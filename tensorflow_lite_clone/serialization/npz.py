"""Weights in NumPy's ``.npz`` files, laid out as Chainer's serializers do.

The names are paths with slashes: ``layers/0/weight`` for a module's parameter ``layers.0.weight``,
``state/0/momentum_buffer`` and ``param_groups/0/lr`` for an optimizer. NumPy alone reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from tensorflow_lite_clone.ops.create.constructors import as_tensor, tensor
from tensorflow_lite_clone.serialization._archive import Counted, Window, end_of_archive
from tensorflow_lite_clone.serialization._files import opened_to_read, opened_to_write
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["load_npz", "save_npz"]


def save_npz(file: Any, obj: Any, compression: bool = True) -> None:
    """Write the state of a module or an optimizer, or a mapping of tensors, to an ``.npz`` file.

    `file` is a path, whose file appears complete or not at all, or a binary file object.
    """
    arrays = {path: _array(value) for path, value in _leaves(_state(obj))}
    write = np.savez_compressed if compression else np.savez
    with opened_to_write(file) as stream:
        write(cast(Any, _Stream(stream)), **arrays)  # which begins where the stream stands


def load_npz(file: Any, obj: Any, path: str = "", strict: bool = True) -> None:
    """Read what `save_npz` wrote into a module, an optimizer, or a dictionary of tensors.

    `path` is put before all names: with ``"encoder/"`` a part of a file is read. With `strict` a
    name of `obj` that the file lacks is a KeyError; otherwise its value stays. A dictionary's
    tensors are replaced. Nothing in a file is executed.
    """
    state = _state(obj)
    with opened_to_read(file) as stream, _arrays(stream) as arrays:
        known = set(arrays.files)

        def read(name: str, now: Any) -> Any:
            if path + name in known:
                return _value(arrays[path + name], now)
            if strict:
                raise KeyError(f"{path + name} is not a file in the archive")
            return now

        filled = _filled(state, read)
        if isinstance(filled.get("state"), dict) and "param_groups" in filled:
            # An optimizer that has not made a step has no state to be filled.
            for name in known:
                parts = name.removeprefix(path).split("/")
                if name.startswith(path) and parts[0] == "state" and len(parts) == 3:
                    entry = filled["state"].setdefault(int(parts[1]), {})
                    entry[parts[2]] = _value(arrays[name], entry.get(parts[2], tensor(0.0)))
    if hasattr(obj, "load_state_dict"):
        obj.load_state_dict(filled)
    else:
        obj.update(filled)


class _Stream(Counted):
    """A stream to write, which NumPy knows by a method that it does not call."""

    read = None


def _arrays(stream: Any) -> Any:
    """The arrays of the archive that begins where a file stands; others may follow."""
    start = stream.tell()
    window: Any = Window(stream, start, end_of_archive(stream, start))
    return np.load(window, allow_pickle=False)


def _state(obj: Any) -> Mapping[str, Any]:
    return obj.state_dict() if hasattr(obj, "state_dict") else obj


def _items(value: Any) -> Iterator[tuple[Any, Any]] | None:
    """The parts of a container, None for a leaf."""
    if isinstance(value, Mapping):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list | tuple) else None


def _leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    items = _items(value)
    if items is None:
        if value is not None:
            yield prefix[:-1], value
        return
    for name, part in items:
        yield from _leaves(part, f"{prefix}{str(name).replace('.', '/')}/")


def _filled(value: Any, read: Any, prefix: str = "") -> Any:
    """`value` with its leaves read anew."""
    items = _items(value)
    if items is None:
        return None if value is None else read(prefix[:-1], value)
    parts = {n: _filled(v, read, f"{prefix}{str(n).replace('.', '/')}/") for n, v in items}
    return parts if isinstance(value, Mapping) else type(value)(parts.values())


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        memory = value.detach().cpu()._storage
        return memory.backend.to_host(memory.array)
    array = np.asarray(value)
    if array.dtype == object:
        raise TypeError(f"an .npz file holds tensors, numbers and text, not {type(value).__name__}")
    return array


def _value(array: Any, now: Any) -> Any:
    """An array of a file as what stands in its place now."""
    if not isinstance(now, Tensor):
        return type(now)(array.item())
    if array.dtype.kind == "V":  # NumPy's files do not know bfloat16
        array = array.view(now._storage.physical.dtype)
    return as_tensor(array, device=now.device)
