"""Rules of words that move elements: views, joins, repetitions."""

from __future__ import annotations

from math import prod
from typing import Any

from tensorflow_lite_clone.func.batching.rules import Word, _plain
from tensorflow_lite_clone.func.batching.words import rule


@rule("reshape")
def reshape(B: Any, word: Word, x: Any, /, shape: Any, **parameters: Any) -> Any:
    """The samples' axis stays; -1 is counted among the elements of one."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), shape, **parameters), True)
    sizes = list((shape,) if isinstance(shape, int) else shape)
    if -1 in sizes:
        known = -prod(sizes)
        sizes[sizes.index(-1)] = x.size // known if known else 0
    return B.make(word(x.data, (B.size, *sizes), **parameters), False)


@rule("permute_dims")
def permute_dims(B: Any, word: Word, x: Any, /, axes: Any) -> Any:
    """Behind the samples' axis."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axes), True)
    return B.make(word(x.data, (0, *[a % x.ndim + 1 for a in axes])), False)


@rule("moveaxis")
def moveaxis(B: Any, word: Word, x: Any, source: Any, destination: Any, /) -> Any:
    """Behind the samples' axis."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), source, destination), True)
    return B.make(word(x.data, _behind(source, x.ndim), _behind(destination, x.ndim)), False)


def _behind(axes: Any, ndim: int) -> Any:
    """Axes of a sample as those behind the samples' axis."""
    if isinstance(axes, int):
        return axes % ndim + 1
    return tuple([axis % ndim + 1 for axis in axes])


@rule("expand_dims")
def expand_dims(B: Any, word: Word, x: Any, /, *, axis: int = 0) -> Any:
    """Counted from the front or the end of a sample."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axis=axis), True)
    return B.make(word(x.data, axis=axis % (x.ndim + 1) + 1), False)


@rule("squeeze")
def squeeze(B: Any, word: Word, x: Any, /, axis: Any) -> Any:
    """Counted from the front or the end of a sample."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axis=axis), True)
    if not x.ndim:
        return x
    return B.make(word(x.data, axis=_behind(axis, x.ndim)), False)


@rule("matrix_transpose", "tril", "triu")
def of_last_axes(B: Any, word: Word, x: Any, /, **parameters: Any) -> Any:
    """Of the last two axes."""
    return B.make(word(_plain(B, x), **parameters), not B.is_batched(x))


@rule("flip")
def flip(B: Any, word: Word, x: Any, /, *, axis: Any = None) -> Any:
    """Along the sample's axes."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axis=axis), True)
    axes = tuple(range(x.ndim)) if axis is None else axis
    return B.make(word(x.data, axis=_behind(axes, x.ndim)), False)


@rule("roll")
def roll(B: Any, word: Word, x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Along axes, or along the flattened sample."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), shift, axis=axis), True)
    if axis is not None:
        return B.make(word(x.data, shift, axis=_behind(axis, x.ndim)), False)
    F = B.base.F
    rolled = word(F.reshape(x.data, (B.size, x.size)), shift, axis=1)
    return B.make(F.reshape(rolled, x.data.shape), False)


@rule("repeat")
def repeat(B: Any, word: Word, x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Along an axis, or along the flattened sample; the counts are the same for all samples."""
    if B.is_batched(repeats):
        raise RuntimeError(dynamic("repeat_interleave"))
    counts = _plain(B, repeats)
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), counts, axis=axis), True)
    if axis is None:
        return B.make(word(B.base.F.reshape(x.data, (B.size, x.size)), counts, axis=1), False)
    return B.make(word(x.data, counts, axis=axis % x.ndim + 1), False)


@rule("tile")
def tile(B: Any, word: Word, x: Any, repetitions: Any, /) -> Any:
    """Along the sample's last axes, and new ones before them."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), repetitions), True)
    counts = tuple(repetitions)
    counts = (1,) * (x.ndim - len(counts)) + counts
    data = B.aligned((x,), len(counts))[0]
    return B.make(word(data, (1, *counts)), False)


@rule("broadcast_to")
def broadcast_to(B: Any, word: Word, x: Any, shape: Any) -> Any:
    """A sample's shape."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), shape), True)
    return B.make(word(B.aligned((x,), len(shape))[0], (B.size, *shape)), False)


@rule("concat")
def concat(B: Any, word: Word, arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Along an axis, or all flattened."""
    if not any(map(B.is_batched, arrays)):
        return B.make(word([_plain(B, x) for x in arrays], axis=axis), True)
    rows = [B.rows(x) for x in arrays]
    if axis is None:
        rows = [B.base.F.reshape(row, (B.size, x.size)) for row, x in zip(rows, arrays)]
        return B.make(word(rows, axis=1), False)
    return B.make(word(rows, axis=axis % arrays[0].ndim + 1), False)


@rule("stack")
def stack(B: Any, word: Word, arrays: Any, /, *, axis: int = 0) -> Any:
    """Along a new axis of the sample."""
    if not any(map(B.is_batched, arrays)):
        return B.make(word([_plain(B, x) for x in arrays], axis=axis), True)
    ndim = arrays[0].ndim + 1
    return B.make(word([B.rows(x) for x in arrays], axis=axis % ndim + 1), False)


@rule("unstack")
def unstack(B: Any, word: Word, x: Any, /, *, axis: int = 0) -> Any:
    """The slices along an axis of the sample."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), axis=axis), True)
    return B.make(word(x.data, axis=axis % x.ndim + 1), False)


@rule("diff")
def diff(B: Any, word: Word, x: Any, /, *, axis: int = -1, **parameters: Any) -> Any:
    """Along an axis counted from the end."""
    axis = axis - x.ndim if axis >= 0 else axis
    for name in ("prepend", "append"):
        if parameters.get(name) is not None:
            parameters[name] = B.rows(parameters[name])
            x = B.make(B.rows(x), False)
    return B.make(word(_plain(B, x), axis=axis, **parameters), not B.is_batched(x))


@rule("as_strided")
def as_strided(B: Any, word: Word, x: Any, shape: Any, strides: Any, offset: int = 0) -> Any:
    """A view of each sample's memory."""
    if not B.is_batched(x):
        return B.make(word(_plain(B, x), shape, strides, offset), True)
    step = B.base.strides(x.data)[0]
    return B.make(word(x.data, (B.size, *shape), (step, *strides), offset), False)


def dynamic(name: str) -> str:
    """The message for what has results of different shapes for different samples."""
    return (
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to "
        f"vmap over aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues"
        " if you need this feature."
    )


@rule("nonzero")
def nonzero(B: Any, word: Word, x: Any, /) -> Any:
    """RuntimeError: how many elements the result has depends on the sample."""
    return _of_any_size(B, word, x, "nonzero")


@rule("unique_all", "unique_counts", "unique_inverse", "unique_values")
def unique(B: Any, word: Word, x: Any, /) -> Any:
    """RuntimeError: how many elements the result has depends on the sample."""
    return _of_any_size(B, word, x, "_unique2")


def _of_any_size(B: Any, word: Word, x: Any, name: str) -> Any:
    if B.is_batched(x):
        raise RuntimeError(dynamic(name))
    return B.make(word(_plain(B, x)), True)
