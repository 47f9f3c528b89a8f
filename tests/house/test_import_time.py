"""Importing the package costs little more than importing NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tools.markdown import ROOT

PROBE = """
import sys, time
start = time.perf_counter(), time.process_time()
__import__(sys.argv[1])
print(time.perf_counter() - start[0], time.process_time() - start[1])
"""
FACTOR, EXTRA = 1.5, 0.050  # seconds
ROUNDS = 15


def import_seconds(module: str, cache: Path) -> tuple[float, float]:
    """The time one import takes in a fresh process, and the processor's alone, without waits.

    The bytecode is kept in `cache`. An installed package has its own; a checkout may have none, or
    be told to write none.
    """
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", PROBE, module]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    elapsed, processor = map(float, done.stdout.split())
    return elapsed, processor


def median(values: Sequence[float]) -> float:
    """The middle value of an odd number of values."""
    return sorted(values)[len(values) // 2]


def within(numpy: Sequence[float], ours: Sequence[float]) -> bool:
    """Whether the medians, or else the best times, of two interleaved series keep the limit.

    Noise only ever adds time, so on a busy machine the best times still tell the truth.
    """
    return any(choose(ours) <= FACTOR * choose(numpy) + EXTRA for choose in (median, min))


def test_import_time(tmp_path: Path) -> None:
    numpy: list[tuple[float, float]] = []
    ours: list[tuple[float, float]] = []
    import_seconds("tensorflow_lite_clone", tmp_path)  # compiles all, NumPy too
    for count in range(ROUNDS):
        numpy.append(import_seconds("numpy", tmp_path))
        ours.append(import_seconds("tensorflow_lite_clone", tmp_path))
        # Five rounds are enough when they agree; more are taken only in doubt.
        # A slow disk counts many small files more than a few large ones: that is not our time.
        series = zip(zip(*numpy), zip(*ours))
        if count >= 4 and count % 2 == 0 and any([within(*pair) for pair in series]):
            return
    raise AssertionError(f"numpy {sorted(numpy)}, tensorflow_lite_clone {sorted(ours)}")


def test_a_slow_import_is_noticed() -> None:
    assert within([0.1, 0.1, 0.1], [0.2, 0.2, 0.2])
    assert within([0.1, 0.1, 0.1], [0.9, 0.9, 0.2])
    assert not within([0.1, 0.5, 0.1], [0.3, 0.3, 0.3])


COLLECTOR = """
import gc, sys
if "off" in sys.argv:
    gc.disable()
if "frozen" in sys.argv:
    gc.freeze()
before = gc.isenabled(), gc.get_freeze_count() > 0
import tensorflow_lite_clone
assert (gc.isenabled(), gc.get_freeze_count() > 0) == before
"""


@pytest.mark.parametrize("state", ["on", "off", "frozen"])
def test_an_import_leaves_the_garbage_collector_as_it_was(state: str) -> None:
    subprocess.run([sys.executable, "-c", COLLECTOR, state], cwd=ROOT, check=True)
