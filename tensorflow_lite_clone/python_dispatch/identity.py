"""While modes are on: which of the program's tensors an array is of.

Ops work with arrays, but a mode is to be given the tensors that the program has, the same object
each time. So `Tensor._storage` is a property meanwhile, and whoever reads a tensor's storage, as
every function does before it calls an op, leaves a note here. What a mode returned for an op is
what modes are given for the op's result from then on.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Any
from weakref import WeakValueDictionary, ref

from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.storage import Storage
from tensorflow_lite_clone.tensor import Tensor

_slot: Any = vars(Tensor)["_storage"]


class _Notes(threading.local):
    def __init__(self) -> None:  # called once per thread
        self.tensors: WeakValueDictionary[int, Tensor] = WeakValueDictionary()  # by id(array)
        self.returned: list[tuple[Any, Tensor]] = []  # by a mode, for the last op, with the arrays
        #: By id(result), a reference to the result of an op and what a mode returned for it.
        self.results: dict[int, tuple[Any, Tensor]] = {}


_notes = _Notes()


def _read(tensor: Tensor) -> Storage:
    storage: Storage = _slot.__get__(tensor)
    if mode.dispatch_modes and tensor_of(storage.physical) is None:
        _notes.tensors[id(storage.physical)] = tensor
    return storage


def _write(tensor: Tensor, storage: Storage) -> None:
    _slot.__set__(tensor, storage)
    notes, key = _notes, id(tensor)
    for place, (array, returned) in enumerate(notes.returned):
        if array is storage.physical:
            notes.results[key] = ref(tensor, partial(_forget, notes.results, key)), returned
            del notes.returned[place]
            break


def _forget(results: dict[int, Any], key: int, reference: Any) -> None:
    results.pop(key, None)


def tensor_of(array: Any) -> Tensor | None:
    """The tensor that modes are given for an array, if the program has one."""
    tensor = _notes.tensors.get(id(array))
    if tensor is None or _slot.__get__(tensor).physical is not array:
        return None
    if id(tensor) in _notes.results:
        returned = _notes.results[id(tensor)][1]
        if _slot.__get__(returned).physical is array:
            return returned
    return tensor


def note_result(array: Any, tensor: Tensor) -> None:
    """Remember what a mode returned for an op, until the op's result is made of its array."""
    _notes.returned.append((array, tensor))


def forget_results() -> None:
    """Begin a new op."""
    _notes.returned.clear()


def watch() -> None:
    """Take notes of the tensors whose storages are read."""
    Tensor._storage = property(_read, _write)  # type: ignore[assignment]


def unwatch() -> None:
    """Take no more notes."""
    Tensor._storage = _slot
