"""The standard's creation functions."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.array_api._register import creation_word, word
from tensorflow_lite_clone.core.dtypes import DType
from tensorflow_lite_clone.ops import create, interchange, progressions
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
    if (stop - start) * step < 0:
        stop = start
    return progressions.arange(start, stop, step, dtype=dtype, device=device)


@creation_word
def asarray(
    obj: Any, /, *, dtype: DType | None = None, device: Any = None, copy: bool | None = None
) -> Tensor:
    """Numbers, nested sequences or an array as an array.

    NumPy's arrays that no tensor can share, because they run backwards or may not be written, are
    copied.
    """
    backwards = any([stride < 0 for stride in getattr(obj, "strides", None) or ()])
    read_only = not getattr(getattr(obj, "flags", None), "writeable", True)
    if copy is not False and (backwards or read_only):
        obj = obj.copy()
    return interchange.asarray(obj, dtype=dtype, device=device, copy=copy)


@creation_word
def empty(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Whatever lies in memory."""
    return create.empty(shape, dtype=dtype, device=device)


@creation_word
def zeros(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Zeros."""
    return create.zeros(shape, dtype=dtype, device=device)


@creation_word
def ones(shape: Any, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones."""
    return create.ones(shape, dtype=dtype, device=device)


@creation_word
def full(
    shape: Any, fill_value: Any, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """One number everywhere, or the one of an array without dimensions, in whose dtype it is."""
    if dtype is None and isinstance(fill_value, Tensor):
        dtype = fill_value.dtype
    size = (shape,) if hasattr(shape, "__index__") else shape
    return create.full(size, fill_value, dtype=dtype, device=device)


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
        return create.eye(n_rows, columns, dtype=dtype, device=device)
    made = create.zeros((n_rows, columns), dtype=dtype, device=device)
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
    return create.empty_like(x, dtype=dtype, device=device)


@word
def zeros_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Zeros in x's shape."""
    return create.zeros_like(x, dtype=dtype, device=device)


@word
def ones_like(x: Tensor, /, *, dtype: DType | None = None, device: Any = None) -> Tensor:
    """Ones in x's shape."""
    return create.ones_like(x, dtype=dtype, device=device)


@word
def full_like(
    x: Tensor, /, fill_value: complex, *, dtype: DType | None = None, device: Any = None
) -> Tensor:
    """One number everywhere, in x's shape."""
    return create.full_like(x, fill_value, dtype=dtype, device=device)
