"""``x[...]`` and ``x[...] = value``.

Integers, slices, None and Ellipsis give views; index tensors and masks give copies. As in
PyTorch the integers are taken first, so ``x[0, :, index]`` keeps the slice's dimension in front.
"""

from __future__ import annotations

import warnings
from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_view, current_edge, view_of, wrap
from tensorflow_lite_clone.autograd.inplace import apply_inplace, check_writable
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.ops._index_tensors import (
    check_mask,
    for_dimensions,
    nothing_read,
    stacked,
)
from tensorflow_lite_clone.ops._indexing import (
    Index,
    IndexAlong,
    IndexMask,
    IndexPut,
    MaskPut,
    result_shape,
)
from tensorflow_lite_clone.ops._operands import as_number, cast
from tensorflow_lite_clone.ops._views import number_of
from tensorflow_lite_clone.ops.assign import copy_, fill_, held_value, write_value
from tensorflow_lite_clone.ops.create import tensor as make_tensor
from tensorflow_lite_clone.ops.shape import reshape, unsqueeze
from tensorflow_lite_clone.ops.slices import BasicIndex, Select, Slice, unbind
from tensorflow_lite_clone.tensor import Tensor

_active_hooks = hooks.active
_ALL = slice(None)


@public("method")
def __getitem__(self: Tensor, index: Any) -> Tensor:
    """The part that `index` names: integers, slices, None, Ellipsis, index tensors, masks.

    Raises IndexError for what is out of bounds or no index, ValueError for negative steps.
    """
    kind = type(index)
    if kind is int:
        array = self._storage.array
        try:
            part = array[index, ...]
        except IndexError:
            raise _out_of_bounds(array.shape, (index,)) from None
        if _active_hooks:
            return apply_view(Select, self, index=(index, ...), shape=array.shape)
        return view_of(Select, self, part, {"index": (index, ...), "shape": array.shape})
    if kind is slice:
        step = index.step
        array = self._storage.array
        if (step is None or step > 0) and array.ndim and not _active_hooks:
            return view_of(Slice, self, array[index], {"index": index, "shape": array.shape})
    elif kind is tuple and _is_basic(index):
        items = index if ... in index else (*index, ...)
        array = self._storage.array
        try:
            part = array[items]
        except IndexError:
            raise _out_of_bounds(array.shape, index) from None
        op = Select if index and type(index[-1]) is int else Slice
        if _active_hooks:
            return apply_view(op, self, index=items, shape=array.shape)
        return view_of(op, self, part, {"index": items, "shape": array.shape})
    elif kind is Tensor:
        array, places = self._storage.array, index._storage.array
        if (
            index.dtype is int64 and places.ndim and array.size and array.ndim
            and type(places) is type(array)
        ):
            try:
                return apply(IndexAlong, self, index, axis=0, shape=array.shape)
            except IndexError as error:
                return nothing_read(self, [(0, index)], error)
    elif index is None:
        return unsqueeze(self, 0)
    items, op, extra = _parsed(self, index)
    if not extra:
        return apply_view(op, self, index=items, shape=self._storage.array.shape)
    return _advanced(_basic_part(self, items, op), extra)


def _is_basic(index: tuple) -> bool:
    """Whether an index has but ints, slices with positive steps and at most one Ellipsis."""
    ellipses = 0
    for item in index:
        kind = type(item)
        if kind is slice:
            step = item.step
            if step is not None and (type(step) is not int or step <= 0):
                return False
        elif item is Ellipsis:
            ellipses += 1
        elif kind is not int:
            return False
    return ellipses < 2


