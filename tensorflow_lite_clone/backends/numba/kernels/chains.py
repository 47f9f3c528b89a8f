"""Loops that are made of text: steps of a chain, for a tile."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np


@cache
def loop(text: str) -> Callable[..., None]:
    """The function `kernel` of a source, compiled when it is first called."""
    space: dict[str, Any] = {"float32": np.float32, "float64": np.float64, "sqrt": math.sqrt}
    exec(compile(text, "<loop of a chain>", "exec"), space)
    compiled: Callable[..., None] = numba.njit(nogil=True, error_model="numpy")(space["kernel"])
    return compiled
