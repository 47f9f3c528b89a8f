"""Rules of words that index.

With integer arrays in an index, NumPy puts their common dimensions where the first of them
stands if they are neighbours, else in front (NumPy's manual, "Combining advanced and basic
indexing"). The samples' axis of what is indexed, or of the index, is one more of these arrays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow_lite_clone.dispatch import kinds
from tensorflow_lite_clone.func.batching.rules import Word, _plain
from tensorflow_lite_clone.func.batching.words import rule

MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to "
    "batch over indexing with a boolean mask."
)


class Place(NamedTuple):
    """An index into base data, and how what it finds lies.

    `order` is the permutation that puts samples first and the sample's dimensions behind, or None
    if they lie so; `ndim` is the number of a sample's dimensions.
    """

    where: tuple
    order: tuple | None
    ndim: int
    varies: bool


def _is_array(entry: Any) -> bool:
    return hasattr(entry, "shape") and hasattr(entry, "dtype")


def place(B: Any, x: Any, index: Any) -> Place:
    """The place in x's data of an index into every sample."""
    x_varies = B.is_batched(x)
    entries: list = []
    for entry in index if isinstance(index, tuple) else (index,):
        if isinstance(entry, list):
            entry = B.F.asarray(entry)
        if _is_array(entry) and entry.dtype.kind == "b":
            if B.is_batched(entry):
                raise RuntimeError(MASK)
            if B.has_values:
                entries += B.base.F.nonzero(_plain(B, entry))
            else:  # it is written at, and taken to find nothing
                entries += [B.base.F.zeros((0,), dtype=B.base.F.int64)] * entry.ndim
        else:
            entries.append(entry)
    used = sum([entry is not None and entry is not Ellipsis for entry in entries])
    rest = x.ndim - used
    arrays = [entry for entry in entries if _is_array(entry)]
    sliced = sum([entry is None or isinstance(entry, slice) for entry in entries]) + rest
    if not arrays:
        behind = (slice(None), *entries) if x_varies else tuple(entries)
        return Place(behind, None, sliced, x_varies)
    width = max([entry.ndim for entry in arrays])
    ndim = sliced + width
    varies = any(map(B.is_batched, arrays))
    advanced = [
        number for number, entry in enumerate(entries) if _is_array(entry) or isinstance(entry, int)
    ]
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    before = 0
    if together:
        for entry in entries[: advanced[0]]:
            before += rest if entry is Ellipsis else 1
    found: list = []
    for entry in entries:
        if _is_array(entry) and varies:
            entry = B.aligned((entry,), width)[0]
        found.append(_plain(B, entry))
    if not varies:
        if not x_varies:
            return Place(tuple(found), None, ndim, False)
        order: tuple | None = None
        if not together:
            order = (width, *range(width), *range(width + 1, ndim + 1))
        return Place((slice(None), *found), order, ndim, True)
    order = None
    if x_varies:
        F = B.base.F
        numbers = F.reshape(F.arange(B.size), (B.size, *(1,) * width))
        found.insert(0, numbers)
        if before:
            moved = range(1 + width, 1 + width + before)
            order = (0, *moved, *range(1, 1 + width), *range(1 + width + before, ndim + 1))
    elif before:
        order = (before, *range(before), *range(before + 1, ndim + 1))
    return Place(tuple(found), order, ndim, True)


@rule(kinds.indexing)
def getitem(B: Any, word: Word, x: Any, index: Any) -> Any:
    """``x[index]`` for every sample."""
    found = place(B, x, index)
    made = word(_plain(B, x), found.where)
    if found.order is not None:
        made = B.base.F.permute_dims(made, found.order)
    return B.make(made, not found.varies)


@rule("write_at")
def write_at(B: Any, word: Word, x: Any, index: Any, value: Any) -> None:
    """``x[index] = value`` in every sample; with a mask of each sample's own, of one number."""
    mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    masked = _is_array(mask) and mask.dtype.kind == "b"
    if not masked or (mask.ndim and not B.is_batched(mask)):
        write(B, word, x, index, value)
        return
    if getattr(value, "ndim", 0):
        raise RuntimeError(MASK)
    F = B.F
    mask = F.reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    B.write(x.spread(), F.where(mask, value, x))


@rule(kinds.scatter)
def write(B: Any, word: Word, x: Any, index: Any, value: Any, **parameters: Any) -> None:
    """``x[index] += value`` and the like in every sample."""
    if x.shared and (B.is_batched(value) or place(B, x, index).varies):
        x.spread()
    found = place(B, x, index)
    value = B.aligned((value,), found.ndim)[0] if _is_array(value) else value
    if found.order is not None and _is_array(value):
        ones = (1,) * (found.ndim + 1 - value.ndim)
        value = B.base.F.reshape(value, (*ones, *value.shape))
        back = sorted(range(len(found.order)), key=found.order.__getitem__)
        value = B.base.F.permute_dims(value, tuple(back))
    word(x.data, found.where, value, **parameters)


@rule("take")
def take(B: Any, word: Word, x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Slices along an axis."""
    if axis is None:
        axis = 0
    if B.is_batched(indices):
        return getitem(B, B.base.F.getitem, x, (*(slice(None),) * (axis % x.ndim), indices))
    axis = axis % x.ndim
    varies = B.is_batched(x)
    return B.make(word(_plain(B, x), _plain(B, indices), axis=axis + varies), not varies)