@public("method")
def __setitem__(self: Tensor, index: Any, value: Any) -> None:
    """Write `value`, cast and broadcast, into the part that `index` names."""
    kind = type(index)
    storage = self._storage
    if kind is bool:
        if not index:
            return
        index = (...,)
    if kind is not tuple:
        if kind is slice:
            _check_slice(index)
        index = (index,) if kind is int or kind is slice else _as_tuple(index)
    if not _active_hooks and _is_basic(index) and not _recorded(self, value):
        array = storage.array
        try:
            part = array[index if ... in index else (*index, ...)]
        except IndexError:
            raise _out_of_bounds(array.shape, index) from None
        check_writable(part)
        write_value(storage, part, value)
        return
    if not isinstance(value, Tensor):
        number = as_number(value)
        if number is None:
            raise TypeError(
                f"can't assign a {_type_name(value)} to a torch.{self.dtype.short_name}Tensor"
            )
        value = number
    items, op, extra = _parsed(self, index)
    if extra:
        _put(_basic_part(self, items, op), extra, value)
    elif isinstance(value, Tensor):
        part = apply_view(op, self, index=items, shape=storage.array.shape)
        copy_(part, _without_leading_ones(value, part._storage.array.ndim))
    else:
        part = apply_view(op, self, index=items, shape=storage.array.shape)
        check_writable(part._storage.array)
        fill_(part, value)


def _type_name(value: Any) -> str:
    kind = type(value)
    module = kind.__module__
    return kind.__name__ if module == "builtins" else f"{module}.{kind.__name__}"


def _recorded(target: Tensor, value: Any) -> bool:
    """Whether a write of `value` into `target` has to go the way of the graph."""
    if not mode.grad:
        return False
    edge = target._edge if target._view is None else current_edge(target)
    if edge is not None:
        return True
    return isinstance(value, Tensor) and current_edge(value) is not None


def _without_leading_ones(value: Tensor, ndim: int) -> Tensor:
    shape = value._storage.array.shape
    if len(shape) <= ndim:
        return value
    first = next((place for place, size in enumerate(shape) if size != 1), len(shape))
    return reshape(value, shape[min(first, len(shape) - ndim) :])


def _out_of_bounds(shape: tuple, index: tuple) -> IndexError:
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


def _parsed(x: Tensor, index: Any) -> tuple[Any, Any, list]:
    """The basic part of an index with the op that serves it, and the tensors in it.

    The tensors come as (dimension of the basic part's result, tensor); where they look the basic
    part has whole dimensions.
    """
    items = index if type(index) is tuple else _as_tuple(index)
    prepared = [_prepared(item, x) for item in items]
    shape = x._storage.array.shape
    named = sum([_span(item) for item in prepared])
    if named > len(shape):
        if len(prepared) == 1 and type(prepared[0]) is slice:
            if type(index) is slice:
                _check_slice(index)
            raise _out_of_bounds(shape, tuple(prepared))
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    basic: list = []
    extra: list = []
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
            _check_slice(item)
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
        return tuple(basic), BasicIndex, extra
    if whole:
        return (...,), Slice, extra
    op: Any = Select if basic and type(basic[-1]) is int else Slice
    return (*basic, ...), op, extra


def _check_slice(item: slice) -> None:
    step = item.step
    if step is not None:
        step = step.__index__()
        if step == 0:
            raise ValueError("slice step cannot be zero")
        if step < 0:
            raise ValueError("step must be greater than zero")


