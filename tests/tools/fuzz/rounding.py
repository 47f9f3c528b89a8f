"""How far a result of single precision may be from the exact one.

A stable algorithm's result is exact for inputs that are moved a little. If rounding errors are
independent, sums of n terms move each by about sqrt(n) eps instead of n eps (Higham & Mary, A new
approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019). What moving the
inputs by eps does to the result is measured: in double precision, with random signs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.op_db._case import Op, Value, leaves, place, tree_map
from tests.op_db._check import TORCH, flat

EPS = 2.0**-24
TRIES = 3


def allowances(op: Op, drawn: Any, exact: list[Any]) -> list[float]:
    """For each result of the row, how far from `exact` its values may be in complex64."""
    inputs = [value for value in leaves(drawn, Value) if value.follows]
    terms = max((value.array.size for value in inputs), default=0)
    rng = np.random.default_rng(0)

    def move(value: Any) -> Any:
        if not (isinstance(value, Value) and value.follows):
            return value
        signs = rng.choice((-1.0, 1.0), value.array.shape)
        return value._replace(array=value.array * (1 + EPS * signs))

    spread = [0.0] * len(exact)
    for _ in range(TRIES):
        moved = flat(TORCH.run(op, *place(tree_map(move, drawn), TORCH, widen=True)))
        for i, (there, here) in enumerate(zip(moved, exact, strict=True)):
            if TORCH.is_tensor(here):
                away = np.abs(TORCH.numpy(there) - TORCH.numpy(here))
                spread[i] = max(spread[i], float(away.max(initial=0.0, where=np.isfinite(away))))
    return [math.sqrt(terms) * far for far in spread]


def near_exact(op: Op, drawn: Any, ours: list[Any], exact: Any) -> bool:
    """Whether our results of complex64 are as near as rounding allows."""
    exact = flat(exact)
    for got, want, far in zip(ours, exact, allowances(op, drawn, exact), strict=True):
        relative, absolute = op.tolerance("complex64")
        wanted = TORCH.numpy(want)
        if not np.allclose(got, wanted, rtol=relative, atol=absolute + far, equal_nan=True):
            return False
    return True
