"""Interleaved timing: callables in turns, so that a noisy machine disturbs all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping

Turn = Callable[[Callable[[], object], int], float]
PARTS = 16  # of a turn on a CPU, each timed by itself


def nothing() -> None:
    """What there is to wait for on a CPU."""


def seconds_per_call(
    function: Callable[[], object], calls: int, wait: Callable[[], object] = nothing
) -> float:
    """The mean time of `calls` calls in a row, and of waiting for what they queued."""
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (time.perf_counter() - start) / calls


def settle() -> None:
    """Return when the threads of this process rest, or after a third of a second.

    A BLAS has its threads turn in circles for up to 0.1 s after a product, in expectation of the
    next one, and they take the processor from whoever else has threads. The time that threads have
    used is known to 4 ms where the kernel ticks 250 times a second.
    """
    until = time.perf_counter() + 0.33
    while time.perf_counter() < until:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(0.01)
        if time.process_time() - used < 0.2 * (time.perf_counter() - start):
            return


def undisturbed(function: Callable[[], object], calls: int) -> float:
    """The usual time of a call on a CPU whose threads rest when it begins: a median of means.

    Of several calls the first does not count, which wakes threads and fills caches.
    """
    settle()
    if calls > 1:
        function()
    each = max(1, calls // PARTS)
    return statistics.median(seconds_per_call(function, each) for _ in range(0, calls, each))


def in_turns(
    calls: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    budget: float,
    turn: Turn = seconds_per_call,
) -> dict[str, list[float]]:
    """Seconds per call of each, a figure for every round.

    A round runs each for about `budget` seconds, forwards and backwards through their order in
    turn. They are to be warm.
    """
    counts = {}
    for name, function in calls.items():
        once = max(turn(function, 3), 1e-8)
        counts[name] = max(1, int(budget / once))
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for number in range(rounds):
        for name in list(calls)[:: -1 if number % 2 else 1]:
            times[name].append(turn(calls[name], counts[name]))
    return times
