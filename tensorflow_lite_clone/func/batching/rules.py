"""Rules of kinds: element by element, reductions, scans, sorting, products and creation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.func.batching.words import rule

Word = Callable[..., Any]


@rule(kinds.elementwise, "broadcast_arrays")
def elementwise(B: Any, word: Word, *values: Any, **parameters: Any) -> Any:
    """Samples' axes are aligned, and the word broadcasts."""
    return B.elementwise(word, *values, **{k: _plain(B, v) for k, v in parameters.items()})


def _plain(B: Any, value: Any) -> Any:
    return value.data if type(value) is B.array_type else value


@rule(kinds.reduction)
def reduction(B: Any, word: Word, x: Any, axis: Any = None, **parameters: Any) -> Any:
    """Over the samples' axes."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axis=axis, **parameters), True)
    axes = range(x.ndim) if axis is None else axis
    if isinstance(axes, int):
        axes = (axes,)
    moved = tuple([a % x.ndim + 1 if x.ndim else a for a in axes])
    if not x.ndim and moved:  # a number has one axis, if any
        data = B.base.F.reshape(x.data, (B.size, 1))
        parameters.pop("keepdims", None)
        return B.make(word(data, axis=1, **parameters), False)
    return B.make(word(x.data, axis=moved, **parameters), False)


@rule(kinds.position_of_extreme)
def extreme_place(B: Any, word: Word, x: Any, axis: int | None = None, **parameters: Any) -> Any:
    """The place along an axis, or in the flattened sample."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axis=axis, **parameters), True)
    data, ndim = x.data, x.ndim
    if axis is None or not ndim:
        data = B.base.F.reshape(data, (B.size, x.size))
        keepdims = parameters.pop("keepdims", False)
        made = word(data, axis=1)
        if keepdims:
            made = B.base.F.reshape(made, (B.size, *(1,) * ndim))
        return B.make(made, False)
    return B.make(word(data, axis=axis % ndim + 1, **parameters), False)


@rule(kinds.scan, kinds.sorting)
def along(B: Any, word: Word, x: Any, *, axis: int | None = None, **parameters: Any) -> Any:
    """Along one axis, which stays."""
    if not B.is_batched(x):
        given = {} if axis is None else {"axis": axis}
        return B.make(word(_plain(B, x), **given, **parameters), True)
    return _moved(B, word, x, (), -1 if axis is None else axis, parameters)


@rule(kinds.selection)
def along_with_count(B: Any, word: Word, x: Any, k: int, *, axis: int, **parameters: Any) -> Any:
    """Along one axis, of which k-th elements are wanted."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), k, axis=axis, **parameters), True)
    return _moved(B, word, x, (k,), axis, parameters)


def _moved(B: Any, word: Word, x: Any, extra: tuple, axis: int, parameters: dict) -> Any:
    if x.ndim:
        return B.make(word(x.data, *extra, axis=axis % x.ndim + 1, **parameters), False)
    F = B.base.F
    made = word(F.reshape(x.data, (B.size, 1)), *extra, axis=1, **parameters)
    if isinstance(made, tuple):
        return tuple([B.make(F.reshape(entry, (B.size,)), False) for entry in made])
    return B.make(F.reshape(made, (B.size,)), False)


@rule(kinds.gather)
def with_places(
    B: Any, word: Word, x: Any, indices: Any, *, axis: int = -1, **parameters: Any
) -> Any:
    """Elements at places of their own along an axis."""
    if not (B.is_batched(x) or B.is_batched(indices)):
        return B.make(word(_plain(B, x), _plain(B, indices), axis=axis, **parameters), True)
    ndim = x.ndim
    return B.make(word(B.rows(x), B.rows(indices), axis=axis % ndim + 1, **parameters), False)


@rule(kinds.search)
def searchsorted(
    B: Any, word: Word, x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None
) -> Any:
    """Rows of one shape; one row is searched for values of any shape."""
    shared = not any(map(B.is_batched, (x1, x2, sorter)))
    order = _plain(B, sorter)
    if shared or not (B.is_batched(x1) or B.is_batched(sorter)) and x1.ndim == 1:
        return B.make(word(_plain(B, x1), _plain(B, x2), side=side, sorter=order), shared)
    F = B.base.F
    order = None if sorter is None else B.rows(sorter)
    if x1.ndim == 1:
        flat = F.reshape(B.rows(x2), (B.size, x2.size))
        found = word(B.rows(x1), flat, side=side, sorter=order)
        return B.make(F.reshape(found, (B.size, *x2.shape)), False)
    return B.make(word(B.rows(x1), B.rows(x2), side=side, sorter=order), False)


@rule(kinds.product)
def matmul(B: Any, word: Word, x: Any, y: Any) -> Any:
    """Vectors are rows and columns, as in each sample's product."""
    x_varies, y_varies = B.is_batched(x), B.is_batched(y)
    a, b = _plain(B, x), _plain(B, y)
    if not (x_varies or y_varies):
        return B.make(word(a, b), True)
    F = B.base.F
    row, column = x.ndim == 1, y.ndim == 1
    if row and column:
        if x_varies and y_varies:
            made = word(F.expand_dims(a, axis=1), F.expand_dims(b, axis=2))
            return B.make(F.reshape(made, (B.size,)), False)
        return B.make(word(a, b) if x_varies else word(b, a), False)
    if x_varies and row and not y_varies and b.ndim == 2:
        return B.make(word(a, b), False)  # one product of all rows
    if row:
        a = F.expand_dims(a, axis=-2)
    if column:
        b = F.expand_dims(b, axis=-1)
    x_ndim, y_ndim = a.ndim - x_varies, b.ndim - y_varies
    if x_varies and x_ndim < y_ndim:
        a = F.reshape(a, (B.size, *(1,) * (y_ndim - x_ndim), *a.shape[1:]))
    if y_varies and y_ndim < x_ndim:
        b = F.reshape(b, (B.size, *(1,) * (x_ndim - y_ndim), *b.shape[1:]))
    made = word(a, b)
    if row:
        made = F.squeeze(made, axis=-2)
    if column:
        made = F.squeeze(made, axis=-1)
    return B.make(made, False)


