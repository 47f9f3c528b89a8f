"""Arithmetic of sliding windows: convolutions, pools and patches, without arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from tensorflow_lite_clone.core.signature import expect_longs, is_int, whole_number

Ints = tuple[int, ...]


def int_tuple(value: Any, count: int, function: str, argument: str) -> Ints | None:
    """`value`, an int or a sequence of one or `count` ints, as a tuple of `count` ints.

    None when the length is another one; TypeError when something is no int, or an entry has more
    than 64 bits; ValueError for one int that has.
    """
    what = f"{function}(): argument '{argument}'"
    if type(value) is int or (is_int(value) and not getattr(value, "shape", ())):
        return (whole_number(what, value),) * count
    try:
        values = tuple([item if type(item) is int else whole_number(what, item) for item in value])
    except TypeError:
        raise TypeError(f"{what} must be tuple of ints, not {type(value).__name__}") from None
    expect_longs(what, values)
    if len(values) == count:
        return values
    return values * count if len(values) == 1 else None


def extent(kernel: int, dilation: int) -> int:
    """How many elements a window spans."""
    return dilation * (kernel - 1) + 1


def windows_size(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Ints:
    """How many whole windows fit along each axis."""
    return tuple(
        [
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(size, kernel, stride, padding, dilation)
        ]
    )


def pooled_size(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> Ints:
    """`windows_size`, where `ceil_mode` admits a last window that reaches past the end.

    It must start inside the input or its left padding.
    """
    counts = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation):
        room = n + 2 * p - d * (k - 1) - 1
        count = (room + s - 1 if ceil_mode else room) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        counts.append(count)
    return tuple(counts)


def padded_size(
    count: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Ints:
    """How long an axis must be for `count` windows to fit."""
    return tuple(
        [(c - 1) * s + d * (k - 1) + 1 for c, k, s, d in zip(count, kernel, stride, dilation)]
    )


def window_slices(
    kernel: Sequence[int],
    count: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> Iterator[tuple[Ints, tuple[slice, ...]]]:
    """Per place in the window: the place, and the slices that take it from every window."""
    for place in product(*map(range, kernel)):
        yield (
            place,
            tuple(
                [
                    slice(i * d, i * d + (c - 1) * s + 1, s)
                    for i, c, s, d in zip(place, count, stride, dilation)
                ]
            ),
        )
