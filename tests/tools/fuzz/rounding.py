"""How far a result may be from the exact one by rounding alone.

A stable algorithm's result is exact for inputs that are moved a little. If rounding errors are
independent, sums of n terms move each by about sqrt(n) eps instead of n eps (Higham & Mary, A new
approach to probabilistic rounding error analysis, SIAM J. Sci. Comput. 41, 2019). What moving the
inputs by eps does to the result is measured, with random signs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.op_db._case import HostTensor, OpInfo, materialize, tree_leaves, tree_map
from tests.op_db._check import TORCH, GradientCase, assert_close, flatten
from tests.tools.fuzz.judging import SIDES

SINGLE, DOUBLE = 2.0**-24, 2.0**-53
TRIES = 3


def allowances(
    moved: Callable[[Callable[[tuple], np.ndarray]], list[Any]], exact: list[Any], terms: int
) -> list[float]:
    """For each array of `exact` how far a result may be from it; sums have up to `terms` terms.

    `moved` gives the arrays for moved inputs, by a function from shapes to random signs.
    """
    rng = np.random.default_rng(0)
    signs = lambda shape: rng.choice((-1.0, 1.0), shape)
    spread = [0.0] * len(exact)
    for _ in range(TRIES):
        for i, (there, here) in enumerate(zip(moved(signs), exact, strict=True)):
            away = np.abs(np.asarray(there) - np.asarray(here))
            spread[i] = max(spread[i], float(away.max(initial=0.0, where=np.isfinite(away))))
    return [math.sqrt(terms) * far for far in spread]


def near_exact(op: OpInfo, drawn: Any, ours: list[Any], exact: Any) -> bool:
    """Whether our results of complex64 are as near those of complex128 as rounding allows."""

    def move(value: Any, signs: Any) -> Any:
        if not (isinstance(value, HostTensor) and value.dtype_varies):
            return value
        return value._replace(array=value.array * (1 + SINGLE * signs(value.array.shape)))

    def moved(signs: Any) -> list[Any]:
        inputs = tree_map(lambda value: move(value, signs), drawn)
        return [
            TORCH.numpy(t) for t in flatten(TORCH.run(op, *materialize(inputs, TORCH, widen=True)))
        ]

    wanted = [TORCH.numpy(tensor) for tensor in flatten(exact)]
    sizes = [value.array.size for value in tree_leaves(drawn, HostTensor) if value.dtype_varies]
    relative, absolute = op.tolerance("complex64")
    return all(
        np.allclose(got, want, rtol=relative, atol=absolute + far, equal_nan=True)
        for got, want, far in zip(ours, wanted, allowances(moved, wanted, max(sizes)), strict=True)
    )


def compare_gradients(trial: GradientCase, order: int, ours: list[Any], theirs: list[Any]) -> None:
    """As `Trial.compare`; where that says no, as near as rounding allows on either side."""
    try:
        trial.compare(ours, theirs)
    except AssertionError:
        arrays = [value.array for value in trial.inputs]
        terms = max(array.size for array in arrays)
        far = [0.0] * len(ours)
        for side, here in zip(SIDES, (ours, theirs), strict=True):
            moved = lambda signs, side=side: trial.derivative(
                side, order, DOUBLE, [signs(array.shape) * array for array in arrays]
            )
            far = [max(pair) for pair in zip(far, allowances(moved, here, terms), strict=True)]
        relative, absolute = trial.op.tolerance("float64")
        for left, right, more in zip(ours, theirs, far, strict=True):
            assert_close(left, right, (10 * relative, 10 * absolute + more))
