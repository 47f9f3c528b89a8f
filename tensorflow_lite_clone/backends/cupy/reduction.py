"""Reductions of arrays in one or two launches: `kernels/reduce.cu`."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np
from cupy import ndarray

from tensorflow_lite_clone.backends.cupy.arrays import ACCUMULATORS, ceil_div, power_above
from tensorflow_lite_clone.backends.cupy.kernel import Kernel
from tensorflow_lite_clone.core.shape import contiguous_strides

_PARAMS = ("T", "A", "O", "R", "TRUTH", "VEC", "LANES", "index_t")
_ROWS = Kernel("reduce.cu", "reduce_rows", params=_PARAMS)
_COLUMNS = Kernel("reduce.cu", "reduce_columns", params=_PARAMS)
_THREADS = 256
_BLOCKS = 528  # four for each multiprocessor of a large GPU
_FEW = _BLOCKS // 2  # blocks, below which the work of one is split
_MOST_SPLITS = 512
_MOST_KEPT = 4096  # prepared reductions; then they begin anew
_INT, _INT64, _BOOL = np.dtype(np.int32), np.dtype(np.int64), np.dtype(bool)

#: word -> the functor, and what does not change its results
_FUNCTORS = {
    "sum": ("Sum", 0), "mean": ("Sum", 0), "prod": ("Product", 1), "max": ("Larger", -inf),
    "min": ("Smaller", inf), "any": ("Larger", 0), "all": ("Smaller", 1),
}  # fmt: skip


class Axis(NamedTuple):
    """Merged axes of an array: how many elements, and how far apart here and in the result."""

    size: int
    step: int
    made: int


_NONE = Axis(1, 0, 0)


class Walk(NamedTuple):
    """Two axes that are kept and two that are reduced, each pair from the outer to the inner."""

    kept: tuple[Axis, Axis]
    reduced: tuple[Axis, Axis]
    by_rows: bool  # the innermost axis is reduced
    reach: int  # the largest offset, or number of elements


def _walk(shape: tuple, strides: tuple, axes: frozenset[int]) -> Walk | None:
    """The walk over an array with strides in elements; None where more than two axes are left."""
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    made = dict(zip(kept, contiguous_strides(tuple([shape[axis] for axis in kept]))))
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    groups: dict[bool, list[Axis]] = {True: [], False: []}
    last = None
    for axis in reversed([axis for axis in order if shape[axis] > 1]):
        reduced = axis in axes
        found = Axis(shape[axis], strides[axis], made.get(axis, 0))
        group = groups[reduced]
        inner = group[0] if group and last is reduced else None
        if inner and all([stride == own * inner.size for stride, own in zip(found[1:], inner[1:])]):
            group[0] = Axis(found.size * inner.size, inner.step, inner.made)
        else:
            group.insert(0, found)
        if last is None:
            by_rows = reduced
        last = reduced
    if last is None or max(map(len, groups.values())) > 2:
        return None
    pairs: list[Any] = [
        (_NONE,) * (2 - len(groups[reduced])) + tuple(groups[reduced]) for reduced in (False, True)
    ]
    reach = sum([(size - 1) * step for size, step in zip(shape, strides)])
    return Walk(pairs[0], pairs[1], by_rows, max(prod(shape), reach))


def _vector(walk: Walk, itemsize: int) -> int:
    """How many neighbours a thread may take at once, from aligned memory."""
    inner = (walk.reduced if walk.by_rows else walk.kept)[1]
    full = 16 // itemsize
    # Windows that overlap have equal axes: it is the place that tells the inner one from another.
    steps = [axis.step % full for axis in (*walk.kept, *walk.reduced) if axis is not inner]
    return full if inner.step == 1 and not inner.size % full and not any(steps) else 1


class _Types(NamedTuple):
    """C types, by dtype, of elements, of what is accumulated and of the results."""

    source: Any
    accumulator: Any
    result: Any


def _launched(
    walk: Walk, types: _Types, functor: str, truth: bool, identity: Any, divisor: int, vec: int
) -> Callable[[Any, Any, Any], None]:
    """A function of the array, an allocator and the result that launches what reduces it."""
    index = "int" if walk.reach < 1 << 30 else "long long"
    (batch, column), (outer, inner) = walk.kept, walk.reduced
    count = outer.size * inner.size
    source, accumulator, result = types
    if walk.by_rows:
        packs = ceil_div(count, vec)
        lanes = _THREADS if packs >= 512 else min(32, power_above(ceil_div(packs, 4)))
        rows = batch.size * column.size
        blocks = ceil_div(rows * lanes, _THREADS)
        splits = ceil_div(packs, 2 * _THREADS) if lanes == _THREADS else 1
    else:
        lanes = min(32, power_above(ceil_div(column.size, vec)))
        blocks = batch.size * ceil_div(column.size, lanes * vec)
        splits = ceil_div(count, 4 * (_THREADS // lanes))
    splits = max(1, min(splits, _BLOCKS // blocks, _MOST_SPLITS)) if blocks < _FEW else 1
    whole = splits == 1
    written = result if whole else accumulator
    kernel = (_ROWS if walk.by_rows else _COLUMNS)[
        source, accumulator, written, functor, truth, vec, lanes, index
    ]
    by = divisor if whole else 1
    grid = (blocks, splits)
    steps: tuple
    numbers: tuple
    if walk.by_rows:
        steps = (batch.made, column.made) if whole else (column.size * splits, splits)
        numbers = (
            identity, by, rows, column.size, batch.step, column.step, count, inner.size, outer.step,
            inner.step, *steps,
        )  # fmt: skip
        reduced = Axis(splits, 1, 0)
        kept = (
            Axis(batch.size, column.size * splits, batch.made),
            Axis(column.size, splits, column.made),
        )
    else:
        steps = (batch.made, 0, column.made) if whole else (
            splits * column.size, column.size, 1,
        )  # fmt: skip
        numbers = (
            identity, by, batch.step, column.size, column.step, count, inner.size, outer.step,
            inner.step, *steps,
        )  # fmt: skip
        reduced = Axis(splits, column.size, 0)
        kept = (Axis(batch.size, splits * column.size, batch.made), column._replace(step=1))
    if whole:
        return lambda x, empty, y: kernel(grid, _THREADS, x, *numbers, y)
    left = prod([axis.size for axis in kept]) * splits
    then = Walk(kept, (_NONE, reduced), walk.by_rows, left)
    rest = _Types(accumulator, accumulator, result)
    second = _launched(
        then, rest, functor, False, identity, divisor, _vector(then, accumulator.itemsize)
    )

    def both(x: Any, empty: Any, y: Any) -> None:
        partial = empty(left, accumulator)
        kernel(grid, _THREADS, x, *numbers, partial)
        second(partial, empty, y)

    return both


def _types(word: str, dtype: Any, out_dtype: Any) -> _Types | None:
    """What a word accumulates; None where it is left to CuPy."""
    if word in ("any", "all"):
        return _Types(dtype, _INT, _BOOL) if dtype.kind in "biufV" else None
    accumulator = ACCUMULATORS.get(dtype)
    if accumulator is not None and (
        out_dtype is None or out_dtype == dtype
    ):  # `float64 == None` holds
        return _Types(dtype, accumulator, dtype)
    if dtype.kind in "biu":
        if word in ("sum", "prod") and out_dtype == _INT64:
            return _Types(dtype, _INT64, _INT64)
        if word in ("max", "min") and dtype.kind != "b":
            whole = _INT if dtype.itemsize < 4 else dtype  # which lanes can exchange
            return _Types(dtype, whole, dtype)
    return None


def _prepare(word: str, x: Any, axis: Any, keepdims: bool, out_dtype: Any) -> Any:
    """A function of an array like `x` that reduces it, or None."""
    types = _types(word, x.dtype, out_dtype)
    if types is None or not x.size or any([step < 0 for step in x.strides]):
        return None
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if not all([-x.ndim <= one < x.ndim for one in axes]):
        return None
    chosen = frozenset([one % x.ndim for one in axes])
    if len(chosen) != len(axes):  # CuPy says what is wrong
        return None
    itemsize = x.itemsize
    walk = _walk(x.shape, tuple([step // itemsize for step in x.strides]), chosen)
    if walk is None or not chosen or walk.reduced[1] is _NONE:
        return None
    functor, identity = _FUNCTORS[word]
    if types.accumulator.kind in "iu" and identity in (inf, -inf):
        limits = np.iinfo(types.accumulator)
        identity = limits.min if identity < 0 else limits.max
    divisor = prod([axis.size for axis in walk.reduced]) if word == "mean" else 1
    vec = _vector(walk, itemsize)
    truth = word in ("any", "all")
    arguments = walk, types, functor, truth, identity, divisor
    run = _launched(*arguments, vec)
    single = None if vec == 1 else _launched(*arguments, 1)
    if keepdims:
        shape = tuple([1 if place in chosen else size for place, size in enumerate(x.shape)])
    else:
        shape = tuple([size for place, size in enumerate(x.shape) if place not in chosen])
    result = types.result

    def reduce(x: Any) -> Any:
        y = ndarray(shape, result)
        (single if single is not None and x.data.ptr & 15 else run)(x, ndarray, y)
        return y

    return reduce


_kept: dict[Any, Any] = {}


def reduced(word: str, x: Any, axis: Any, keepdims: bool, out_dtype: Any = None) -> Any:
    """The word of F of `x` over axes (None: all), or NotImplemented; `out_dtype` is native."""
    if x.__class__ is not ndarray:
        return NotImplemented
    key = word, x.dtype, x.shape, x.strides, axis, keepdims, out_dtype
    try:
        reduce = _kept[key]
    except KeyError:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        reduce = _kept[key] = _prepare(word, x, axis, keepdims, out_dtype)
    except TypeError:  # a list of axes
        return NotImplemented
    return NotImplemented if reduce is None else reduce(x)
