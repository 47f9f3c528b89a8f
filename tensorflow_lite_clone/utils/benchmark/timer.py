"""`Timer`: how long a statement takes, with a number of threads."""

from __future__ import annotations

import contextlib
import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable, Iterator
from typing import Any

from tensorflow_lite_clone.ops.settings import get_num_threads, set_num_threads
from tensorflow_lite_clone.utils.benchmark.measurement import Measurement, TaskSpec

# The loop around a statement may take this part of the time of a block of runs.
OVERHEAD = 1e-4
# A block of runs takes at least this part of the whole time.
BLOCK = 1e-3


def timer() -> float:
    """The clock, in seconds. Work on a GPU is waited for by `torch.cuda.synchronize` in the
    statement."""
    return timeit.default_timer()


class Language(enum.Enum):
    """What a statement is written in: Python only."""

    PYTHON = 0
    CPP = 1


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Compute with `n` threads for a while."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)


class Timer:
    """Measures `stmt`, run in `globals` after `setup`, on `num_threads` threads.

    `label`, `sub_label`, `description` and `env` name it in tables: see `Compare`.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,  # noqa: A002
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Statements are measured in Python only, not in {language}")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`")
        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        self._globals = dict(globals or {})
        self._timer = timeit.Timer(stmt, setup, timer, globals=self._globals)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _timeit(self, number: int) -> float:
        # A clock may be too coarse to see anything pass.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of `number` runs, after a few to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not here: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Not here: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time: float) -> int:
        """How many runs to measure at once: the clock and the loop must not be seen."""
        overhead = statistics.median([self._timeit(0) for _ in range(5)])
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= OVERHEAD and taken >= min_run_time * BLOCK:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _measure(
        self,
        number: int,
        until: Callable[[list[float], float], bool],
        longest: float,
        callback: Callable[[int, float], Any],
    ) -> Measurement:
        """Blocks of `number` runs, until `until` says so or `longest` seconds have passed."""
        times: list[float] = []
        total = 0.0
        while total < longest and not until(times, total):
            taken = self._timeit(number)
            times.append(taken)
            total += taken
            callback(number, taken)
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(
        self,
        callback: Callable[[int, float], Any] | None = None,
        min_run_time: float = 0.2,
    ) -> Measurement:
        """Measurements of blocks of runs for `min_run_time` seconds in all.

        A block has so many runs that measuring costs next to nothing. `callback(runs, seconds)`
        is called after each.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            return self._measure(
                number,
                lambda times, total: total >= min_run_time,
                float("inf"),
                callback or (lambda number, taken: None),
            )

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measurements until the interquartile range over the median falls below `threshold`, at
        least `min_run_time` and at most `max_run_time` seconds."""

        def settled(times: list[float], total: float) -> bool:
            if total < min_run_time or len(times) < 4:
                return False
            return Measurement(number, times, self._task_spec).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(0.05)
            return self._measure(
                number, settled, max_run_time, callback or (lambda number, taken: None)
            )
