"""Ratios of our times to PyTorch's."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any

BASE = "torch eager"


def ours(name: str) -> bool:
    """Whether a contender is one of ours."""
    return name.startswith("ours")


def ratios(times: Mapping[str, list[float]]) -> dict[str, float]:
    """By contender of ours: the median over the rounds of its time over that of `BASE`."""
    return {
        name: round(statistics.median(a / b for a, b in zip(each, times[BASE], strict=True)), 4)
        for name, each in times.items()
        if ours(name) and BASE in times
    }


def complete(row: dict[str, Any]) -> None:
    """Add ratios of medians to a row for those of ours that were not measured beside `BASE`."""
    times = row["times"]
    if BASE in times:
        apart = {name: time / times[BASE] for name, time in times.items() if ours(name)}
        row["ratios"] = {**apart, **row["ratios"]}


def means(rows: list[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """Geometric means of the ratios of rows, by their group and contender of ours."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        for name, ratio in row["ratios"].items():
            found.setdefault((row["group"], name), []).append(math.log(ratio))
    return {place: math.exp(statistics.fmean(logs)) for place, logs in found.items()}
