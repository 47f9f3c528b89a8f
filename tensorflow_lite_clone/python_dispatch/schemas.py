"""Which overload of an operation of aten's a call is, and the arguments it has there.

`aten.txt` holds the signatures of PyTorch's operations. `resolve` finds the first that takes the
arguments of a call, as PyTorch's own reading of arguments does.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tensorflow_lite_clone.core import dtypes, strides
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.ops.compat.symbols import SymBool, SymFloat, SymInt
from tensorflow_lite_clone.tensor import Tensor

_FILE = Path(__file__).parent / "aten.txt"
#: Binary operations that take numbers for tensors.
_NUMBERS = frozenset("add sub mul div divide multiply subtract true_divide floor_divide".split())
#: Operations that PyTorch tells nothing about pinned memory.
_UNPINNED = frozenset(["to", "_to_copy"])
_REQUIRED = object()


class Argument(NamedTuple):
    """One argument of an operation."""

    name: str
    type: str
    default: Any
    kwarg_only: bool


class Call(NamedTuple):
    """A call of an operation, without the arguments that are defaults."""

    name: str
    overload: str
    args: tuple
    kwargs: dict[str, Any]

    def with_placement(self, device: Device) -> Call:
        """The call as PyTorch has it of an operation that makes a tensor: where, and not pinned.

        `device` is that of tensors which are made without one, and like no other.
        """
        names = [each.name for each in arguments_of(self.name, self.overload)]
        if "pin_memory" not in names:
            return self
        given: dict[str, Any] = {"device": device, "pin_memory": False}
        if any([isinstance(x, Tensor) for x in self.args]):
            del given["device"]
        if self.name in _UNPINNED:
            del given["pin_memory"]
        given.update(self.kwargs)
        return self._replace(kwargs={name: given[name] for name in names if name in given})


def _default(text: str) -> Any:
    names = {"None": None, "True": True, "False": False, "inf": float("inf")}
    if text in names:
        return names[text]
    if text[0] == "[":
        return [_default(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    if text[0] in "\"'":
        return text[1:-1]
    if text in ("contiguous_format", "preserve_format"):
        return getattr(strides, text)
    return float(text) if "." in text or "e" in text else int(text)


def _arguments(text: str) -> tuple[Argument, ...]:
    found, kwarg_only = [], False
    for item in re.split(r", (?![^\[(]*[\])])", text) if text else ():
        if item == "*":
            kwarg_only = True
            continue
        kind, _, name = item.rpartition(" ")
        if "=" in item:
            item, _, default = item.partition("=")
            kind, _, name = item.rpartition(" ")
            value = _default(default)
            length = re.search(r"\[(\d)\]\??$", kind)
            if length and not isinstance(value, (list, type(None))):
                value = [value] * int(length[1])
            if kind.startswith("ScalarType") and value is not None:
                value = dtypes.int64
        else:
            value = _REQUIRED
        found.append(Argument(name, kind, value, kwarg_only))
    return tuple(found)


def _order(overload: tuple[str, str]) -> str:
    """What overloads are sorted by: PyTorch writes the types of lists with capitals."""
    return overload[1].replace("int[", "IntArrayRef[").replace("Scalar", "Tensos")


@cache
def _table() -> dict[str, list[tuple[str, str]]]:
    """Name -> its overloads with their signatures, in the order in which calls are compared."""
    table: dict[str, list[tuple[str, str]]] = {}
    for line in re.sub(r"\n +", " ", _FILE.read_text()).splitlines():
        signature, _, names = line.rpartition("): ")
        for name in names.split():
            packet, _, overload = name.partition(".")
            table.setdefault(packet, []).append((overload or "default", signature[1:]))
    for found in table.values():  # tensors are tried before numbers
        found.sort(key=_order)
    return table


@cache
def overloads(name: str) -> tuple[tuple[str, tuple[Argument, ...]], ...]:
    """The overloads of an operation with their arguments; empty if there is no such operation."""
    table = _table()
    found = list(table.get(name, ()))
    if name.endswith("_") and not name.endswith("__"):
        have = [overload for overload, _ in found]
        found += [each for each in table.get(name[:-1], ()) if each[0] not in have]
    return tuple([(overload, _arguments(text)) for overload, text in found])


def arguments_of(name: str, overload: str) -> tuple[Argument, ...]:
    """The arguments of one overload; empty if it is not known."""
    return dict(overloads(name)).get(overload, ())


# -- types -----------------------------------------------------------------------------------------


class _Mismatch(Exception):
    """A value that is not of an argument's type."""


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, SymInt)) and not isinstance(value, bool)


