"""Resampling along one axis: every result is a weighted sum of a few elements, its taps.

Nearest, linear and cubic interpolation, areas and adaptive averages are such maps, one axis at a
time. The transpose of one is another, so that one op is closed under differentiation.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tensorflow_lite_clone.dispatch.op import Op
from tensorflow_lite_clone.dispatch.result_layout import image
from tensorflow_lite_clone.ops._formulas import widened


class Taps:
    """Which elements, with which weights, make each result along an axis of length `size`.

    ``rows[o]`` lists pairs (index, weight). `weighted` is false when all weights are one and
    every row has one pair.
    """

    __slots__ = ("_transposed", "rows", "size", "weighted")

    def __init__(self, size: int, rows: Sequence[Sequence[tuple[int, float]]]) -> None:
        self.size = size
        self.rows = rows
        self.weighted = any(len(row) != 1 or row[0][1] != 1 for row in rows)
        self._transposed: Taps | None = None

    def transposed(self) -> Taps:
        """The taps of the gradient."""
        if self._transposed is None:
            columns: list[list[tuple[int, float]]] = [[] for _ in range(self.size)]
            for result, row in enumerate(self.rows):
                for index, weight in row:
                    columns[index].append((result, weight))
            self._transposed = Taps(len(self.rows), columns)
            self._transposed._transposed = self
        return self._transposed


@lru_cache(maxsize=256)
def _arrays(F: Any, taps: Taps, dtype: Any) -> list[tuple[Any, Any, Any]]:
    """Per tap: the indices, the weights (None: ones), which results lack it (None: none)."""
    arrays = []
    for position in range(max(map(len, taps.rows), default=0)):
        pairs = [row[position] if position < len(row) else None for row in taps.rows]
        indices = F.asarray([0 if pair is None else pair[0] for pair in pairs], dtype=F.int64)
        weights = missing = None
        if taps.weighted:
            values = [0.0 if pair is None else pair[1] for pair in pairs]
            weights = F.asarray(values, dtype=dtype)
        if None in pairs:
            missing = F.asarray([pair is None for pair in pairs], dtype=F.bool)
        arrays.append((indices, weights, missing))
    return arrays


class Resample(Op):
    """The weighted sums that `taps` names, along `axis`."""

    layout = image
    layout_agnostic = True

    @widened
    def forward(F, x, *, axis, taps):
        after = (1,) * (x.ndim - axis - 1)
        if not x.size or not taps.size:
            return F.zeros((*x.shape[:axis], len(taps.rows), *x.shape[axis + 1 :]), dtype=x.dtype)
        result = None
        for indices, weights, missing in _arrays(F, taps, x.dtype):
            term = F.take(x, indices, axis=axis)
            if weights is not None:
                term *= F.reshape(weights, (-1, *after))
            if missing is not None:  # zero times infinity is no number
                zero = F.zeros((), dtype=x.dtype)
                term = F.where(F.reshape(missing, (-1, *after)), zero, term)
            if result is None:
                result = term
            else:
                result += term
        if result is None:
            return F.zeros((*x.shape[:axis], len(taps.rows), *x.shape[axis + 1 :]), dtype=x.dtype)
        return result

    def backward_x(F, g, *, axis, taps):
        return F.resample(g, axis=axis, taps=taps.transposed())


@lru_cache(maxsize=256)
def whole_taps(taps: Taps) -> tuple[Taps, int]:
    """The taps with weights times 2^bits as whole numbers below 2^15, and bits (22 at most).

    So PyTorch resizes bytes, as Pillow does.
    """
    rows: list[dict[int, float]] = []
    for row in taps.rows:
        weights: dict[int, float] = {}
        for index, weight in row:  # a border element may occur several times
            weights[index] = weights.get(index, 0.0) + weight
        rows.append(weights)
    largest = max([weight for weights in rows for weight in weights.values()], default=0.0)
    bits = 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    whole = lambda weight: int(weight * (1 << bits) + math.copysign(0.5, weight))
    return Taps(taps.size, [[(i, whole(w)) for i, w in row.items()] for row in rows]), bits


def single(value: float) -> float:
    """The nearest number that float32 has."""
    return struct.unpack("f", struct.pack("f", value))[0]


def exact(value: float) -> float:
    """The number itself."""
    return value


@lru_cache(maxsize=256)
def mean_taps(size: int, count: int) -> Taps:
    """Adaptive averages: window o runs from floor(o size / count) to ceil((o + 1) size / count)."""
    return Taps(size, [[(i, 1 / len(window)) for i in window] for window in windows(size, count)])


def windows(size: int, count: int) -> list[range]:
    """The windows of adaptive pools."""
    return [range(o * size // count, -((o + 1) * size // -count)) for o in range(count)]


def _scale(size: int, count: int, corners: bool, factor: float | None, rounded: Any) -> float:
    """How far apart results lie, in elements."""
    if corners:
        return rounded((size - 1) / (count - 1)) if count > 1 else 0.0
    return rounded(1 / factor) if factor else rounded(rounded(size) / rounded(count))


@lru_cache(maxsize=256)
def nearest_taps(size: int, count: int, factor: float | None, center: bool) -> Taps:
    """The element below each result, or (with `center`) the one nearest to its middle."""
    scale = _scale(size, count, False, factor, single)
    offset = 0.5 if center else 0.0
    places = [math.floor(single(single(o + offset) * scale)) for o in range(count)]
    return Taps(size, [[(min(place, size - 1), 1.0)] for place in places])


@lru_cache(maxsize=256)
def linear_taps(
    size: int, count: int, corners: bool, factor: float | None, rounded: Callable[[float], float]
) -> Taps:
    """The two elements around each result, computed with `rounded` numbers as PyTorch does."""
    if count == size:
        return Taps(size, [[(o, 1.0)] for o in range(count)])
    scale = _scale(size, count, corners, factor, rounded)
    rows = []
    for o in range(count):
        place = _place(o, scale, corners, rounded)
        place = max(place, 0.0)
        low = min(int(place), size - 1)
        high = min(low + 1, size - 1)
        part = min(max(rounded(place - low), 0.0), 1.0)
        if high == low or part == 0:
            rows.append([(low, 1.0)])
        else:
            rows.append([(low, rounded(1 - part)), (high, part)])
    return Taps(size, rows)


def _place(o: int, scale: float, corners: bool, rounded: Callable[[float], float]) -> float:
    """Where result `o` lies among the elements."""
    return rounded(scale * o) if corners else rounded(scale * rounded(o + 0.5) - 0.5)


def _cubic(distance: float, a: float) -> float:
    """Keys' cubic convolution kernel."""
    t = abs(distance)
    if t <= 1:
        return ((a + 2) * t - (a + 3)) * t * t + 1
    return (((t - 5) * t + 8) * t - 4) * a if t < 2 else 0.0


