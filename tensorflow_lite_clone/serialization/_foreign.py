"""What PyTorch's files may hold and this package has not.

It is read as far as possible, so that the error can say which entries of the file are of which
kind.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Foreign:
    """Stands for a function or dtype that is not here, and for what is made with it."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, *arguments: Any) -> Foreign:
        return self

    def __setstate__(self, state: Any) -> None:
        pass


_QUANTIZED = "a quantized tensor of fewer bits"
_FUNCTIONS = {
    "_rebuild_nested_tensor": "a nested tensor",
    "_rebuild_device_tensor_from_numpy": "a tensor of another device",
    "_rebuild_device_tensor_from_cpu_tensor": "a tensor of another device",
    "_rebuild_xla_tensor": "a tensor on the device xla",
}
_DTYPES = (
    "bit bits16 bits1x8 bits2x4 bits4x2 bits8 complex32 float4_e2m1fn_x2 int1 int2 int3 int4 int5 "
    "int6 int7 quint2x4 quint4x2 uint1 uint2 uint3 uint4 uint5 uint6 uint7"
).split()
_STORAGES = ("QUInt2x4Storage", "QUInt4x2Storage")
#: PyTorch's globals of that sort -> what they are a part of.
FOREIGN = {("torch._utils", name): kind for name, kind in _FUNCTIONS.items()}
FOREIGN.update({("torch", name): f"of the dtype torch.{name}" for name in _DTYPES})
FOREIGN.update({("torch", name): _QUANTIZED for name in _STORAGES})

_SHOWN = 5  # entries in a message
_LONGEST = 200
_PLAIN = (str, bytes, int, float, complex, type(None))


class Sightings:
    """What of that sort a file names while it is read."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._has_layouts = False

    def look_up(self, module: str, name: str) -> Foreign | None:
        """What stands for a global of PyTorch's that is not here; None for all others."""
        if (module, name) == ("torch.serialization", "_get_layout"):
            self._has_layouts = True
        kind = FOREIGN.get((module, name))
        if kind is None:
            return None
        self._kinds.add(kind)
        return Foreign(kind)

    def expect_none(self, value: Any) -> None:
        """UnpicklingError if `value`, which was read from the file, holds any of it."""
        if not self._kinds and not self._has_layouts:
            return
        found = [f"{path or 'the object'} is {kind}" for path, kind in _entries(value)]
        more = len(found) - _SHOWN
        listed = "; ".join(found[:_SHOWN] or sorted(self._kinds))
        if listed:
            listed += f"; and {more} more" if more > 0 else ""
            raise pickle.UnpicklingError(f"the file holds what is not supported here: {listed}")


def spreading(function: _Function) -> _Function:
    """A function that gives a foreign value for a foreign argument."""

    @functools.wraps(function)
    def spread(*arguments: Any) -> Any:
        for argument in arguments:
            if type(argument) is Foreign:
                return argument
        return function(*arguments)

    return spread  # type: ignore[return-value]


def _entries(value: Any) -> list[tuple[str, str]]:
    """Where foreign values lie in nested containers and objects, and their kinds."""
    found = []
    rest = [("", value)]
    seen = set()
    while rest:
        path, value = rest.pop()
        if type(value) is Foreign:
            found.append((path, value.kind))
            continue
        if id(value) in seen:
            continue
        seen.add(id(value))
        items: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            items = [(_extended(path, key), entry) for key, entry in value.items()]
        elif isinstance(value, (list, tuple)):
            items = [(_extended(path, key), entry) for key, entry in enumerate(value)]
        if not isinstance(value, (type, ModuleType, FunctionType)):
            attributes = getattr(value, "__dict__", {})
            items += [(f"{path}.{name}", entry) for name, entry in attributes.items()]
        rest += reversed([item for item in items if not isinstance(item[1], _PLAIN)])
    return found


def _extended(path: str, key: Any) -> str:
    """The path of an entry of what lies at `path`; of deep ones the beginning."""
    if len(path) > _LONGEST:
        return path
    shown = repr(key) if type(key) in (str, int) else f"<{type(key).__name__}>"
    longer = f"{path}[{shown}]"
    return longer if len(longer) <= _LONGEST else f"{longer[:_LONGEST]}..."