def _int(value: Any) -> Any:
    if _is_int(value):
        return value
    raise _Mismatch


def _float(value: Any) -> Any:
    if isinstance(value, (float, SymFloat)):
        return value
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else _int(value)


def _number(value: Any) -> Any:
    if isinstance(value, (int, float, complex, SymInt, SymFloat, SymBool)):
        return value
    raise _Mismatch


def _of(*kinds: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if isinstance(value, kinds):
            return value
        raise _Mismatch

    return read


_PYTHON_DTYPES = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool_}


def _dtype(value: Any) -> Any:
    value = _PYTHON_DTYPES.get(value, value) if isinstance(value, type) else value
    return _of(DType)(value)


def _device(value: Any) -> Any:
    if isinstance(value, (str, Device)):
        return Device(value)
    raise _Mismatch


_READERS: dict[str, Callable[[Any], Any]] = {
    "Tensor": _of(Tensor), "int": _int, "SymInt": _int, "float": _float, "Scalar": _number,
    "bool": _of(bool), "str": _of(str), "ScalarType": _dtype, "Device": _device,
}  # fmt: skip


def _read(value: Any, kind: str, numbers: bool) -> Any:
    """A value as an argument of a type; `_Mismatch` if it is none."""
    if kind.endswith("?"):
        if value is None:
            return None
        kind = kind[:-1]
    if kind.endswith("]"):
        item, _, length = kind[:-1].rpartition("[")
        if length and not isinstance(value, (list, tuple)):
            return [_read(value, item, False)] * int(length)
        if not isinstance(value, (list, tuple)):
            raise _Mismatch
        return [_read(each, item, False) for each in value]
    if kind == "Tensor" and numbers and not isinstance(value, Tensor):
        return _number(value)
    reader = _READERS.get(kind)
    if value is None and reader is not None:
        raise _Mismatch
    return value if reader is None else reader(value)


# -- calls -----------------------------------------------------------------------------------------

#: Names of arguments in public functions, where these are not aten's.
_RENAMED = {"input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self", "x2": "other"}


def resolve(name: str, args: tuple, kwargs: dict[str, Any]) -> Call | None:
    """The first overload of an operation that takes these arguments; None if none does."""
    for gather in (False, True):
        for overload, arguments in overloads(name):
            if overload.startswith("Scalar") and name.rstrip("_") in _NUMBERS:
                continue
            given = _gathered(args, arguments) if gather else args
            call = None if given is None else _bind(name, overload, arguments, given, kwargs)
            if call is not None:
                return call
    return None


def _bind(
    name: str,
    overload: str,
    arguments: tuple[Argument, ...],
    args: tuple,
    kwargs: dict[str, Any],
) -> Call | None:
    positional = [each for each in arguments if not each.kwarg_only]
    if len(args) > len(positional):
        return None
    given = dict(zip([each.name for each in positional], args))
    known = {each.name for each in arguments}
    for key, value in kwargs.items():
        key = key if key in known else _RENAMED.get(key, key)
        if key == "out" and value is None:
            continue
        if key in given or key not in known:
            if value is None or key == "requires_grad":
                continue
            return None
        given[key] = value
    values, named = [], {}
    numbers = name.rstrip("_") in _NUMBERS and overload.startswith(("Tensor", "default"))
    for argument in arguments:
        if argument.name not in given:
            if argument.default is _REQUIRED:
                return None
            value = argument.default
        else:
            try:
                value = _read(given[argument.name], argument.type, numbers)
            except _Mismatch:
                return None
        if not argument.kwarg_only:
            values.append(value)
        elif not _same(value, argument.default):
            named[argument.name] = value
    while values and _same(values[-1], positional[len(values) - 1].default):
        values.pop()
    if numbers and not any([isinstance(value, Tensor) for value in values]):
        return None
    return Call(name, overload, tuple(values), named)


def _gathered(args: tuple, arguments: tuple[Argument, ...]) -> tuple | None:
    """Arguments in which the numbers at the end are one list, as in ``x.view(2, 3)``."""
    positional = [each for each in arguments if not each.kwarg_only]
    if not positional or not positional[-1].type.startswith(("SymInt[]", "int[]")):
        return None
    before = len(positional) - 1
    rest = args[before:]
    return (*args[:before], list(rest)) if rest and all(map(_is_int, rest)) else None


def _same(value: Any, default: Any) -> bool:
    """Whether an argument is its default, so that it need not be written."""
    return default is not _REQUIRED and type(value) is type(default) and bool(value == default)
