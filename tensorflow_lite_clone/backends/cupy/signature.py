"""Checks and converts the arguments of a kernel by the signature read from its source.

The driver takes whatever bytes it is given, so a wrong dtype would be read as garbage. Here it is
a TypeError before anything is launched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import index
from typing import Any

import cupy
import numpy as np

from tensorflow_lite_clone.backends.cupy.native import NATIVE
from tensorflow_lite_clone.core.dtypes import bfloat16
from tensorflow_lite_clone.kernels.signature import C_TYPES, Parameter

_NATIVE = {
    word: NATIVE[bfloat16] if name == "bfloat16" else np.dtype(name)
    for name, word in C_TYPES.items()
}


@cache
def _bytes(count: int) -> Any:
    """The dtype of one element of so many bytes."""
    return np.dtype((np.void, count))


def converter(parameter: Parameter, kernel: str) -> Callable[[Any], Any]:
    """The function that checks one argument and makes of it what CuPy launches with."""
    name, kind, pointer = parameter
    native = _NATIVE.get(kind)

    def refuse(value: Any) -> TypeError:
        if isinstance(value, cupy.ndarray):
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
            if value.__class__ is not cupy.ndarray or (
                native is not None and value.dtype != native
            ):
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
            if value.__class__ is cupy.ndarray:  # to ask for its value would wait for the device
                raise refuse(value)
            try:
                return make(index(value))
            except (TypeError, OverflowError):
                raise refuse(value) from None

        return whole

    def number(value: Any) -> Any:
        if isinstance(value, (cupy.ndarray, np.ndarray, str, bytes)):
            raise refuse(value)
        try:
            return make(value)
        except (TypeError, ValueError, OverflowError):
            raise refuse(value) from None

    return number
