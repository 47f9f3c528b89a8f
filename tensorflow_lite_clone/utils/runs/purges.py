"""What purges leave out of a list of events."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any


class _LatestTimes:
    """The latest time of all purges at or below a step, as a Fenwick tree over the steps.

    Adding a purge and asking cost O(log n), so a file of nothing but purges is no burden.
    """

    def __init__(self, steps: Iterable[int]) -> None:
        self.steps = sorted(set(steps))
        self.tree = [-math.inf] * (len(self.steps) + 1)

    def add(self, step: int, time: float) -> None:
        place = bisect_right(self.steps, step)
        while place < len(self.tree):
            self.tree[place] = max(self.tree[place], time)
            place += place & -place

    def until(self, step: int) -> float:
        place, latest = bisect_right(self.steps, step), -math.inf
        while place:
            latest = max(latest, self.tree[place])
            place -= place & -place
        return latest


def without_purged(events: Sequence[Any], purges: Sequence[tuple[int, Any]]) -> list[Any]:
    """The events that no purge takes away.

    `purges` are pairs, in order, of the number of events that were read before a purge and the
    purge itself. It takes those of its run that have its step or a later one, unless they were
    written after it. Takes O((events + purges) log purges).
    """
    steps: dict[str, list[int]] = {}
    for _, purge in purges:
        steps.setdefault(purge.run, []).append(purge.step)
    latest = {run: _LatestTimes(known) for run, known in steps.items()}
    left = []
    waiting = list(purges)
    for number in range(len(events) - 1, -1, -1):
        while waiting and waiting[-1][0] > number:
            _, purge = waiting.pop()
            latest[purge.run].add(purge.step, purge.time)
        event = events[number]
        if event.run not in latest or latest[event.run].until(event.step) < event.time:
            left.append(event)
    return left[::-1]
