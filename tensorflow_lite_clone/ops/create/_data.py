"""Reading Python data and NumPy arrays as PyTorch does: inferred dtypes, what does not fit."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.core import dtypes
from tensorflow_lite_clone.core.dtypes import DType, as_dtype, get_default_dtype, promote_types
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.limits import fitting_number
from tensorflow_lite_clone.tensor import Tensor

_NUMBERS = {bool, int, float, complex}
_SEQUENCES = (list, tuple)


class _Warned:
    read_only = False


def array_of(data: Any, dtype: DType | None, backend: Any) -> Any:
    """A native array of Python or NumPy data with torch's inferred dtype; may share memory.

    Raises ValueError for ragged sequences, TypeError and RuntimeError for what is no number or
    does not fit into `dtype`.
    """
    if dtype is not None:
        dtype = as_dtype(dtype)
    if is_array(data) and not is_scalar(data):
        array = _from_array(data, backend)
        return array if dtype is None else backend.F.astype(array, dtype)
    if not backend.has_values:  # what is wrong with numbers is found on the host
        return backend.from_host(array_of(data, dtype, backends.load("cpu")))
    entries = _Entries()
    try:
        plain = entries.plain(data)
    except _NoNumberError:
        _check_rectangular(data)
        raise _no_number(data, dtype) from None
    leaves = entries.own_dtypes()
    if dtype is not None and entries.refuse(dtype):
        names = ", ".join(sorted([str(leaf) for leaf in leaves]))
        raise TypeError(f"only integers can be converted to {dtype}, got entries of {names}")
    try:
        array = backend.asarray(plain)
    except ValueError:
        if not _is_cut_short(data):
            _check_rectangular(data)
            raise TypeError("not a sequence") from None
        shape = _shape_of(data)  # no element is read where PyTorch finds a length of 0 first
        return backend.empty(shape, get_default_dtype() if dtype is None else dtype)
    if int in entries.kinds and array.dtype.kind in "uOf" and not leaves:
        _check_rectangular(data)
        array = _with_large_integers(plain, array, entries.kinds, dtype, backend)
    found = backend.dtypes[array.dtype]
    if dtype is None:
        return backend.F.astype(array, _inferred(found, leaves))
    _check_fits(array, found, dtype, backend)
    return backend.F.astype(array, dtype)


def _with_large_integers(
    plain: Any, array: Any, kinds: set[type], dtype: DType | None, backend: Any
) -> Any:
    """The array of Python numbers among which integers may be that int64 does not hold.

    ValueError for those that have to be integers.
    """
    kind = "" if dtype is None else dtype.kind
    if kind == "b":
        return backend.asarray(plain, dtype)
    if kind and kind in "iu" and array.dtype.kind != "f":
        if dtype is dtypes.uint64 and array.dtype.kind == "u":
            return array
        raise ValueError("Overflow when unpacking long long")
    if (kind and kind in "fc") or float in kinds or complex in kinds:
        return backend.asarray(plain, dtypes.float64)
    raise ValueError("Overflow when unpacking long long")


def is_array(value: Any) -> bool:
    """Whether `value` is of a type of arrays.

    What an object alone has does not count: attributes can come from a file, and an array's
    interface is an address.
    """
    return hasattr(type(value), "__array__") and hasattr(value, "dtype")


def is_scalar(value: Any) -> bool:
    """Whether an array is a number of NumPy's, which has no memory to share."""
    return not hasattr(type(value), "__setitem__")


def _from_array(data: Any, backend: Any) -> Any:
    """An array of NumPy or a device, or a NumPy scalar."""
    if isinstance(data, backend.array_type) and data.dtype in backend.dtypes:
        array: Any = data
    elif not hasattr(data, "strides") or hasattr(type(data), "__cuda_array_interface__"):
        other = backends.load("cuda")
        return backend.from_host(other.to_host(other.asarray(data)))
    else:
        array = data
    native = array.dtype
    if not getattr(native, "isnative", True):
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    if native not in backend.dtypes:
        raise _unsupported(native)
    if any([stride < 0 for stride in array.strides]):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    if any([stride % native.itemsize for stride in array.strides]):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy "
            "array to reallocate the memory."
        )
    return backend.from_host(array)


def _unsupported(native: Any) -> TypeError:
    return TypeError(
        f"can't convert np.ndarray of type {native}. The only supported types are: "
        f"{', '.join(d.name for d in dtypes.ALL)}."
    )


def warn_if_read_only(array: Any) -> None:
    """Warn, once, of a tensor over memory that must not be written to."""
    flags = getattr(array, "flags", None)
    if flags is None or flags["WRITEABLE"] or _Warned.read_only:
        return
    if is_scalar(array):
        return
    _Warned.read_only = True
    warnings.warn(
        "The given NumPy array is not writable: writing to this tensor will raise an error. You "
        "may want to copy the array to protect its data or make it writable before converting it "
        "to a tensor. This type of warning will be suppressed for the rest of this program.",
        stacklevel=level_outside(),
    )


class _NoNumberError(TypeError):
    """An entry is neither a number nor a sequence."""


