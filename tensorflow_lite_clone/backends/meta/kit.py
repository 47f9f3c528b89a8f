"""The primitives over meta arrays: views with their strides, and everything else by its record."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.core.shape import infer_size
from tensorflow_lite_clone.core.strides import elementwise_strides, expanded, indexed, view_strides
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, PRIMITIVES, Primitive

# -- dtypes ---------------------------------------------------------------------------------------

#: Of a Python number beside arrays only the category counts (NumPy's enhancement proposal 50).
_WEAK: dict[type, Any] = {bool: np.dtype(bool), int: 0, float: 0.0, complex: 0j}


def _operands(values: Any) -> list[Any]:
    """The arrays and numbers among arguments, also those of lists."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, (list, tuple)):
            found += _operands(value)
        elif isinstance(value, (MetaArray, np.dtype)) or type(value) in _WEAK:
            found.append(value)
    return found


def _promoted(values: Any) -> np.dtype:
    found = [v.dtype if isinstance(v, MetaArray) else _WEAK[type(v)] for v in values]
    arrays = [dtype for dtype in found if isinstance(dtype, np.dtype)]
    if arrays and all([dtype.kind == "V" for dtype in arrays]) and 0j not in found[:0]:
        return arrays[0]  # numbers widen NumPy's other dtypes of two bytes neither
    return np.result_type(*found)


