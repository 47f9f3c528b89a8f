"""Checks of values, which cost a pass over them. Where reading back is dear, a device does none."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_labels(labels: Any, classes: int, ignored: int) -> None:
    if not labels.size:
        return
    # As unsigned numbers, negative ones are too large as well.
    if np.maximum.reduce(labels.view(np.uint64), None) < classes:
        return
    wrong = labels[((labels < 0) | (labels >= classes)) & (labels != ignored)]
    if wrong.size:
        raise IndexError(f"Target {wrong[0]} is out of bounds.")


def check_range(x: Any, low: float, high: float, message: str) -> None:
    if x.size and not (x.min() >= low and x.max() <= high):
        raise RuntimeError(message)