@rule("vecdot")
def vecdot(B: Any, word: Word, x: Any, y: Any, /, *, axis: int = -1) -> Any:
    """Sums of products along an axis counted from the end."""
    if axis >= 0:
        axis -= max(x.ndim, y.ndim)
    return B.elementwise(word, x, y, axis=axis)


@rule(kinds.matrices, "real", "imag")
def of_matrices(B: Any, word: Word, x: Any, *args: Any, **parameters: Any) -> Any:
    """Leading axes number matrices, and samples are one more of them."""
    return B.make(word(_plain(B, x), *args, **parameters), not B.is_batched(x))


@rule(kinds.equations)
def solution(B: Any, word: Word, a: Any, *others: Any, **parameters: Any) -> Any:
    """Of systems whose leading axes broadcast; what is right of the matrix has columns.

    The pivots of `ldl_solve` number rows, and have one axis less.
    """
    if not any(map(B.is_batched, (a, *others))):
        return B.make(word(*[_plain(B, x) for x in (a, *others)], **parameters), True)
    *pivots, b = others
    ndim = max(a.ndim, b.ndim)
    if any(map(B.is_batched, pivots)):
        a = B.make(B.rows(a), False)
    matrices, columns = B.aligned((a, b), ndim)
    made = word(matrices, *B.aligned(tuple(pivots), ndim - 1), columns, **parameters)
    if not isinstance(made, tuple):
        return B.make(made, False)
    solved, info = made  # of the matrices alone, which may be the same for all samples
    if not B.is_batched(a):
        return B.make(solved, False), B.make(info, True)
    info = B.base.F.reshape(info, (B.size, *a.shape[:-2]))
    return B.make(solved, False), B.make(info, False)


@rule(kinds.transform)
def transform(B: Any, word: Word, x: Any, *args: Any, axis: int = -1, **parameters: Any) -> Any:
    """Along one axis."""
    return B.make(
        word(_plain(B, x), *args, axis=axis - x.ndim if axis >= 0 else axis, **parameters),
        not B.is_batched(x),
    )


@rule(kinds.transforms)
def transforms(B: Any, word: Word, x: Any, *, axes: Any = None, **parameters: Any) -> Any:
    """Along several axes, by default all of the sample's (or the last ones that `s` is for)."""
    if axes is None:
        axes = range(x.ndim if parameters.get("s") is None else len(parameters["s"]))
        axes = [axis - len(axes) for axis in axes]
    axes = tuple([axis - x.ndim if axis >= 0 else axis for axis in axes])
    return B.make(word(_plain(B, x), axes=axes, **parameters), not B.is_batched(x))


@rule(kinds.query)
def of_data(B: Any, word: Word, *values: Any, **parameters: Any) -> Any:
    """What is asked of the elements, or of dtypes, is asked of those of all samples."""
    return word(*[_plain(B, value) for value in values], **parameters)


@rule(kinds.creation)
def creation(B: Any, word: Word, *values: Any, **parameters: Any) -> Any:
    """The same for all samples."""
    if values and type(values[0]) is B.array_type:
        return values[0]
    return B.make(word(*values, **parameters), True)


@rule(kinds.allocation)
def memory(B: Any, word: Word, shape: Any, *values: Any, **parameters: Any) -> Any:
    """Memory for every sample, because it may be written to."""
    if any(map(B.is_batched, values)):
        made = B.empty(tuple(shape), B.dtypes[values[0].dtype])
        B.write(made, values[0])
        dtype = parameters.get("dtype")
        return made if dtype is None else B.F.astype(made, dtype)
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return B.make(word((B.size, *sizes), *[_plain(B, v) for v in values], **parameters), False)


@rule(kinds.allocation_like)
def memory_like(B: Any, word: Word, x: Any, *values: Any, **parameters: Any) -> Any:
    """Likewise, in the shape of an array."""
    if any(map(B.is_batched, values)):
        return memory(B, word, x.shape, *values, **{"dtype": x.dtype, **parameters})
    return B.make(word(B.rows(x), *[_plain(B, v) for v in values], **parameters), False)
