"""Reading an index: its basic part, the tensors in it, and the slices that run backwards."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from tensorflow_lite_clone.autograd.apply import wrap
from tensorflow_lite_clone.core.dtypes import bool_, int64, uint8
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.ops.create.constructors import tensor as make_tensor
from tensorflow_lite_clone.ops.shape.slices import BasicIndex, Select, Slice
from tensorflow_lite_clone.tensor import Tensor

_ALL = slice(None)


class Parsed(NamedTuple):
    """An index, read for one tensor."""

    items: Any  # the basic part, without steps below zero
    op: Any  # what serves it
    reversed: tuple  # the dimensions of its result that run backwards
    extra: list  # (dimension of its result, index tensor or mask that looks along it)


def parsed(x: Tensor, index: Any) -> Parsed:
    """An index, read for `x`; where tensors look the basic part has whole dimensions."""
    items = index if type(index) is tuple else as_tuple(index)
    prepared = [_prepared(item, x) for item in items]
    shape = x._storage.physical.shape
    named = sum([_span(item) for item in prepared])
    if named > len(shape):
        if len(prepared) == 1 and type(prepared[0]) is slice:
            if type(index) is slice:
                step_of(index)
            raise out_of_bounds(shape, tuple(prepared))
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    basic: list = []
    extra: list = []
    backwards: list = []
    dim = place = 0  # in `x`, and in the result of the basic part
    whole = True  # nothing changes
    for item in prepared:
        if type(item) is int:
            if not -shape[dim] <= item < shape[dim]:
                raise IndexError(
                    f"index {item} is out of bounds for dimension {dim} with size {shape[dim]}"
                )
            basic.append(item)
            dim += 1
            whole = False
        elif type(item) is slice:
            if step_of(item) < 0:
                item = _forwards(item, shape[dim])
                backwards.append(place)
            basic.append(item)
            dim, place = dim + 1, place + 1
            whole = whole and item == _ALL
        elif item is Ellipsis:
            span = len(shape) - named
            basic.extend([_ALL] * span)
            dim, place, named = dim + span, place + span, len(shape)
        elif item is None:
            basic.append(None)
            place += 1
            whole = False
        elif isinstance(item, Tensor):
            extra.append((place, item))
            span = _span(item)
            basic.extend([_ALL] * span)
            dim, place = dim + span, place + span
        else:  # a truth value looks along a new dimension of size one
            backend = x._storage.backend
            found = backend.asarray([0] if item else [], int64)
            extra.append((place, wrap(found, backend)))
            basic.append(None)
            place += 1
            whole = False
    if None in basic:
        return Parsed(tuple(basic), BasicIndex, tuple(backwards), extra)
    if whole:
        return Parsed((...,), Slice, (), extra)
    op: Any = Select if basic and type(basic[-1]) is int else Slice
    return Parsed((*basic, ...), op, tuple(backwards), extra)


def step_of(item: slice) -> int:
    """The step of a slice; ValueError where it is 0."""
    step = 1 if item.step is None else item.step.__index__()
    if step == 0:
        raise ValueError("slice step cannot be zero")
    return step


def _forwards(item: slice, size: int) -> slice:
    """The elements that a slice with a negative step finds, from the first to the last."""
    found = range(*item.indices(size))
    return slice(found[-1], found[0] + 1, -found.step) if found else slice(0, 0)


def as_tuple(index: Any) -> tuple:
    """A single index as a tuple; short lists of slices, lists and tensors count as tuples."""
    if isinstance(index, (list, range)) and 0 < len(index) < 32:
        for item in index:
            if hasattr(item, "__len__") or type(item) is slice or item is None or item is ...:
                warnings.warn(
                    "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
                    "x[tuple(seq)] instead of x[seq].",
                    stacklevel=level_outside(),
                )
                return tuple(index)
    elif isinstance(index, tuple):
        return tuple(index)
    return (index,)


def _prepared(item: Any, x: Tensor) -> Any:
    """An item of an index as an int, slice, None, Ellipsis, bool or Tensor.

    Zero-dim tensors are numbers or truth values here.
    """
    if type(item) in (int, slice, bool) or item is None or item is Ellipsis:
        return item
    if isinstance(item, Tensor):
        kind = item.dtype.kind
        if item._storage.physical.ndim or kind not in "biu" or item._storage.backend.batched:
            own, other = x._storage.backend, item._storage.backend
            stays = own is other or (is_mask(item) and other.has_values and not own.has_values)
            return item if stays else item.to(x.device)
        return bool(item) if is_mask(item) else item.item()
    if isinstance(item, (list, tuple, range)) or hasattr(type(item), "__array__"):
        if not isinstance(item, (list, tuple, range)) and item.shape == ():
            return item.item()
        made = make_tensor(list(item) if isinstance(item, range) else item, device=x.device)
        if made.dtype.kind not in "biu":  # Python's sequences of floats count as integers
            made = made.to(int64)
        return made
    if isinstance(item, str):
        raise TypeError(f"new(): invalid data type '{type(item).__name__}'")
    try:
        return item.__index__()
    except AttributeError:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {type(item).__name__})"
        ) from None


def _span(item: Any) -> int:
    """How many dimensions an item of an index looks at."""
    if isinstance(item, Tensor):
        return item._storage.physical.ndim if is_mask(item) else 1
    return 0 if item is None or item is Ellipsis or type(item) is bool else 1


def out_of_bounds(shape: tuple, index: tuple) -> IndexError:
    """What is wrong with the integers of an index."""
    dim = 0
    named = sum([1 for item in index if item is not None and item is not Ellipsis])
    if named > len(shape):
        if not shape and len(index) == 1 and type(index[0]) is slice:
            return IndexError("slice() cannot be applied to a 0-dim tensor.")
        if not shape and len(index) == 1:
            return IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        return IndexError(f"too many indices for tensor of dimension {len(shape)}")
    for item in index:
        if item is Ellipsis:
            dim += len(shape) - named
        elif item is not None:
            if type(item) is int and not -shape[dim] <= item < shape[dim]:
                return IndexError(
                    f"index {item} is out of bounds for dimension {dim} with size {shape[dim]}"
                )
            dim += 1
    return IndexError(f"index {index} does not fit a tensor of shape {list(shape)}")


def is_mask(index: Tensor) -> bool:
    """Whether an index tensor says of each element if it is meant; uint8 does in PyTorch."""
    return index.dtype is bool_ or index.dtype is uint8
