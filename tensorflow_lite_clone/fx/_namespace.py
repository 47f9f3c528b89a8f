"""Names for values, functions and types, each unique in its space, as PyTorch chooses them."""

from __future__ import annotations

import builtins
import keyword
import math
import re
import sys
from typing import Any, NamedTuple

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.fx import _pytree as fx_pytree
from tensorflow_lite_clone.fx._names import PACKAGE
from tensorflow_lite_clone.utils import _pytree as pytree


class Standard(NamedTuple):
    """What generated code has beside Python's own names."""

    imported: str  # in PyTorch's words
    value: Any


STANDARD = {
    "inf": Standard("from math import inf", math.inf),
    "nan": Standard("from math import nan", math.nan),
    "NoneType": Standard("NoneType = type(None)", type(None)),
    "torch": Standard("import torch", sys.modules[PACKAGE]),
    "device": Standard("from torch import device", Device),
    "fx_pytree": Standard("import torch.fx._pytree as fx_pytree", fx_pytree),
    "pytree": Standard("import torch.utils._pytree as pytree", pytree),
}
#: Name -> the only object that may have it.
_RESERVED: dict[str, Any] = {name: object() for name in keyword.kwlist} | vars(builtins)
_RESERVED |= {name: standard.value for name, standard in STANDARD.items()}

_IDENTIFIER = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")
_FOREIGN = re.compile("[^0-9a-zA-Z_]+")
_HUMP = re.compile(r"(?<=[a-z])([A-Z])")


def snake_case(name: str) -> str:
    """``someName`` as ``some_name``."""
    return _HUMP.sub(r"_\1", name).lower()


class Namespace:
    """Names that are in use, and the objects that have them."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._highest: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like `candidate` that nothing else has; an object keeps the one that it got.

        Numbers go up from that of the last name with the same beginning.
        """
        if obj is not None and obj in self._names:
            return self._names[obj]
        parts = _IDENTIFIER.fullmatch(candidate)
        if parts is None:
            candidate = _FOREIGN.sub("_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
            parts = _IDENTIFIER.fullmatch(candidate)
            assert parts is not None
        base, digits = parts.groups()
        if digits is not None and candidate not in self._used:
            number = int(digits)
        else:
            number = self._highest.get(base, 0)
            if _RESERVED.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        while candidate in self._used:
            number += 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._highest[base] = number
        if obj is not None:
            self._names[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give a name to an object that has none."""
        if self._names.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._names[obj] = name
        self._used.add(name)
