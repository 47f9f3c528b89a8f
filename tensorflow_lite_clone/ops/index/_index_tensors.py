"""Index tensors and masks made into one index array, and what is wrong with them."""

from __future__ import annotations

import warnings
from math import prod

from tensorflow_lite_clone.autograd.apply import apply, apply_view, wrap
from tensorflow_lite_clone.core.dtypes import int64
from tensorflow_lite_clone.core.errors import level_outside
from tensorflow_lite_clone.core.shape import broadcast_shapes
from tensorflow_lite_clone.dispatch import hooks
from tensorflow_lite_clone.ops._samples import expect_values
from tensorflow_lite_clone.ops.index._indexing import Index, on_one_backend, result_shape
from tensorflow_lite_clone.ops.index._parsing import is_mask
from tensorflow_lite_clone.ops.pointwise._operands import cast
from tensorflow_lite_clone.ops.shape.join import Stack
from tensorflow_lite_clone.ops.shape.views import Expand
from tensorflow_lite_clone.tensor import Tensor


def for_dimensions(error: IndexError) -> IndexError:
    """An array's IndexError in torch's words."""
    if "empty" in str(error):
        return IndexError("index is out of bounds for dimension with size 0")
    return IndexError(str(error).replace("axis", "dimension"))


def check_mask(shape: tuple, mask: Tensor, place: int, number: int) -> None:
    have = mask._storage.laid.shape
    for offset, size in enumerate(have):
        if size and size != shape[place + offset]:
            raise IndexError(
                f"The shape of the mask {list(have)} at index {offset} does not match the shape "
                f"of the indexed tensor {list(shape)} at index {place + offset}"
            )


def stacked(x: Tensor, extra: list, writes: bool = False) -> tuple[Tensor, tuple]:
    """Index tensors and masks as one stacked index and the dimensions where it looks.

    A mask without values cannot be read at; where it `writes` it is taken to find nothing.
    """
    shape = x._storage.laid.shape
    if not x._storage.backend.has_values:
        extra = _with_masks_read(shape, extra)
    extra, backend = on_one_backend(x, extra)
    if hooks.around_op and not backend.batched and not any([is_mask(item) for _, item in extra]):
        return _stacked_by_ops(extra), tuple([place for place, _ in extra])
    F = backend.F
    arrays: list = []
    places: list = []
    for place, item in extra:
        array = item._storage.array
        if is_mask(item):
            if item.dtype.kind == "u":
                warnings.warn(
                    "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                    "torch.bool instead.",
                    stacklevel=level_outside(),
                )
            check_mask(shape, item, place, len(arrays))
            if backend.has_values:
                arrays.extend(F.nonzero(array))
            else:
                if not writes:
                    expect_values("nonzero", item)
                arrays.extend([F.zeros((0,), dtype=F.int64)] * array.ndim)
            places.extend(range(place, place + array.ndim))
        elif item.dtype.kind in "iu":
            arrays.append(array)
            places.append(place)
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    if len(arrays) == 1:
        _check_empty(shape, places, arrays[0].size)
        index = F.reshape(F.astype(arrays[0], F.int64), (1, *arrays[0].shape))
        _, first = extra[0]
        if first.dtype is int64:  # a later write into the index must be noticed
            view = wrap(index, backend)
            view._storage.root = first._storage.root or first._storage
            return view, tuple(places)
        return wrap(index, backend), tuple(places)
    try:
        common = broadcast_shapes(*[array.shape for array in arrays])
    except RuntimeError:
        shapes = ", ".join([str(list(array.shape)) for array in arrays])
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from None
    _check_empty(shape, places, prod(common))
    spread = [F.broadcast_to(F.astype(array, F.int64), common) for array in arrays]
    return wrap(F.stack(spread, axis=0), backend), tuple(places)


def _with_masks_read(shape: tuple, extra: list) -> list:
    """Index tensors and masks with those masks as indices that have values."""
    found: list = []
    for place, item in extra:
        backend = item._storage.backend
        if is_mask(item) and backend.has_values:
            check_mask(shape, item, place, len(found))
            lines = backend.F.nonzero(item._storage.array)
            found += [(place + dim, wrap(line, backend)) for dim, line in enumerate(lines)]
        else:
            found.append((place, item))
    return found


def _stacked_by_ops(extra: list) -> Tensor:
    """Index tensors as one stacked index, by ops that hooks see."""
    tensors = [cast(item, int64) for _, item in extra]
    common = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return apply(Stack, *[apply_view(Expand, x, shape=common) for x in tensors], axis=0)


def _check_empty(shape: tuple, places: list, count: int) -> None:
    """Raise IndexError when something is looked for where there is nothing."""
    if count and any([not shape[place] for place in places]):
        raise IndexError("index is out of bounds for dimension with size 0")


def nothing_read(x: Tensor, extra: list, error: IndexError) -> Tensor:
    """What an index with places out of bounds reads if that has no elements; else the error.

    PyTorch looks at an index where it reads.
    """
    index, places = stacked(x, extra)
    shape = x._storage.laid.shape
    array, backend = index._storage.array, index._storage.backend
    if 0 not in result_shape(shape, array.shape[1:], places):
        raise for_dimensions(error) from None
    start = wrap(backend.F.zeros_like(array), backend)
    return apply(Index, x, start, places=places, shape=shape)
