"""``x[...]`` and ``x[...] = value``.

Integers, slices, None and Ellipsis give views; index tensors and masks give copies, and so do
slices with negative steps, which the array API standard has and PyTorch has not. As in PyTorch
the integers are taken first, so ``x[0, :, index]`` keeps the slice's dimension in front.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply, apply_view, current_edge, view_of
from tensorflow_lite_clone.autograd.inplace import apply_inplace, check_writable
from tensorflow_lite_clone.autograd.mode import mode
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.core.signature import expect_long
from tensorflow_lite_clone.core.standard import fits
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.ops._samples import expect_values
from tensorflow_lite_clone.ops.index._index_tensors import (
    check_mask,
    for_dimensions,
    nothing_read,
    stacked,
)
from tensorflow_lite_clone.ops.index._indexing import (
    Flip,
    Index,
    IndexAlong,
    IndexMask,
    IndexPut,
    MaskPut,
    result_shape,
)
from tensorflow_lite_clone.ops.index._parsing import (
    Parsed,
    as_tuple,
    out_of_bounds,
    parsed,
    step_of,
)
from tensorflow_lite_clone.ops.index.assign import copy_, fill_, held_value, write_value
from tensorflow_lite_clone.ops.pointwise._operands import as_number, cast
from tensorflow_lite_clone.ops.shape._views import number_of
from tensorflow_lite_clone.ops.shape.slices import Select, Slice, unbind_method
from tensorflow_lite_clone.ops.shape.views import reshape, unsqueeze
from tensorflow_lite_clone.tensor import Tensor

_active_hooks = hooks.around_op


@public("method")
def __getitem__(self: Tensor, index: Any) -> Tensor:
    """The part that `index` names: integers, slices, None, Ellipsis, index tensors, masks.

    Slices that run backwards give copies. Raises IndexError for what is out of bounds or no
    index.
    """
    op: type[Op] | None = None
    kind = type(index)
    if kind is int:
        op, items = Select, (index, ...)
        array = self._storage.array
        try:
            part = array[items]
        except (IndexError, OverflowError):
            expect_long("index", index)
            raise out_of_bounds(array.shape, (index,)) from None
    elif kind is slice:
        step = index.step
        array = self._storage.array
        if (step is None or step > 0) and array.ndim:
            op, items, part = Slice, index, array[index]
    elif kind is tuple and _is_basic(index):
        items = index if ... in index else (*index, ...)
        array = self._storage.array
        try:
            part = array[items]
        except IndexError:
            raise out_of_bounds(array.shape, index) from None
        op = Select if index and type(index[-1]) is int else Slice
    elif kind is Tensor:
        array, places = self._storage.array, index._storage.array
        if (
            index.dtype is int64
            and places.ndim
            and array.size
            and array.ndim
            and type(places) is type(array)
        ):
            try:
                return apply(IndexAlong, self, index, axis=0, shape=array.shape)
            except IndexError as error:
                return nothing_read(self, [(0, index)], error)
    elif index is None:
        return unsqueeze(self, 0)
    if op is not None:
        if _active_hooks:
            return apply_view(op, self, index=items, shape=array.shape)
        return view_of(op, self, part, {"index": items, "shape": array.shape})
    found = parsed(self, index)
    part = _basic_part(self, found)
    return _advanced(part, found.extra) if found.extra else part


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
            step_of(index)
        index = (index,) if kind is int or kind is slice else as_tuple(index)
    if not hooks.around_write and _is_basic(index) and not _recorded(self, value):
        array = storage.array
        try:
            part = array[index if ... in index else (*index, ...)]
        except IndexError:
            raise out_of_bounds(array.shape, index) from None
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
    found = parsed(self, index)
    if found.reversed:  # written the right way round, then turned back
        part = _basic_part(self, found)
        if found.extra:
            _put(part, found.extra, value)
        else:
            __setitem__(part, ..., value)
        forwards = apply_view(found.op, self, index=found.items, shape=storage.laid.shape)
        copy_(forwards, apply(Flip, part, axis=found.reversed))
    elif found.extra:
        _put(_basic_part(self, found), found.extra, value)
    elif isinstance(value, Tensor):
        part = apply_view(found.op, self, index=found.items, shape=storage.laid.shape)
        copy_(part, _without_leading_ones(value, part._storage.laid.ndim))
    else:
        part = apply_view(found.op, self, index=found.items, shape=storage.laid.shape)
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
    shape = value._storage.laid.shape
    if len(shape) <= ndim:
        return value
    first = next((place for place, size in enumerate(shape) if size != 1), len(shape))
    return reshape(value, shape[min(first, len(shape) - ndim) :])


def _basic_part(x: Tensor, found: Parsed) -> Tensor:
    if found.extra and found.items == (...,):
        return x
    part = apply_view(found.op, x, index=found.items, shape=x._storage.laid.shape)
    return apply(Flip, part, axis=found.reversed) if found.reversed else part


def _one_mask(x: Tensor, extra: list) -> Any:
    """The mask, if the index is but a mask of leading dimensions."""
    place, mask = extra[0]
    alike = mask._storage.backend.has_values is x._storage.backend.has_values
    if len(extra) == 1 and not place and mask.dtype.kind == "b" and mask.ndim and alike:
        shape = x._storage.laid.shape
        check_mask(shape, mask, 0, 0)
        if not mask._storage.laid.size:  # it may be shorter than x, and finds nothing
            return mask.new_zeros(shape[: mask.ndim])
        return mask
    return None


def _advanced(x: Tensor, extra: list) -> Tensor:
    shape = x._storage.laid.shape
    mask = _one_mask(x, extra)
    if mask is not None:
        expect_values("nonzero", mask)
        return apply(IndexMask, x, mask, shape=shape)
    place, only = extra[0]
    try:
        if (
            len(extra) == 1
            and only.dtype is int64
            and only._storage.laid.ndim == 1
            and shape[place]
        ):
            return apply(IndexAlong, x, only, axis=place, shape=shape)
        index, places = stacked(x, extra)
        return apply(Index, x, index, places=places, shape=shape)
    except IndexError as error:
        return nothing_read(x, extra, error)


def put_at(x: Tensor, index: Tensor, value: Tensor, places: tuple, accumulate: bool) -> Tensor:
    """Write (or add) `value` at a stacked index in place."""
    found = result_shape(x._storage.laid.shape, index._storage.laid.shape[1:], places)
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
    shape = x._storage.laid.shape
    mask = _one_mask(x, extra)
    if not isinstance(value, Tensor):
        source = held_value(x, value)
    else:
        one = value._storage.laid.size == 1 and len(extra) == 1 and extra[0][1].dtype.kind == "b"
        promotes = mask is not None and fits(value.dtype, x.dtype)  # the array API standard's way
        source = cast(value, x.dtype) if one or promotes else value
    if mask is not None:
        expect_dtype(x, source)
        if source.ndim:
            backend = mask._storage.backend
            rest = shape[mask.ndim :]
            if backend.has_values:
                count = number_of(backend.F.sum(mask._storage.array), backend)
                source = _fitting(source, (count, *rest))
            elif source.ndim > len(rest):  # the mask is taken to find nothing
                source = source[:0]
        apply_inplace(MaskPut, x, mask, source)
        return
    found, places = stacked(x, extra, writes=True)
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
    shape = value._storage.laid.shape
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
    shape = self._storage.laid.shape
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return shape[0]


@public("method")
def __iter__(self: Tensor) -> Any:
    """Iterate over the slices along the first dimension."""
    if not self._storage.laid.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(unbind_method(self, 0))


@public("method")
def __contains__(self: Tensor, element: Any) -> bool:
    """Whether some element equals a number or Tensor."""
    if not isinstance(element, Tensor) and as_number(element) is None:
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
