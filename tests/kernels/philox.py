"""Philox 4x32-10 in NumPy, to foretell what kernels draw."""

from __future__ import annotations

import numpy as np

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def words(seed: int, offset: int, count: int, stream: int = 0) -> np.ndarray:
    """The first `count` 32-bit words of a stream of the counters from `offset` on."""
    counters = np.uint64(offset) + np.arange(-(-count // 4), dtype=np.uint64)
    c0, c1 = counters & _LOW, counters >> _HALF
    c2, c3 = np.full_like(c0, stream), np.zeros_like(c0)
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c2 = (p1 >> _HALF) ^ c1 ^ np.uint64(k0), (p0 >> _HALF) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & _LOW, p0 & _LOW
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack([c0, c1, c2, c3], -1).reshape(-1)[:count].astype(np.uint32)
