"""Reads the parameters of a kernel from its source, and checks and converts arguments for it.

The driver takes whatever bytes it is given, so a wrong dtype would be read as garbage. Here it is
a TypeError before anything is launched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.core.dtypes import bfloat16

#: C types of the dtypes; here and nowhere else.
C_TYPES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "uint16": "unsigned short",
    "int16": "short",
    "uint32": "unsigned int",
    "int32": "int",
    "uint64": "unsigned long long",
    "int64": "long long",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
}
_NATIVE = {
    word: NATIVE[bfloat16] if name == "bfloat16" else np.dtype(name)
    for name, word in C_TYPES.items()
}
_SAME = {
    "int64_t": "long long",
    "uint64_t": "unsigned long long",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "half": "__half",
    "unsigned": "unsigned int",
    "char": "signed char",
}
_NOISE = re.compile(r"\b(const|__restrict__|volatile|__grid_constant__)\b")


class Parameter(NamedTuple):
    """One parameter: its name, its C type with template names put in, whether it is a pointer."""

    name: str
    type: str
    pointer: bool


def c_type(value: Any) -> str:
    """How a template argument is written: a dtype, bool, int, or text as it is."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    name = getattr(value, "name", None)
    if name in C_TYPES:
        return C_TYPES[name]
    raise TypeError(f"no C type for the template argument {value!r}")


def parameters(text: str, name: str, template: dict[str, str]) -> list[Parameter]:
    """The parameters of the kernel `name` in a source; ValueError when it is not there."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
    head = re.search(rf"__global__[^;{{]*?\b{re.escape(name)}\s*\(", code)
    if head is None:
        raise ValueError(f"there is no __global__ function '{name}'")
    depth, start, found = 1, head.end(), []
    for end in range(start, len(code)):
        character = code[end]
        depth += (character in "(<") - (character in ")>")
        if depth == 0 or (depth == 1 and character == ","):
            if code[start:end].strip():
                found.append(_parameter(code[start:end], template))
            start = end + 1
        if depth == 0:
            break
    return found


def _parameter(text: str, template: dict[str, str]) -> Parameter:
    text = _NOISE.sub(" ", text)
    pointer = "*" in text
    *words, name = text.replace("*", " ").split()
    kind = " ".join(words)
    kind = template.get(kind, kind)
    return Parameter(name, _SAME.get(kind, kind), pointer)


def converter(parameter: Parameter, kernel: str) -> Callable[[Any], Any]:
    """The function that checks one argument and makes of it what CuPy launches with."""
    name, kind, pointer = parameter
    native = _NATIVE.get(kind)

    def refuse(value: Any) -> TypeError:
        seen = f"an array of {value.dtype}" if isinstance(value, cupy.ndarray) else repr(value)
        expected = f"a CUDA array of {native or kind} or None" if pointer else kind
        return TypeError(f"{kernel}: argument '{name}' must be {expected}, not {seen}")

    if pointer:

        def address(value: Any) -> Any:
            if value is None:
                return value
            if value.__class__ is not cupy.ndarray or (
                native is not None and value.dtype != native
            ):
                raise refuse(value)
            return value

        return address
    if native is None:  # a struct, packed into a NumPy array by the launcher

        def packed(value: Any) -> Any:
            if not isinstance(value, (np.ndarray, np.void)):
                raise refuse(value)
            return value

        return packed
    make = native.type
    whole = native.kind in "iub"

    def number(value: Any) -> Any:
        if isinstance(value, cupy.ndarray) or (whole and isinstance(value, float)):
            raise refuse(value)
        try:
            return make(value)
        except (TypeError, ValueError, OverflowError):
            raise refuse(value) from None

    return number
