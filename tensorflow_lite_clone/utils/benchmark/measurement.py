"""What a measurement is: times of one statement, and what they say together."""

from __future__ import annotations

import dataclasses
import math
import statistics
import textwrap
from collections.abc import Iterable
from typing import Any

# A spread (interquartile range over median) above these is worth a warning.
SPREAD, GROSS_SPREAD = 0.1, 0.25
# A clock cannot tell differences below this: more digits than it allows mean nothing.
RESOLUTION = 25e-9  # seconds
# The 90 % confidence interval of a normal distribution, in standard errors to either side.
Z = 1.645
DIGITS = (1, 5)  # the fewest and the most significant figures


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which to show `t` seconds: its name, and how many seconds it has."""
    for unit, seconds in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if t >= seconds:
            return unit, seconds
    return "ns", 1e-9


def unit_to_english(u: str) -> str:
    """The word for a unit."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` rounded to `n` significant figures."""
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return round(x / scale) * scale


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each of the elements once, in the order in which they come first."""
    return list(dict.fromkeys(elements))


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured, and what to call it."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """What to call it: the labels, else the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        inner = f":\n{textwrap.indent(self.stmt, '  ')}"
        return f"stmt{f' ({self.sub_label})' if self.sub_label else ''}{inner}"

    def setup_str(self) -> str:
        """The preparation, as it is shown."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description, preparation, a line each."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join([part for part in parts if part])


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of a statement: `raw_times` are seconds of `number_per_run` runs each."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds per run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of the seconds per run."""
        return statistics.median(self.times)

    @property
    def mean(self) -> float:
        """The mean of the seconds per run."""
        return statistics.fmean(self.times)

    @property
    def _quartiles(self) -> tuple[float, float]:
        times = self.times
        if len(times) == 1:
            return times[0], times[0]
        first, _, third = statistics.quantiles(times, n=4, method="inclusive")
        return first, third

    @property
    def iqr(self) -> float:
        """The interquartile range: between the 25th and the 75th percentile."""
        first, third = self._quartiles
        return third - first

    @property
    def significant_figures(self) -> int:
        """About how many digits of the median mean something.

        The confidence interval (90 %) is estimated from the middle half of the times, which the
        tails do not skew.
        """
        times = sorted(self.times)
        n = len(times)
        middle = times[n // 4 : math.ceil(3 * n / 4) + 1]
        spread = statistics.pstdev(middle) / math.sqrt(len(middle))
        interval = max(Z * spread, RESOLUTION)
        fewest, most = DIGITS
        digits = math.floor(math.log10(max(self.median / interval, 1)))
        return min(max(digits, fewest), most)

    @property
    def has_warnings(self) -> bool:
        """Whether the times spread too much."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = SPREAD) -> bool:
        """Whether the interquartile range is a small part of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """Its name in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        n = len(self.times)
        lines = [object.__repr__(self), self.task_spec.summarize()]
        if n == 1:
            lines.append(f"  {self.median / scale:.2f} {unit}")
        else:
            lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if n >= 4:
            first, third = (t / scale for t in self._quartiles)
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({first:.2f} to {third:.2f})")
        count = f"{n} measurement{'s' * (n > 1)}"
        runs = f"{self.number_per_run} runs {'per measurement,' if n > 1 else ','}"
        threads = f"{self.task_spec.num_threads} thread{'s' * (self.task_spec.num_threads > 1)}"
        lines.append(f"  {count}, {runs} {threads}")
        if self.has_warnings:
            spread = self.iqr / self.median
            cause = (
                "This suggests significant environmental influence."
                if spread > GROSS_SPREAD
                else "This could indicate system fluctuation."
            )
            lines.append(
                f"  WARNING: Interquartile range is {spread * 100:.1f}% of the median measurement."
                f"\n           {cause}"
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of the times of all; in seconds per run."""
        groups: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            groups.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, times, task) for task, times in groups.items()]