def _floating(dtype: np.dtype) -> np.dtype:
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def _real(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _complex(dtype: np.dtype) -> np.dtype:
    return dtype if dtype.kind == "c" else np.result_type(dtype, np.complex64)


def _native(dtype: Any) -> np.dtype:
    return np.dtype(NATIVE.get(dtype, dtype))


def _named(values: tuple, options: dict[str, Any]) -> np.dtype:
    dtype = options.get("dtype")
    for value in values:  # astype(x, dtype)
        if isinstance(value, (np.dtype, type)) or value in NATIVE:
            dtype = value
    if dtype is not None:
        return _native(dtype)
    operands = _operands(values)
    return _promoted(operands[:1]) if operands else np.dtype(np.float64)


def _dtype(rule: str, values: tuple, options: dict[str, Any]) -> np.dtype:
    """The dtype of a result by a rule of `dispatch.primitives.DTYPES`."""
    if rule in ("bool", "int32", "int64"):
        return np.dtype(rule)
    if rule == "named":
        return _named(values, options)
    operands = _operands(values)
    if rule == "total":
        if options.get("dtype") is not None:
            return _native(options["dtype"])
        dtype = operands[0].dtype
        wide = np.uint64 if dtype.kind == "u" else np.int64
        return np.dtype(wide) if dtype.kind in "biu" else dtype
    if rule == "first":
        return _promoted(operands[:1])
    if rule == "last":
        return _promoted(operands[-1:])
    dtype = _promoted(operands)
    return {"floating": _floating, "real": _real, "complex": _complex}.get(rule, lambda d: d)(dtype)


# -- results by records ---------------------------------------------------------------------------


@cache
def _several(record: Primitive) -> Any:
    name = record.name.rpartition(".")[2]
    return namedtuple(name, record.fields) if record.fields else lambda *results: results


def evaluate(record: Primitive, *values: Any, **options: Any) -> Any:
    """What a primitive gives: arrays of the shapes and dtypes that its record says."""
    shapes = record.shapes(*values, **options)
    if shapes is None:
        return None
    counted = values[1:] if record.name == "where" else values
    if record.kind in (kinds.allocation, kinds.allocation_like, kinds.creation):
        counted = values[record.kind is kinds.allocation :]
    if type(shapes) is not list:
        dtype = _dtype(record.dtypes[0], counted, options)
        steps = None
        if record.kind is kinds.elementwise and record.name != "copy" and len(shapes) > 1:
            arrays = tuple([(v.shape, v.steps) for v in values if isinstance(v, MetaArray)])
            steps = elementwise_strides(shapes, arrays)
        return MetaArray(tuple(shapes), dtype, steps)
    dtypes = [_dtype(rule, counted, options) for rule in record.dtypes]
    dtypes *= len(shapes) if len(dtypes) == 1 else 1
    results = [MetaArray(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return _several(record)(*results) if len(record.dtypes) > 1 else tuple(results)


# -- views ----------------------------------------------------------------------------------------


def as_strided(x: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
    return x.seen(tuple(shape), tuple(strides), offset)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    shape = infer_size((shape,) if isinstance(shape, int) else tuple(shape), x.size)
    steps = None if copy else view_strides(x.shape, x.steps, shape)
    if steps is None:
        if copy is False:
            raise ValueError(f"no view of {x} has the shape {shape}")
        return MetaArray(shape, x.dtype)
    return x.seen(shape, steps)


def permute_dims(x: Any, /, axes: Any) -> Any:
    return x.seen(tuple([x.shape[a] for a in axes]), tuple([x.steps[a] for a in axes]))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    order = kinds.moved(SimpleNamespace(shape=range(x.ndim), ndim=x.ndim), source, destination)
    return permute_dims(x, order)


def matrix_transpose(x: Any, /) -> Any:
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def expand_dims(x: Any, /, *, axis: int = 0) -> Any:
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise IndexError(f"axis {axis} is out of bounds for an array of {x.ndim} dimensions")
    axis = axis % (x.ndim + 1)
    return getitem(x, (slice(None),) * axis + (None,))


def squeeze(x: Any, /, axis: Any) -> Any:
    axes = [a % x.ndim for a in ((axis,) if isinstance(axis, int) else axis)] if x.ndim else []
    if any([x.shape[a] != 1 for a in axes]):
        raise ValueError(f"cannot squeeze the axes {axes} of {x}")
    kept = [a for a in range(x.ndim) if a not in axes]
    return permute_dims(x, kept)


def broadcast_to(x: Any, shape: Any) -> Any:
    shape = tuple(shape)
    if not isinstance(x, MetaArray):
        x = evaluate(PRIMITIVES["asarray"], x)
    try:
        _, steps = expanded(x.shape, x.steps, shape)
    except RuntimeError as error:
        raise ValueError(f"cannot broadcast shape {x.shape} to {shape}") from error
    lengths = (1,) * (len(shape) - x.ndim) + x.shape
    return x.seen(shape, tuple([0 if n == 1 else step for n, step in zip(lengths, steps)]))


def broadcast_arrays(*arrays: Any) -> Any:
    shape = kinds.broadcast(*arrays)
    return tuple([broadcast_to(x, shape) for x in arrays])


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    before = (slice(None),) * (axis % x.ndim)
    return tuple([getitem(x, (*before, number)) for number in range(x.shape[axis])])


def _part(x: Any, second: bool) -> Any:
    if x.dtype.kind != "c":
        return MetaArray(x.shape, x.dtype) if second else x
    steps = tuple([2 * step for step in x.steps])
    view = x.seen(x.shape, steps, dtype=_real(x.dtype))
    view.offset = 2 * x.offset + second
    return view


def real(x: Any, /) -> Any:
    return _part(x, False)


def imag(x: Any, /) -> Any:
    return _part(x, True)


def bitcast(x: Any, dtype: Any) -> Any:
    native = _native(dtype)
    old, new = x.dtype.itemsize, native.itemsize
    shape, steps = x.shape, x.steps
    if old != new:
        shape = (*shape[:-1], shape[-1] * old // new)
        steps = (*[step * old // new for step in steps[:-1]], 1)
    view = x.seen(shape, steps, dtype=native)
    view.offset = x.offset * old // new
    return view


def astype(x: Any, dtype: Any, *, copy: bool = False) -> Any:
    native = _native(dtype)
    if native == x.dtype and not copy:
        return x
    return evaluate(PRIMITIVES["astype"], x, native)


def getitem(x: Any, index: Any) -> Any:
    items = index if isinstance(index, tuple) else (index,)
    if any([isinstance(item, MetaArray) for item in items]):
        return evaluate(PRIMITIVES["getitem"], x, index)
    items = tuple([item if item is None or item is Ellipsis else _basic(item) for item in items])
    shape, steps, offset = indexed(x.shape, x.steps, items)
    return x.seen(shape, steps, offset)


def _basic(item: Any) -> Any:
    return item if isinstance(item, slice) else int(item)


# -- facts and checks -----------------------------------------------------------------------------


def address(x: Any) -> int:
    return x.address


def _ignore(*values: Any, **options: Any) -> None:
    """A check of values, or a write of them."""


check_index = check_labels = check_range = _ignore


def _of_dtypes(name: str) -> Callable[..., Any]:
    def call(*values: Any, **options: Any) -> Any:
        plain = [v.dtype if isinstance(v, MetaArray) else v for v in values]
        return getattr(np, name)(*plain, **options)

    return call


result_type, can_cast, isdtype, finfo, iinfo = map(
    _of_dtypes, ("result_type", "can_cast", "isdtype", "finfo", "iinfo")
)


class Kit:
    """The namespace of all primitives; `linalg` and `fft` are such as well."""

    def __init__(self, room: str = "") -> None:
        self._room = room

    def __getattr__(self, name: str) -> Any:
        full = f"{self._room}.{name}" if self._room else name
        found: Any
        if full in ("linalg", "fft"):
            found = Kit(full)
        elif full in CONSTANTS:
            found = getattr(np, name)
        elif full in PRIMITIVES:
            found = globals().get(full) or partial(evaluate, PRIMITIVES[full])
        else:
            raise AttributeError(name)
        setattr(self, name, found)
        return found


MetaArray.kit = Kit()
