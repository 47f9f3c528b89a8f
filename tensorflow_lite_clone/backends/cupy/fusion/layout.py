"""How a pointwise kernel walks through its arrays: axes in the order of memory, merged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Walk(NamedTuple):
    """The result, and the axes that are left when neighbours are merged, the innermost first."""

    shape: tuple[int, ...]  # of the result
    strides: tuple[int, ...]  # of a new result, in bytes of an element of one byte
    elements: int
    sizes: tuple[int, ...]  # of the merged axes
    steps: tuple[tuple[int, ...], ...]  # per array and merged axis, in elements

    @property
    def flat(self) -> bool:
        """Whether every array is one run of elements, or one element."""
        return len(self.sizes) == 1 and all([step[0] in (0, 1) for step in self.steps])


def _order(shape: tuple[int, ...], strides: list[tuple[int, ...]]) -> list[int]:
    """The axes from the outermost to the innermost in the memory of the operands.

    The first operand that tells two axes apart decides; where none does they stay in order.
    """

    def compare(left: int, right: int) -> int:
        for steps in strides:
            a, b = abs(steps[left]), abs(steps[right])
            if a and b and a != b:
                return -1 if a > b else 1
        return left - right

    axes = list(range(len(shape)))
    # Insertion, as the comparison need not be transitive.
    for end in range(1, len(axes)):
        place = end
        while place and compare(axes[place - 1], axes[place]) > 0:
            axes[place - 1], axes[place] = axes[place], axes[place - 1]
            place -= 1
    return axes


def _broadcast(shape: tuple, strides: tuple, wanted: tuple) -> tuple[int, ...]:
    """Strides over the axes of `wanted`: 0 where the array has one element or no axis."""
    own = [step if size != 1 else 0 for size, step in zip(shape, strides)]
    return (0,) * (len(wanted) - len(shape)) + tuple(own)


def walk_into(
    shapes: list[tuple[int, ...]],
    strides: list[tuple[int, ...]],
    shape: tuple[int, ...],
    results: list[tuple[int, ...]],
) -> Walk:
    """The walk over operands and arrays of one `shape` that are there, with strides `results`."""
    spread = [_broadcast(own, steps, shape) for own, steps in zip(shapes, strides)]
    return _merged(shape, _order(shape, results), [*spread, *results], results[0])


def walk(
    shapes: list[tuple[int, ...]],
    strides: list[tuple[int, ...]],
    results: int,
    out: tuple[tuple, tuple] | None = None,
    leader: int = 0,
) -> Walk:
    """The walk over operands of these shapes and strides (in elements) and `results` new arrays.

    New arrays lie in memory as the operands do, where these differ as the one at `leader`. With
    `out`, the shape and strides of an array that is there, the one result is written into it.
    Raises ValueError where shapes do not broadcast.
    """
    shape = shapes[0]
    if any([other != shape for other in shapes]):
        shape = np.broadcast_shapes(*shapes)
    spread = [_broadcast(own, steps, shape) for own, steps in zip(shapes, strides)]
    made = [0] * len(shape)
    if out is None:
        order, expected = _order(shape, spread[leader:] + spread[:leader]), 1
        for axis in reversed(order):
            made[axis] = expected
            expected *= max(shape[axis], 1)
    else:
        made = list(out[1])
        order = _order(shape, [tuple(made)])
    spread += [tuple(made)] * results
    return _merged(shape, order, spread, tuple(made))


def _merged(shape: tuple, order: list[int], spread: list[tuple], made: tuple) -> Walk:
    """Neighbouring axes as one wherever arrays go on evenly; `made` are the result's strides."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in spread]
    for axis in reversed(order):
        size = shape[axis]
        if size == 1:
            continue
        if sizes and all([own[axis] == mine[-1] * sizes[-1] for own, mine in zip(spread, steps)]):
            sizes[-1] *= size
            continue
        sizes.append(size)
        for own, mine in zip(spread, steps):
            mine.append(own[axis])
    if not sizes:  # one element
        sizes, steps = [1], [[1] for _ in spread]
    count = 1
    for size in shape:
        count *= size
    return Walk(shape, made, count, tuple(sizes), tuple(map(tuple, steps)))


def width(walked: Walk, itemsizes: list[int]) -> int:
    """How many elements a thread takes at once, if all arrays are aligned to 16 bytes."""
    most = min(8, 16 // min(itemsizes))
    if walked.flat:
        return most
    inner = [step[0] for step in walked.steps]
    if any([step not in (0, 1) for step in inner]):
        return 1
    while most > 1 and (
        walked.sizes[0] % most
        or any([outer % most for step in walked.steps if step[0] for outer in step[1:]])
    ):
        most //= 2
    return most


def reach(walked: Walk) -> int:
    """The largest offset, in elements, or number of elements."""
    spans: list[Any] = [
        sum([(size - 1) * abs(step) for size, step in zip(walked.sizes, steps)])
        for steps in walked.steps
    ]
    return max(walked.elements, *spans)