def _as_tuple(index: Any) -> tuple:
    """A single index as a tuple; short lists of slices, lists and tensors count as tuples."""
    if isinstance(index, (list, range)) and 0 < len(index) < 32:
        for item in index:
            if hasattr(item, "__len__") or type(item) is slice or item is None or item is ...:
                warnings.warn(
                    "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
                    "x[tuple(seq)] instead of x[seq].",
                    stacklevel=4,
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
        if item._storage.array.ndim or kind not in "biu" or item._storage.backend.batched:
            return item if item._storage.backend is x._storage.backend else item.to(x.device)
        return item.item() if kind == "i" else bool(item)
    if isinstance(item, (list, tuple, range)) or hasattr(item, "__array__"):
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
        return item._storage.array.ndim if item.dtype.kind in "bu" else 1
    return 0 if item is None or item is Ellipsis or type(item) is bool else 1


def _basic_part(x: Tensor, items: tuple, op: Any) -> Tensor:
    if items == (...,):
        return x
    return apply_view(op, x, index=items, shape=x._storage.array.shape)


def _one_mask(x: Tensor, extra: list) -> Any:
    """The mask, if the index is but a mask of leading dimensions."""
    place, mask = extra[0]
    if len(extra) == 1 and not place and mask.dtype.kind == "b" and mask.ndim:
        check_mask(x._storage.array.shape, mask, 0, 0)
        return mask
    return None


def _advanced(x: Tensor, extra: list) -> Tensor:
    shape = x._storage.array.shape
    mask = _one_mask(x, extra)
    if mask is not None:
        return apply(IndexMask, x, mask, shape=shape)
    place, only = extra[0]
    try:
        if (
            len(extra) == 1 and only.dtype is int64 and only._storage.array.ndim == 1
            and shape[place]
        ):
            return apply(IndexAlong, x, only, axis=place, shape=shape)
        index, places = stacked(x, extra)
        return apply(Index, x, index, places=places, shape=shape)
    except IndexError as error:
        return nothing_read(x, extra, error)


def put_at(x: Tensor, index: Tensor, value: Tensor, places: tuple, accumulate: bool) -> Tensor:
    """Write (or add) `value` at a stacked index in place."""
    found = result_shape(x._storage.array.shape, index._storage.array.shape[1:], places)
    if value.ndim:
        value = _fitting(value, found)
    try:
        return apply_inplace(IndexPut, x, index, value, places=places, accumulate=accumulate)
    except IndexError as error:
        if 0 in found:  # as in PyTorch the index is looked at where something is written
            x._storage.bump()
            return x
        raise for_dimensions(error) from None


def _put(x: Tensor, extra: list, value: Any) -> None:
    """``x[extra] = value`` for index tensors."""
    shape = x._storage.array.shape
    mask = _one_mask(x, extra)
    if not isinstance(value, Tensor):
        source = held_value(x, value)
    elif value._storage.array.size == 1 and len(extra) == 1 and extra[0][1].dtype.kind == "b":
        source = cast(value, x.dtype)
    else:
        source = value
    if mask is not None:
        expect_dtype(x, source)
        if source.ndim:
            backend = x._storage.backend
            count = number_of(backend.F.sum(mask._storage.array), backend)
            source = _fitting(source, (count, *shape[mask.ndim :]))
        apply_inplace(MaskPut, x, mask, source)
        return
    found, places = stacked(x, extra)
    expect_dtype(x, source)
    put_at(x, found, source, places, False)


def expect_dtype(x: Tensor, source: Tensor) -> None:
    """Raise torch's RuntimeError when what is written at indices has another dtype."""
    if source.dtype is not x.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{x.dtype.short_name} for the destination and {source.dtype.short_name} for the "
            "source."
        )


def _fitting(value: Tensor, found: tuple) -> Tensor:
    """`value` without superfluous leading ones; RuntimeError when it does not broadcast."""
    value = _without_leading_ones(value, len(found))
    shape = value._storage.array.shape
    offset = len(found) - len(shape)
    if offset < 0 or any([n != m and n != 1 for n, m in zip(shape, found[offset:])]):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(shape)} cannot be broadcast to indexing "
            f"result of shape {list(found)}"
        )
    return value


@public("method")
def __len__(self: Tensor) -> int:
    """The size of the first dimension; TypeError for a zero-dim tensor."""
    shape = self._storage.array.shape
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return shape[0]


@public("method")
def __iter__(self: Tensor) -> Any:
    """Iterate over the slices along the first dimension."""
    if not self._storage.array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind(self, 0))


@public("method")
def __contains__(self: Tensor, element: Any) -> bool:
    """Whether some element equals a number or Tensor."""
    if not isinstance(element, (Tensor, bool, int, float, complex)):
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )
    found = (self == element)._storage
    return bool(number_of(found.backend.F.any(found.array), found.backend))


@public("method")
def __delitem__(self: Tensor, index: Any) -> None:
    """Always TypeError: tensors do not shrink."""
    raise TypeError("Tensor does not support deleting items")
