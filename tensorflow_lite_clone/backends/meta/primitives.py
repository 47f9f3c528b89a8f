"""The primitives over meta arrays: views with their strides, and everything else by its record."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.meta.array import MetaArray
from tensorflow_lite_clone.backends.numpy.native import NATIVE
from tensorflow_lite_clone.core.errors import values_missing
from tensorflow_lite_clone.core.shape import Shape, infer_size
from tensorflow_lite_clone.core.strides import (
    Geometry,
    expanded,
    indexed,
    permuted_strides,
    view_strides,
)
from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.dispatch.primitives import CONSTANTS, PRIMITIVES, Primitive

# -- dtypes ---------------------------------------------------------------------------------------

#: Of a Python number beside arrays only the category counts (NumPy's enhancement proposal 50).
_WEAK: dict[type, Any] = {bool: np.dtype(bool), int: 0, float: 0.0, complex: 0j}


def _operands(values: Any) -> list[Any]:
    """Dtypes of the arrays, and numbers, among arguments, also those of lists."""
    found: list[Any] = []
    for value in values:
        if isinstance(value, MetaArray):
            found.append(value.dtype)
        elif isinstance(value, (list, tuple)):
            found += _operands(value)
        elif type(value) in _WEAK:
            found.append(_WEAK[type(value)])
    return found


def _promoted(operands: list[Any]) -> np.dtype:
    arrays = [dtype for dtype in operands if isinstance(dtype, np.dtype)]
    if float in map(type, operands) and arrays and all([dtype.kind == "V" for dtype in arrays]):
        return np.result_type(np.float32, *arrays)  # beside bfloat16 such a number is not weak
    return np.result_type(*operands)


def _chosen(operands: list[Any]) -> np.dtype:
    arrays = [dtype for dtype in operands if isinstance(dtype, np.dtype)]
    narrow = len(arrays) == 1 and arrays[0].kind == "V" and complex not in map(type, operands)
    return arrays[0] if narrow else np.result_type(*operands)


def _numeric(operands: list[Any]) -> np.dtype:
    dtype = _promoted(operands)
    if dtype.kind == "b":
        raise TypeError("a number was expected, not a truth value")
    return dtype


def _floating(operands: list[Any]) -> np.dtype:
    dtype = _promoted(operands)
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def _part_of(dtype: np.dtype) -> np.dtype:
    """The dtype of real and imaginary parts."""
    return np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype


def _complex(operands: list[Any]) -> np.dtype:
    return np.result_type(_promoted(operands), np.complex64)


def _total(operands: list[Any]) -> np.dtype:
    dtype = operands[0]
    wide = np.uint64 if dtype.kind == "u" else np.int64
    return np.dtype(wide) if dtype.kind in "biu" else dtype


#: Rules of `dispatch.primitives.DTYPES` that follow from the operands.
_RULES: dict[str, Callable[[list[Any]], np.dtype]] = {
    "promoted": _promoted,
    "numeric": _numeric,
    "floating": _floating,
    "real": lambda operands: _part_of(_promoted(operands)),
    "complex": _complex,
    "chosen": lambda operands: _chosen(operands[1:]),
    "total": _total,
    "first": lambda operands: np.result_type(operands[0]),
    "last": lambda operands: np.result_type(operands[-1]),
}


def _native(dtype: Any) -> np.dtype:
    return np.dtype(NATIVE.get(dtype, dtype))


def _dtype(rule: str, values: tuple, options: dict[str, Any]) -> np.dtype:
    """The dtype of a result by a rule of `dispatch.primitives.DTYPES`."""
    if options.get("dtype") is not None:
        return _native(options["dtype"])
    if rule == "named":
        return _native(values[1])
    return _RULES[rule](_operands(values)) if rule in _RULES else np.dtype(rule)


# -- results by records ---------------------------------------------------------------------------


class Counter(threading.local):
    """The operations of primitives that this thread evaluates, while `flops` is a number."""

    flops: float | None = None


counter = Counter()


@cache
def _results(name: str, fields: tuple[str, ...]) -> Any:
    """What makes one value of several results."""
    return namedtuple(name.rpartition(".")[2], fields) if fields else lambda *results: results


@lru_cache(4096)
def _in_kept_order(shape: Shape, operands: tuple[Geometry, ...]) -> Shape:
    """Dense strides in the order of the operands where they agree, else row-major: NumPy's "K"."""
    missing = [(0,) * (len(shape) - len(own)) for own, _ in operands]
    seen = [
        (*before, *[0 if n == 1 else step for n, step in zip(own, steps)])
        for before, (own, steps) in zip(missing, operands)
    ]
    order: list[int] = []  # of dimensions, the slowest first
    for dim in range(len(shape) - 1, -1, -1):
        place = 0
        for number, other in enumerate(order):
            pairs = [(s[dim], s[other]) for s in seen if s[dim] and s[other]]
            if pairs and all([slow < fast for slow, fast in pairs]):
                place = number + 1
            elif pairs:
                break
        order.insert(place, dim)
    return permuted_strides(shape, order)


def _calculates(values: tuple) -> bool:
    """Whether there is a floating number among the operands: calculations of positions are free."""
    return any([isinstance(v, MetaArray) and v.dtype.kind in "fcV" for v in values])


def evaluate(record: Primitive, *values: Any, **options: Any) -> Any:
    """What a primitive gives: arrays of the shapes and dtypes that its record says."""
    try:
        shapes = record.shapes(*values, **options)
    except kinds.DataDependentShape:
        raise values_missing(record.name) from None
    if counter.flops is not None:
        counter.flops += record.flops(shapes, *values, **options) if _calculates(values) else 0
    if shapes is None:
        return None
    if type(shapes) is not list:
        dtype = _dtype(record.dtypes[0], values, options)
        steps = None
        if record.kind is kinds.elementwise and record.name != "copy" and len(shapes) > 1:
            arrays = tuple([(v.shape, v.steps) for v in values if isinstance(v, MetaArray)])
            steps = _in_kept_order(shapes, arrays)
        return MetaArray(tuple(shapes), dtype, steps)
    dtypes = [_dtype(rule, values, options) for rule in record.dtypes]
    dtypes *= len(shapes) if len(dtypes) == 1 else 1
    results = [MetaArray(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    return _results(record.name, record.fields)(*results)


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
    view = x.seen(x.shape, steps, dtype=_part_of(x.dtype))
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
    kinds.check_bounds(x.shape, items)
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


MetaArray.primitives = Kit()
