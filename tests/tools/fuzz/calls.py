"""The kinds of calls; a call follows from a seed and its number."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tests.tools.fuzz.functional import Functional
from tests.tools.fuzz.gradients import Gradient
from tests.tools.fuzz.indices import Read, ReadGradient, Write
from tests.tools.fuzz.operators import Conversion, Operation, Unary
from tests.tools.fuzz.rows import RowCall
from tests.tools.fuzz.variants import Inplace, Mixed, Out

#: How many of a hundred calls are of a kind.
KINDS = (
    (RowCall, 24),
    (Mixed, 14),
    (Inplace, 7),
    (Out, 8),
    (Gradient, 12),
    (Operation, 9),
    (Unary, 2),
    (Conversion, 5),
    (Read, 5),
    (Write, 5),
    (ReadGradient, 2),
    (Functional, 7),
)


def call(seed: int, number: int) -> Any:
    """A random call; the same for the same seed and number."""
    rng = np.random.default_rng([seed, number])
    kinds, weights = zip(*KINDS, strict=True)
    kind = kinds[rng.choice(len(kinds), p=np.array(weights) / sum(weights))]
    return kind(rng)


def run(seed: int, numbers: range) -> Counter[str]:
    """Print what differs among the calls of these numbers; how often each function did."""
    found: Counter[str] = Counter()
    for number in numbers:
        drawn = call(seed, number)
        said = drawn.judge()
        if said:
            found[drawn.name] += 1
            print(f"call {number}: {drawn!r}\n    {said}", flush=True)
    return found
