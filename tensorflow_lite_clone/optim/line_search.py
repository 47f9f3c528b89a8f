"""A line search for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_SUFFICIENT_DECREASE = 1e-4
_CURVATURE = 0.9
_LEAST_CHANGE = 1e-9


class Point(NamedTuple):
    """A point on the line: step length, loss, gradient (a vector), its part along the line."""

    length: Any
    value: float
    gradient: Any
    slope: Any


def strong_wolfe(
    probe: Callable[[Any], Point], start: Point, length: Any, largest: Any, most: int
) -> tuple[Point, int]:
    """A point where the loss has decreased enough and is flat enough; and the number of probes.

    `length` is the first one to try, and `most` how many others are tried; `largest` is the largest
    entry of the direction. Source: Nocedal and Wright, "Numerical optimization" (2006), algorithms
    3.5 and 3.6, with the safeguards of Schmidt's `minFunc`.
    """

    def too_high(point: Point) -> bool:
        limit = start.value + _SUFFICIENT_DECREASE * point.length * start.slope
        return bool(point.value > limit)

    def flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -_CURVATURE * start.slope)

    before, here = start, probe(length)
    bracket, steps = None, 0
    while steps < most:
        if too_high(here) or (steps > 1 and here.value >= before.value):
            bracket = [before, here]
            break
        if flat(here):
            return here, steps + 1
        if here.slope >= 0:
            bracket = [before, here]
            break
        bounds = here.length + 0.01 * (here.length - before.length), here.length * 10
        before, here = here, probe(_cubic_minimum(before, here, bounds))
        steps += 1
    if bracket is None:
        bracket = [start, here]
    return _zoom(probe, bracket, too_high, flat, largest, steps, most)


def _zoom(
    probe: Callable[[Any], Point],
    bracket: list[Point],
    too_high: Callable[[Point], bool],
    flat: Callable[[Point], bool],
    largest: Any,
    steps: int,
    most: int,
) -> tuple[Point, int]:
    """Narrow the bracket down to a point that will do."""
    place = _lower(bracket)
    stalled = False
    while steps < most:
        low, high = bracket[place], bracket[1 - place]
        left, right = (low, high) if low.length < high.length else (high, low)
        if abs(high.length - low.length) * largest < _LEAST_CHANGE:
            break
        length = _cubic_minimum(left, right, (left.length, right.length))
        # Close to an end twice, or at it: a tenth of the bracket away from that end.
        margin = 0.1 * (right.length - left.length)
        close = min(right.length - length, length - left.length) < margin
        if close and (stalled or length >= right.length or length <= left.length):
            nearer_right = abs(length - right.length) < abs(length - left.length)
            length = right.length - margin if nearer_right else left.length + margin
            close = False
        stalled = close
        here = probe(length)
        steps += 1
        if too_high(here) or here.value >= low.value:
            bracket[1 - place] = here
            place = _lower(bracket)
            continue
        if flat(here):
            return here, steps + 1
        if here.slope * (high.length - low.length) >= 0:
            bracket[1 - place] = low
        bracket[place] = here
    return bracket[place], steps + 1


def _lower(bracket: list[Point]) -> int:
    return 0 if bracket[0].value <= bracket[1].value else 1


def _cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any]) -> Any:
    """Where the cubic through two points with their slopes is smallest within the bounds.

    Nocedal and Wright, equation 3.59; the middle of the bounds if it has no minimum.
    """
    low, high = bounds
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.length - b.length)
    square = d1 * d1 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2
    d2 = math.sqrt(square) if isinstance(square, float) else square.sqrt()
    if a.length > b.length:
        a, b = b, a
    share = (b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2)
    return min(max(b.length - (b.length - a.length) * share, low), high)
