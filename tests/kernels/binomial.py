"""The sampler of binomial.cu in Python, to foretell what the kernel draws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from tests.kernels.philox import words

Pair = Sequence[float]


def pairs(seed: int, offset: int, count: int) -> list[Iterator[Pair]]:
    """For each counter from `offset` on, two 53-bit numbers of each of its streams."""
    streams = []
    for stream in range(24):
        drawn = words(seed, offset, 4 * count, stream).astype(np.uint64)
        whole = (drawn[::2] << np.uint64(32) | drawn[1::2]) >> np.uint64(11)
        streams.append(whole.reshape(count, 2).tolist())
    return [iter([stream[i] for stream in streams]) for i in range(count)]


def binomial(n: float, p: float, source: Iterator[Pair]) -> float:
    """One number of successes for finite n > 0 and 0 < p < 1."""
    rare = p if p <= 0.5 else 1.0 - p
    drawn = (_small if n * rare < 10 else _large)(n, rare, source)
    return drawn if p <= 0.5 else n - drawn


def _small(n: float, p: float, source: Iterator[Pair]) -> float:
    odds, none = p / (1 - p), math.exp(n * math.log1p(-p))
    for first, _ in source:
        u, chance, k = first * 2.0**-53, none, 0.0
        while k <= min(n, 110.0):
            if u < chance:
                return k
            u -= chance
            chance *= odds * (n - k) / (k + 1)
            k += 1
    raise AssertionError("too few streams")


def _large(n: float, p: float, source: Iterator[Pair]) -> float:
    odds = p / (1 - p)
    deviation = math.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    box = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    mode = math.floor((n + 1) * p)
    slope = math.log((mode + 1) / (odds * (n - mode + 1)))
    for first, second in source:
        u = (first - 2**52 + 0.5) * 2.0**-53
        v = (second + 1) * 2.0**-53
        margin = 0.5 - abs(u)
        k = math.floor((2 * a / margin + b) * u + n * p + 0.5)
        if not 0 <= k <= n:
            continue
        if margin >= 0.07 and v <= box:
            return k
        d = k - mode
        bound = (n - k + 0.5) * math.log1p(d / (n - k + 1)) - d * slope
        bound -= (k + 0.5) * math.log1p(d / (mode + 1))
        bound += tail(mode) + tail(n - mode) - tail(k) - tail(n - k)
        if math.log(v * alpha / (a / (margin * margin) + b)) <= bound:
            return k
    raise AssertionError("too few streams")


def tail(k: float) -> float:
    """log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2."""
    steps = 0.0
    while k < 10:
        steps += (k + 1.5) * math.log1p(1 / (k + 1)) - 1
        k += 1
    r = 1 / (k + 1)
    return steps + r * (1 / 12 - r * r * (1 / 360 - r * r / 1260))
