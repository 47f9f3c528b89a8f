"""The standard's constants and dtypes, questions about them, and about the namespace."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core import dtypes as _dtypes
from tensorflow_lite_clone.core import limits
from tensorflow_lite_clone.core.device import Device, get_default_device
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.core.standard import fits, promoted
from tensorflow_lite_clone.ops.create import interchange
from tensorflow_lite_clone.tensor import Tensor

e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

_NAMES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128"
)
#: The standard's dtypes, by name.
DTYPES = {name: _dtypes.NAMES[name] for name in _NAMES.split() if name in _dtypes.NAMES}
_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
_KIND_OF_NUMBER = {bool: "b", int: "i", float: "f", complex: "c"}


def isdtype(dtype: DType, kind: Any) -> bool:
    """Whether a dtype is `kind`: another dtype, a word such as "real floating", or any of a tuple.

    Raises ValueError for an unknown word and TypeError for what is neither.
    """
    if not isinstance(dtype, DType):
        raise TypeError(f"'dtype' must be a dtype, not {dtype!r}")
    if isinstance(kind, tuple) and tuple not in map(type, kind):
        return any([isdtype(dtype, one) for one in kind])
    if isinstance(kind, DType):
        return dtype is kind
    if not isinstance(kind, str):
        raise TypeError(f"'kind' must be a dtype, a str or a tuple of them, not {kind!r}")
    if kind not in _KINDS:
        raise ValueError(f"unknown kind of dtypes: {kind!r}")
    return dtype.kind in _KINDS[kind]


def _dtype_of(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else value


class FloatingLimits(NamedTuple):
    """What `finfo` gives."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


class IntegerLimits(NamedTuple):
    """What `iinfo` gives."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatingLimits:
    """The limits of a floating dtype, or of an array's; those of the parts of a complex one."""
    found = limits.finfo(_dtype_of(type))
    dtype = _dtypes.dtype_by_name(found.dtype)
    return FloatingLimits(
        found.bits, found.eps, found.max, found.min, found.smallest_normal, dtype
    )


def iinfo(type: Any, /) -> IntegerLimits:
    """The limits of an integer dtype, or of an array's."""
    found = limits.iinfo(_dtype_of(type))
    return IntegerLimits(found.bits, found.max, found.min, _dtypes.dtype_by_name(found.dtype))


def can_cast(from_: Any, to: DType, /) -> bool:
    """Whether the standard's promotion leads from a dtype, or an array's, to another."""
    return fits(_dtype_of(from_), to)


class NothingToPromoteError(TypeError, ValueError):
    """There are only numbers. SciPy catches a ValueError in one place, a TypeError in another."""


def result_type(*arrays_and_dtypes: Any) -> DType:
    """The dtype of an operation on arrays, dtypes and numbers, as the standard promotes.

    Numbers take the dtype of what stands beside them. Raises NothingToPromoteError where only
    numbers are given, and TypeError for a number of a kind that the dtype lacks.
    """
    typed = [_dtype_of(value) for value in arrays_and_dtypes if type(value) not in _KIND_OF_NUMBER]
    if not typed:
        raise NothingToPromoteError("result_type() needs at least one array or dtype")
    result = typed[0]
    for dtype in typed[1:]:
        result = promoted(result, dtype)
    for value in arrays_and_dtypes:
        kind = _KIND_OF_NUMBER.get(type(value))
        if kind is None or kind == "b" or (kind == "i" and result.kind in "iufc"):
            continue
        if kind == "f" and result.kind in "fc":
            continue
        if kind == "c" and result.kind in "fc":
            result = result.to_complex()
            continue
        raise TypeError(f"the number {value!r} has no place beside {result}")
    return result


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array that another library lends; on `device`, or with `copy`, a copy of it.

    Raises BufferError when ``copy=False`` but the device is another one, AttributeError when `x`
    lends nothing.
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise AttributeError(f"{type(x).__name__} has no __dlpack__ and __dlpack_device__")
    lent = interchange.from_dlpack(x)
    made = lent if device is None else lent.to(device)
    if copy is False and made is not lent:
        raise BufferError(f"an array of {lent.device} cannot be lent to {device}")
    return made.clone() if copy and made is lent else made


class Info:
    """What a namespace can do, where, and with which dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """Masks select, shapes may depend on values, and arrays have up to 64 dimensions."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": 64,
        }

    def default_device(self) -> Device:
        """Where arrays are made if nothing is said."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Of what is made without a dtype: floats, complex numbers, integers, indices."""
        real = _dtypes.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": real.to_complex(),
            "integral": _dtypes.int64,
            "indexing": _dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The standard's dtypes that there are, all or those of a kind (see `isdtype`)."""
        found = DTYPES.items()
        return {name: dtype for name, dtype in found if kind is None or isdtype(dtype, kind)}

    def devices(self) -> tuple[Device, ...]:
        """The devices of this machine."""
        found = [Device("cpu")]
        while True:
            try:
                found.append(backends.load(f"cuda:{len(found) - 1}").device)
            except RuntimeError:  # there is no such device
                return tuple(found)


def __array_namespace_info__() -> Info:
    """What this namespace can do; see `Info`."""
    return Info()


WORDS = {
    function.__name__: function
    for function in (
        isdtype, finfo, iinfo, can_cast, result_type, from_dlpack, __array_namespace_info__,
    )
} | {"e": e, "inf": inf, "nan": nan, "pi": pi, "newaxis": newaxis, **DTYPES}  # fmt: skip
