"""The standard's creation functions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.array_api._promotion import alike
from tensorflow_lite_clone.array_api._register import creation_word, word
from tensorflow_lite_clone.core.dtypes import DType, float64, get_default_dtype
from tensorflow_lite_clone.ops.create import constructors, interchange, progressions
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.shape import join
from tensorflow_lite_clone.tensor import Tensor


@creation_word
def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    *,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    """Numbers from `start` up to `stop` in steps; up to `start` if it stands alone."""
    if stop is None:
        start, stop = 0, start
    made, kinds = dtype, (type(start), type(stop), type(step))
    if (stop - start) * step < 0:
        stop = start
    if float in kinds:
        dtype = get_default_dtype() if dtype is None else dtype
        made = float64 if dtype.kind in "iu" else dtype  # PyTorch would cut `stop` and `step`
    found = progressions.arange(start, stop, step, dtype=made, device=device)
    return found if dtype is None else cast(found, dtype)


@creation_word
def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Numbers, nested sequences of numbers or arrays, or an array or buffer as an array.

    Arrays and buffers share their memory unless `copy`, or unless they cannot, such as NumPy's
    arrays that run backwards or may not be written; ValueError if ``copy=False`` and they cannot.
    """
    if isinstance(obj, (list, tuple)) and _has_arrays(obj):
        if copy is False:
            raise ValueError("a sequence of arrays cannot be used without a copy")
        obj, copy = _stacked(obj), None
    elif not (isinstance(obj, Tensor) or hasattr(obj, "__array__") or hasattr(obj, "__dlpack__")):
        obj, copied = _read_buffer(obj, copy)
        copy = None if copied else copy
    elif copy is not False and _is_unlike_tensors(obj):
        obj = obj.copy()
    return interchange.asarray(obj, dtype=dtype, device=device, copy=copy)


def _is_unlike_tensors(array: Any) -> bool:
    backwards = any([stride < 0 for stride in getattr(array, "strides", None) or ()])
    return backwards or not getattr(getattr(array, "flags", None), "writeable", True)


def _has_arrays(sequence: Any) -> bool:
    for entry in sequence:
        if isinstance(entry, Tensor):
            return True
        if isinstance(entry, (list, tuple)) and _has_arrays(entry):
            return True
    return False


def _stacked(sequence: Any) -> Tensor:
    return join.stack(alike([asarray(entry) for entry in sequence]))


def _read_buffer(obj: Any, copy: bool | None) -> tuple[Any, bool]:
    """An object with the buffer protocol as a CPU tensor, and whether it was copied.

    Memory that may only be read is copied unless that is forbidden. Anything else is handed back.
    """
    try:
        buffer = memoryview(obj)
    except TypeError:
        return obj, False
    host = constructors.from_numpy if not buffer.readonly or copy is False else constructors.tensor
    return host(backends.load("cpu").asarray(buffer)), host is constructors.tensor


@creation_word
def empty(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Whatever lies in memory."""
    return constructors.empty(shape, dtype=dtype, device=device)


@creation_word
def zeros(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Zeros."""
    return constructors.zeros(shape, dtype=dtype, device=device)


@creation_word
def ones(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones."""
    return constructors.ones(shape, dtype=dtype, device=device)


@creation_word
def full(
    shape: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """One number everywhere, or the one of an array without dimensions, in whose dtype it is."""
    if dtype is None and isinstance(fill_value, Tensor):
        dtype = fill_value.dtype
    size = (shape,) if hasattr(shape, "__index__") else shape
    return constructors.full(size, fill_value, dtype=dtype, device=device)


@creation_word
def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DType | None = None,
    device: Any = None,
) -> Tensor:
    """Ones on diagonal number `k`, zeros elsewhere."""
    columns = n_rows if n_cols is None else n_cols
    if not k:
        return constructors.eye(n_rows, columns, dtype=dtype, device=device)
    made = constructors.zeros((n_rows, columns), dtype=dtype, device=device)
    made.diagonal(k).fill_(1)
    return made


@creation_word
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DType | None = None,
    device: Any = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which may be left out."""
    if endpoint:
        return progressions.linspace(start, stop, num, dtype=dtype, device=device)
    return progressions.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


@word
def empty_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Whatever lies in memory, in x's shape."""
    return constructors.empty_like(x, dtype=dtype, device=device)


@word
def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Zeros in x's shape."""
    return constructors.zeros_like(x, dtype=dtype, device=device)


@word
def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones in x's shape."""
    return constructors.ones_like(x, dtype=dtype, device=device)


@word
def full_like(
    x: Tensor, /, fill_value: complex, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """One number everywhere, in x's shape."""
    return constructors.full_like(x, fill_value, dtype=dtype, device=device)
