"""Checks and converts the arguments of a kernel by the signature read from its source.

The driver takes whatever bytes it is given, so a wrong dtype would be read as garbage. Here it is
a TypeError before anything is launched.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from operator import index
from struct import Struct, error
from threading import Lock
from typing import Any

import numpy as np
from cupy import ndarray

from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.core.dtypes import bfloat16
from tensorflow_lite_clone.kernels.signature import C_TYPES, Parameter

#: How `struct` packs numbers of these C types; its native alignment is that of CUDA's parameters.
CODES = {
    "bool": "?",
    "unsigned char": "B",
    "signed char": "b",
    "unsigned short": "H",
    "short": "h",
    "unsigned int": "I",
    "int": "i",
    "unsigned long long": "Q",
    "long long": "q",
    "float": "f",
    "double": "d",
}
_PLAIN = frozenset((int, float, bool, np.int64, np.float64, np.bool_))
_NATIVE = {
    word: NATIVE[bfloat16] if name == "bfloat16" else np.dtype(name)
    for name, word in C_TYPES.items()
}


class Packer:
    """Checks arguments and packs them into one buffer, several times as fast as CuPy takes them.

    It knows arrays of the right dtype, None, plain numbers, and structs of the size that came
    first; anything else, such as what is to be refused, is left to the converters.
    """

    def __init__(self, found: list[Parameter]) -> None:
        self._found = found
        #: where structs are, and their bytes, once known
        self._structs = {i: 0 for i, p in enumerate(found) if not p.pointer and p.type not in CODES}
        self._fits: dict[tuple, tuple | None] = {}  # `_fit` by the classes of arguments
        self._buffer: Any = None
        self.address = 0  # of the addresses of the arguments in the buffer
        self.lock = Lock()  # held from `pack` to the end of the launch

    def pack(self, args: tuple) -> bool:
        """Fill the buffer; False when the arguments are none of those that it knows."""
        classes = tuple(map(type, args))
        try:
            fit = self._fits[classes]
        except KeyError:
            fit = self._fits[classes] = self._fit(classes)
        if fit is None:
            return False
        arrays, absent = fit
        values = list(args)
        for place, dtype in arrays:
            array = args[place]
            if array.dtype is not dtype and dtype is not None and array.dtype != dtype:
                return False
            values[place] = array.data.ptr
        for place in absent:
            values[place] = 0
        if self._buffer is None:
            self._make_buffer(args)
        for place, size in self._structs.items():
            if values[place].nbytes != size:
                return False
            values[place] = values[place].tobytes()
        try:
            self._packed.pack_into(self._buffer, 0, *values)
        except (error, OverflowError):
            return False
        return True

    def _fit(self, classes: tuple) -> tuple | None:
        """Where arrays are, with the dtype that each must have (None: any), and where None is.

        None where arguments of these classes are not such as the kernel takes.
        """
        if len(classes) != len(self._found):
            return None
        arrays, absent = [], []
        for place, (parameter, kind) in enumerate(zip(self._found, classes)):
            if parameter.pointer:
                if kind is ndarray:
                    arrays.append((place, _NATIVE.get(parameter.type)))
                elif kind is type(None):
                    absent.append(place)
                else:
                    return None
            elif kind is not np.ndarray if place in self._structs else kind not in _PLAIN:
                return None
        return arrays, absent

    def _make_buffer(self, args: tuple) -> None:
        codes, ends, sizes = "@", [], []
        for place, (parameter, value) in enumerate(zip(self._found, args)):
            if parameter.pointer:
                code = "P"
            elif parameter.type in CODES:
                code = CODES[parameter.type]
            else:
                code = f"{value.nbytes}s"
                self._structs[place] = value.nbytes
            codes += code
            ends.append(Struct(codes).size)
            sizes.append(Struct(code).size)
        self._packed = Struct(codes)
        self._buffer = ctypes.create_string_buffer(max(self._packed.size, 1))
        # The driver is given each argument's address, as it alone knows how its parameters lie:
        # tensor maps are at multiples of 64 bytes of something else than their first.
        start = ctypes.addressof(self._buffer)
        addresses = [start + end - size for end, size in zip(ends, sizes)]
        self._addresses = (ctypes.c_void_p * len(addresses))(*addresses)
        self.address = ctypes.addressof(self._addresses)


@cache
def _bytes(count: int) -> Any:
    """The dtype of one element of so many bytes."""
    return np.dtype((np.void, count))


def converter(parameter: Parameter, kernel: str) -> Callable[[Any], Any]:
    """The function that checks one argument and makes of it what CuPy launches with."""
    name, kind, pointer, _ = parameter
    native = _NATIVE.get(kind)

    def refuse(value: Any) -> TypeError:
        if isinstance(value, ndarray):
            seen = f"a CUDA array of {value.dtype}"
        elif isinstance(value, np.ndarray):
            seen = f"a host array of {value.dtype}"
        else:
            seen = repr(value)
        expected = f"a CUDA array of {native or kind}, or None" if pointer else kind
        return TypeError(f"{kernel}: argument '{name}' must be {expected}, not {seen}")

    if pointer:

        def address(value: Any) -> Any:
            if value is None:
                return value
            if value.__class__ is not ndarray or (native is not None and value.dtype != native):
                raise refuse(value)
            return value

        return address
    if native is None:  # a struct, packed into a NumPy array by the launcher

        def packed(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                if value.size == 1:
                    return value
                return value.view(_bytes(value.nbytes))  # CuPy passes one element by value
            if not isinstance(value, np.void):
                raise refuse(value)
            return value

        return packed
    make = native.type
    if native.kind in "iu":

        def whole(value: Any) -> Any:
            if value.__class__ is ndarray:  # to ask for its value would wait for the device
                raise refuse(value)
            try:
                return make(index(value))
            except (TypeError, OverflowError):
                raise refuse(value) from None

        return whole

    def number(value: Any) -> Any:
        if isinstance(value, (ndarray, np.ndarray, str, bytes)):
            raise refuse(value)
        try:
            return make(value)
        except (TypeError, ValueError, OverflowError):
            raise refuse(value) from None

    return number
