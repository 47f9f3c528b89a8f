"""Times and peaks of memory of a row, all contenders in one process and in turns."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

import tensorflow_lite_clone as tlc
from tests.bench.contenders import WARM, Contender
from tests.bench.ratios import ratios
from tests.bench.rows import Row
from tests.bench.timing import Turn, in_turns, seconds_per_call, undisturbed

BUDGET = 0.01  # seconds of each contender in a round


def measured(
    row: Row, contenders: Mapping[str, Contender], rounds: int, device: str = "cuda"
) -> dict[str, Any]:
    """Median microseconds and peak bytes by contender, and why some have none.

    On the CPU, where no allocator counts, there are no peaks. `ratios` are the medians of those
    that ours has to PyTorch's eager time in each round.
    """
    prepared, turn = ON[device]
    calls: dict[str, Callable[[], Any]] = {}
    peaks: dict[str, int] = {}
    failures: dict[str, str] = {}
    for name, contender in contenders.items():
        if not contender.applies(row):
            continue
        try:
            calls[name], peak = prepared(row, contender)
            if peak is not None:
                peaks[name] = peak
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}"[:300]
    times = in_turns(calls, rounds=rounds, budget=BUDGET, turn=turn)
    calls.clear()
    release()
    return {
        "times": {n: round(statistics.median(each) * 1e6, 3) for n, each in times.items()},
        "spread": {n: [round(f(each) * 1e6, 3) for f in (min, max)] for n, each in times.items()},
        "ratios": ratios(times),
        "peaks": peaks,
        "failures": failures,
    }


def warm(row: Row, contender: Contender) -> tuple[Callable[[], Any], None]:
    """A warm callable on the CPU."""
    call = contender.make(row)
    for _ in range(WARM):
        call()
    return call, None


def warm_on_gpu(row: Row, contender: Contender) -> tuple[Callable[[], Any], int]:
    """A warm callable, and the most memory that it took to make it and to call it."""
    release()
    memory = contender.lib.cuda
    before = memory.memory_allocated()
    call = contender.make(row)
    for _ in range(WARM):
        call()
    torch.cuda.synchronize()
    return call, memory.max_memory_allocated() - before


ON: dict[str, tuple[Callable[[Row, Contender], tuple[Callable, int | None]], Turn]] = {
    "cpu": (warm, undisturbed),
    "cuda": (warm_on_gpu, partial(seconds_per_call, wait=torch.cuda.synchronize)),
}


def costs(row: Row) -> tuple[float, float]:
    """Operations and bytes: of a step as its ops need them, one by one; else the row's own."""
    if not row.is_step:
        return row.flops, row.bytes
    step, arguments = row.work(tlc)
    step(*arguments)
    with tlc.profiler.profile(with_flops=True) as profiled:
        step(*arguments)
    events = profiled.events()
    return sum(event.flops for event in events), sum(event.bytes for event in events)


def release() -> None:
    """Give back what earlier contenders held."""
    gc.collect()
    for lib in (tlc, torch):
        lib.cuda.empty_cache()