class _Entries:
    """What the entries of nested sequences are: kinds of Python's numbers, dtypes of others."""

    def __init__(self) -> None:
        self.kinds: set[type] = set()
        self._whole = True  # whether no Tensor, array or NumPy scalar refuses to be an index
        self._own: set[DType] = set()

    def own_dtypes(self) -> set[DType]:
        """All dtypes, where Tensors, arrays or NumPy scalars are among the entries; else none."""
        if not self._own:
            return self._own
        return self._own | {dtypes.dtype_of_scalar(kind()) for kind in self.kinds}

    def refuse(self, dtype: DType) -> bool:
        """Whether an entry with a dtype of its own cannot be an integer or truth value."""
        if dtype.kind == "b":
            return any([own.kind in "fc" for own in self._own])
        return dtype.kind in "iu" and not self._whole

    def plain(self, data: Any) -> Any:
        """`data` as Python numbers in lists; _NoNumberError for what is neither.

        What an object says of itself as an array is not asked for: an array's interface is an
        address.
        """
        kind = type(data)
        if kind in _NUMBERS:
            self.kinds.add(kind)
            return data
        if isinstance(data, Tensor):
            if data.numel() != 1:
                raise ValueError("only one element tensors can be converted to Python scalars")
            self._own.add(data.dtype)
            self._whole &= data.dtype.kind not in "fc"
            return data.item()
        if is_array(data):
            dtype = backends.load("cpu").dtypes.get(data.dtype)
            if dtype is None:
                raise _unsupported(data.dtype)
            self._own.add(dtype)
            self._whole &= dtype.kind in "iu"
            return data.tolist()
        if kind in _SEQUENCES:
            kinds = set(map(type, data))
            if kinds <= _NUMBERS:
                self.kinds |= kinds
                return data
            return [self.plain(entry) for entry in data]
        if isinstance(data, (int, float, complex)):  # of a class of its own
            base: Any = next(base for base in (int, float, complex) if isinstance(data, base))
            return self.plain(base(data))
        return [self.plain(entry) for entry in _items(data)]


def _items(data: Any) -> list:
    """The entries of a sequence that is no list; _NoNumberError for what is none."""
    if isinstance(data, (str, bytes, dict)) or not hasattr(type(data), "__getitem__"):
        raise _NoNumberError
    try:
        return [data[place] for place in range(len(data))]
    except (TypeError, LookupError):
        raise _NoNumberError from None


def _is_cut_short(data: Any) -> bool:
    return 0 in _shape_of(data)


def _shape_of(data: Any) -> tuple[int, ...]:
    """The lengths of nested sequences, along their first entries."""
    shape = []
    while isinstance(data, _SEQUENCES):
        shape.append(len(data))
        if not data:
            break
        data = data[0]
    return tuple(shape)


def _inferred(found: DType, leaves: set[DType]) -> DType:
    if leaves:
        return functools.reduce(promote_types, leaves)
    if found is dtypes.float64:
        return get_default_dtype()
    return get_default_dtype().to_complex() if found is dtypes.complex128 else found


def _check_rectangular(data: Any, depth: int = 0) -> None:
    """Raise torch's ValueError for the first ragged level of nested sequences."""
    if not isinstance(data, _SEQUENCES) or not data:
        return
    first = data[0]
    if not isinstance(first, _SEQUENCES):
        for entry in data:
            if isinstance(entry, _SEQUENCES):
                raise TypeError(f"must be real number, not {type(entry).__name__}")
        return
    for entry in data:
        if not isinstance(entry, _SEQUENCES):
            raise TypeError("not a sequence")
        if len(entry) != len(first):
            raise ValueError(
                f"expected sequence of length {len(first)} at dim {depth + 1} (got {len(entry)})"
            )
        _check_rectangular(entry, depth + 1)


def _no_number(data: Any, dtype: DType | None) -> Exception:
    """torch's complaint about the first entry of nested sequences that cannot be a number."""
    first = False
    while isinstance(data, _SEQUENCES) and data:
        odd = next((entry for entry in data if not _may_be_number(entry)), data[0])
        first = odd is data[0]
        data = odd
    kind = type(data)
    if kind in _NUMBERS:  # beside an integer beyond 64 bits, or one itself
        return ValueError("Overflow when unpacking long long")
    if first and kind is str and data:  # a sequence too
        return ValueError("too many dimensions 'str'")
    if kind is str or kind is bytes:
        return TypeError(f"new(): invalid data type '{kind.__name__}'")
    if dtype is None:
        return RuntimeError(f"Could not infer dtype of {kind.__name__}")
    if dtype.kind in "fc":
        return TypeError(f"must be real number, not {kind.__name__}")
    return TypeError(f"'{kind.__name__}' object cannot be interpreted as an integer")


def _may_be_number(data: Any) -> bool:
    if isinstance(data, _SEQUENCES):
        return all([_may_be_number(entry) for entry in data])
    return type(data) in _NUMBERS or hasattr(data, "dtype")


def _check_fits(array: Any, found: DType, dtype: DType, backend: Any) -> None:
    """Raise for Python numbers that an explicitly given dtype does not hold."""
    if found.kind == "c" and dtype.kind != "c" and dtype.kind != "b":
        if dtype.kind == "f":
            raise TypeError("must be real number, not complex")
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if dtype.kind in "iu" and found.kind in "if" and array.size:
        F = backend.F
        for extreme in (F.min(array), F.max(array)):
            fitting_number(backend.to_host(extreme).item(), dtype)