@lru_cache(maxsize=256)
def cubic_taps(
    size: int, count: int, corners: bool, factor: float | None, rounded: Callable[[float], float]
) -> Taps:
    """The four elements around each result, those beyond the ends repeated."""
    scale = _scale(size, count, corners, factor, rounded)
    rows = []
    for o in range(count):
        place = _place(o, scale, corners, rounded)
        low = math.floor(place)
        part = rounded(place - low)
        offsets = range(-1, 3)
        rows.append([
            (min(max(low + i, 0), size - 1), _cubic(part - i, -0.75)) for i in offsets
        ])  # fmt: skip
    return Taps(size, rows)


@lru_cache(maxsize=256)
def smooth_taps(size: int, count: int, corners: bool, factor: float | None, cubic: bool) -> Taps:
    """Linear or cubic taps widened when shrinking, so that every element counts (antialias)."""
    scale = _scale(size, count, corners, factor, exact)
    reach = (2.0 if cubic else 1.0) * max(scale, 1.0)
    shrink = 1 / max(scale, 1.0)
    rows = []
    for o in range(count):
        center = scale * (o + 0.5)
        first = max(int(center - reach + 0.5), 0)
        end = min(int(center + reach + 0.5), size)
        distances = [(i - center + 0.5) * shrink for i in range(first, end)]
        weights = [_cubic(d, -0.5) if cubic else max(0.0, 1 - abs(d)) for d in distances]
        total = sum(weights)
        rows.append([(first + i, w / total) for i, w in enumerate(weights) if w])
    return Taps(size, rows)
