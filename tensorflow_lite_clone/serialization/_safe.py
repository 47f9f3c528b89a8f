"""What files may name when only weights are loaded: PyTorch's list, and what users add to it."""

from __future__ import annotations

import codecs
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow_lite_clone.core import locks
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.shape import Size
from tensorflow_lite_clone.serialization import _rebuild
from tensorflow_lite_clone.serialization._names import KNOWN, full_name

Global = Callable[..., Any] | tuple[Callable[..., Any], str]

_lock = locks.lock()
_permanent: list[Global] = []
_scoped: list[Global] = []  # an entry is there once for each open block that has it

#: Modules whose names no list of a user's makes callable.
BLOCKED = ("sys", "os", "posix", "nt")


def add_safe_globals(safe_globals: list[Global]) -> None:
    """Let ``load(weights_only=True)`` use these functions and classes.

    An entry is one of them, or a tuple of it and the full name under which files know it;
    anything else is a TypeError or a ValueError.
    """
    entries = _checked(safe_globals)
    with _lock:
        _permanent.extend([entry for entry in entries if entry not in _permanent])


def get_safe_globals() -> list[Global]:
    """What `add_safe_globals` and open blocks have added."""
    with _lock:
        entries = [*_permanent, *_scoped]
    return [entry for place, entry in enumerate(entries) if entry not in entries[:place]]


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` and open blocks have added."""
    with _lock:
        _permanent.clear()
        _scoped.clear()


class safe_globals:  # noqa: N801  (PyTorch's name)
    """A block in which ``load(weights_only=True)`` may use these functions and classes, too.

    Blocks may overlap, in threads and generators as well: each takes back its own entries.
    """

    def __init__(self, safe_globals: list[Global]) -> None:
        self._entries = _checked(safe_globals)

    def __enter__(self) -> None:
        with _lock:
            _scoped.extend(self._entries)

    def __exit__(self, *exception: Any) -> None:
        with _lock:
            for entry in self._entries:
                if entry in _scoped:  # else they have been cleared
                    _scoped.remove(entry)


def _checked(entries: Iterable[Any]) -> list[Global]:
    """The entries of a list of safe names; TypeError or ValueError for what is none."""
    checked = list(entries)
    for entry in checked:
        value = entry
        names: tuple[str, ...] = ("__module__", "__qualname__")
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError(
                    "Expected tuple of length 2 (global, str of callable full path), but got tuple "
                    f"of length: {len(entry)}"
                )
            value, names = entry[0], ()
            if type(entry[1]) is not str:
                raise TypeError(
                    "Expected second item in tuple to be str of callable full path, but got: "
                    f"{type(entry[1])}"
                )
        if not callable(value) or not all([hasattr(value, name) for name in names]):
            raise TypeError(
                "safe globals are functions and classes, or tuples of one and its name, but got: "
                f"{value!r}"
            )
    return checked


def added() -> dict[str, Any]:
    """Full name -> function or class, of what users have added."""
    return {
        entry[1] if isinstance(entry, tuple) else full_name(entry): (
            entry[0] if isinstance(entry, tuple) else entry
        )
        for entry in get_safe_globals()
    }


class Keys:
    """The keys of dictionaries and sets that a file makes, to find those that would take long."""

    def __init__(self) -> None:
        self._alike: dict[int, list[Any]] = {}  # hash -> the keys that have it

    def weigh(self, keys: Iterable[Any]) -> None:
        """ValueError for keys that are slow to hash, or that are many with one hash.

        Tuples of tuples can share their parts; and whatever has the hash of others is compared
        with all of them. That of text nobody can know, and small numbers have each their own.
        """
        for key in keys:
            if type(key) in (str, bytes, bool) or type(key) is int and abs(key) < sys.maxsize >> 2:
                continue
            _expect_few_parts(key)
            alike = self._alike.setdefault(hash(key), [])
            if key not in alike:
                alike.append(key)
            if len(alike) > _MOST_ALIKE:
                raise ValueError("too many keys of dictionaries or sets have one hash")


_MOST_ALIKE = 100
_MOST_PARTS = 1000


def _expect_few_parts(key: Any) -> None:
    rest, seen = [key], 0
    while rest:
        value = rest.pop()
        seen += 1
        if seen > _MOST_PARTS:
            raise ValueError("a key of a dictionary or set has too many parts")
        if isinstance(value, (tuple, frozenset)):
            rest.extend(value)


def _exactly(types: Any, *values: Any) -> None:
    for value in values:
        if type(value) not in types:
            raise TypeError(f"{type(value).__name__} is not expected here")


def _ordered_dict(items: Any = ()) -> OrderedDict:
    _exactly((list, tuple, dict, OrderedDict), items)
    pairs = list(items.items() if isinstance(items, dict) else items)
    _exactly((list, tuple), *pairs)
    Keys().weigh([key for key, _ in pairs])
    return OrderedDict(pairs)


def _counter(items: Any = None) -> Counter:
    _exactly((dict, type(None)), items)
    return Counter(items)


def _set(items: Any = ()) -> set:
    _exactly((list, tuple), items)
    Keys().weigh(items)
    return set(items)


def _complex(real: Any, imag: Any = 0.0) -> complex:
    _exactly((int, float), real, imag)
    return complex(real, imag)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    _exactly((str,), text, encoding)
    if encoding != "latin1":
        raise ValueError(f"bytes are kept as text in latin1, not in {encoding}")
    return codecs.latin_1_encode(text)[0]


def _bytearray(data: Any = b"", encoding: Any = "latin-1") -> bytearray:
    if type(data) is str and encoding == "latin-1":
        data = codecs.latin_1_encode(data)[0]
    _exactly((bytes,), data)
    return bytearray(data)


def _device(kind: Any, index: Any = None) -> Device:
    _exactly((str,), kind)
    _exactly((int, type(None)), index)
    return Device(kind, index)


def _size(sizes: Any) -> Size:
    _exactly((list, tuple), sizes)
    _exactly((int,), *sizes)
    return Size(sizes)


#: Name -> what it stands for on the stack. Only these, their values being functions that check
#: their arguments or constants, can be had from a file.
DEFAULT: dict[tuple[str, str], Any] = {
    key: value for key, value in KNOWN.items() if key != ("torch.nn.parameter", "Buffer")
}
DEFAULT.update(
    {
        ("torch", "Size"): _size,
        ("torch", "device"): _device,
        ("collections", "OrderedDict"): _ordered_dict,
        ("collections", "Counter"): _counter,
        ("builtins", "set"): _set,
        ("builtins", "complex"): _complex,
        ("builtins", "bytearray"): _bytearray,
        ("_codecs", "encode"): _encode,
    }
)

#: Of these, what a file may call.
CALLABLE: tuple[Any, ...] = (
    _size,
    _ordered_dict,
    _counter,
    _set,
    _complex,
    _bytearray,
    _encode,
    _device,
    _rebuild.layout,
    _rebuild.rebuild_quantized_tensor,
    _rebuild.rebuild_sparse_tensor,
    _rebuild.rebuild_tensor,
    _rebuild.rebuild_tensor_v2,
    _rebuild.rebuild_tensor_v3,
    _rebuild.rebuild_meta_tensor,
    _rebuild.rebuild_parameter,
    _rebuild.rebuild_parameter_with_state,
    _rebuild.rebuild_from_type,
    _rebuild.rebuild_wrapper_subclass,
)
#: Of these, what copies its arguments.
COPYING = (_size, _ordered_dict, _counter, _set, _bytearray, _encode)
