"""Interleaved timing: callables in turns, so that a noisy machine disturbs all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping


def nothing() -> None:
    """What there is to wait for on a CPU."""


def settle() -> None:
    """Return when the threads of this process rest, or after a third of a second.

    A BLAS has its threads turn in circles for up to 0.1 s after a product, in expectation of the
    next one, and they take the processor from whoever else has threads.
    """
    until = time.perf_counter() + 0.33
    while time.perf_counter() < until:
        start, used = time.perf_counter(), time.process_time()
        time.sleep(0.002)
        if time.process_time() - used < 0.2 * (time.perf_counter() - start):
            return


def seconds_per_call(
    function: Callable[[], object], calls: int, wait: Callable[[], object] = nothing
) -> float:
    """The mean time of `calls` calls in a row, and of waiting for what they queued."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (time.perf_counter() - start) / calls


def in_turns(
    calls: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    budget: float,
    wait: Callable[[], object] = nothing,
    settle: Callable[[], object] = nothing,
) -> dict[str, list[float]]:
    """Seconds per call of each, a figure for every round.

    A round runs each for about `budget` seconds, forwards and backwards through their order in
    turn. They are to be warm. `settle` is called before each turn; of several calls in a turn the
    first then does not count.
    """
    counts = {}
    for name, function in calls.items():
        wait()
        settle()
        once = max(seconds_per_call(function, 3, wait), 1e-8)
        counts[name] = max(1, int(budget / once))
    times: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    for number in range(rounds):
        for name in list(calls)[:: -1 if number % 2 else 1]:
            settle()
            if settle is not nothing and counts[name] > 1:
                calls[name]()
            times[name].append(seconds_per_call(calls[name], counts[name], wait))
    return times


def interleaved(
    ours: Callable[[], object],
    theirs: Callable[[], object],
    *,
    rounds: int = 15,
    budget: float = 0.02,
    wait: Callable[[], object] = nothing,
) -> tuple[float, float, float]:
    """Median seconds per call of both, and the median of the per-round ratios ours / theirs."""
    for function in (ours, theirs):
        for _ in range(3):  # compile, capture, fill caches
            function()
    times = in_turns({"ours": ours, "theirs": theirs}, rounds=rounds, budget=budget, wait=wait)
    return (
        statistics.median(times["ours"]),
        statistics.median(times["theirs"]),
        statistics.median(a / b for a, b in zip(times["ours"], times["theirs"], strict=True)),
    )
