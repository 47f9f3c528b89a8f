"""Interleaved timing: two callables in turns, so that a noisy machine disturbs both alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable


def nothing() -> None:
    """What there is to wait for on a CPU."""


def seconds_per_call(
    function: Callable[[], object], calls: int, wait: Callable[[], object] = nothing
) -> float:
    """The mean time of `calls` calls in a row, and of waiting for what they queued."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (time.perf_counter() - start) / calls


def interleaved(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int = 15,
    budget: float = 0.02,
    wait: Callable[[], object] = nothing,
) -> tuple[float, float, float]:
    """Median seconds per call of both, and the median of the per-round ratios ours / theirs.

    Every round runs each side for about `budget` seconds; the side that begins alternates.
    """
    calls = []
    for function in (ours, theirs):
        for _ in range(3):  # compile, capture, fill caches
            function()
        wait()
        once = max(seconds_per_call(function, 3, wait), 1e-8)
        calls.append(max(1, int(budget / once)))
    pairs = []
    gc.collect()
    for number in range(rounds):
        sides = [(ours, calls[0]), (theirs, calls[1])]
        if number % 2:
            sides.reverse()
        times = [seconds_per_call(function, count, wait) for function, count in sides]
        if number % 2:
            times.reverse()
        pairs.append(times)
    return (
        statistics.median(pair[0] for pair in pairs),
        statistics.median(pair[1] for pair in pairs),
        statistics.median(pair[0] / pair[1] for pair in pairs),
    )
