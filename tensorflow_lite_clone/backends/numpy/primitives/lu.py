"""LU factorizations with partial pivoting, where LAPACK is not at hand.

Golub and Van Loan, Matrix Computations (4th ed.), sections 3.2 and 3.4: panels of columns are
factored one by one, and the rest of the matrix follows by matrix products. The work is done on
transposed matrices, whose rows are the columns in question.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy import lapack
from tensorflow_lite_clone.backends.numpy.primitives.triangular import solve_triangular

_PANEL = 32  # columns that are factored before the rest of the matrix follows
_FEW = 2  # matrices that are factored one after the other


def size1(x: Any) -> Any:
    """|re| + |im|, by which LAPACK chooses pivots."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def lu_factor(x: Any) -> tuple[Any, Any, Any]:
    *batch, m, n = x.shape
    out = lapack.lu_factor(x) if x.size else None
    if out is not None:
        return out
    count, least = int(np.prod(batch)), min(m, n)
    a = np.array(x.swapaxes(-1, -2), order="C").reshape(count, n, m)
    pivots = np.empty((count, least), np.int32)
    info = np.zeros(count, np.int32)
    if count <= _FEW:
        for i in range(count):
            info[i] = _factor_one(a[i], pivots[i])
    else:
        _factor_many(a, pivots, info)
    factors = a.reshape(*batch, n, m).swapaxes(-1, -2)
    return factors, pivots.reshape(*batch, least), info.reshape(batch)


def _follow(a: Any, start: int, stop: int) -> None:
    """The columns beyond a panel: U's rows beside it, and what is left of the matrix."""
    corner = a[..., start:stop, start:stop].swapaxes(-1, -2)
    beside = a[..., stop:, start:stop].swapaxes(-1, -2)
    beside = solve_triangular(corner, beside, upper=False, unitriangular=True).swapaxes(-1, -2)
    a[..., stop:, start:stop] = beside
    a[..., stop:, stop:] -= beside @ a[..., start:stop, stop:]


def _factor_one(a: Any, pivots: Any) -> int:
    """Factor a transposed matrix in place; returns the info.

    Rows outside of the panel are interchanged when it is done, all at once.
    """
    n, m = a.shape
    least, info = min(m, n), 0
    for start in range(0, least, _PANEL):
        stop = min(start + _PANEL, least)
        panel = a[start:stop, start:].copy()
        order = [*range(start, m)]
        moved = set(range(stop - start))
        for j in range(stop - start):
            place = j + int(size1(panel[j, j:]).argmax())
            pivots[start + j] = start + place + 1
            if place != j:
                row = panel[:, j].copy()
                panel[:, j] = panel[:, place]
                panel[:, place] = row
                order[j], order[place] = order[place], order[j]
                moved.add(place)
            pivot = panel[j, j]
            below = panel[j, j + 1 :]
            if pivot == 0:
                info = info or start + j + 1
            else:
                below /= pivot
            rest = panel[j + 1 :, j + 1 :]
            rest -= panel[j + 1 :, j, None] * below
        places = np.array([*moved]) + start
        sources = [order[place] for place in moved]
        for others in (a[:start], a[stop:]):
            others[:, places] = others[:, sources]
        a[start:stop, start:] = panel
        if stop < n:
            _follow(a, start, stop)
    return info


def _factor_many(a: Any, pivots: Any, info: Any) -> None:
    """Factor transposed matrices in place, a step for all of them at a time."""
    count, n, m = a.shape
    least = min(m, n)
    each = np.arange(count)
    for start in range(0, least, _PANEL):
        stop = min(start + _PANEL, least)
        for j in range(start, stop):
            place = j + np.argmax(size1(a[:, j, j:]), axis=1)
            pivots[:, j] = place + 1
            a[each, :, place], a[:, :, j] = a[:, :, j].copy(), a[each, :, place]
            pivot = a[:, j, j]
            zero = pivot == 0
            info[zero & (info == 0)] = j + 1
            a[:, j, j + 1 :] /= np.where(zero, 1, pivot)[:, None]
            a[:, j + 1 : stop, j + 1 :] -= a[:, j + 1 : stop, j, None] * a[:, j, None, j + 1 :]
        if stop < n:
            _follow(a, start, stop)


def lu_permutation(pivots: Any, size: int) -> Any:
    *batch, steps = pivots.shape
    count = int(np.prod(batch))
    flat = pivots.reshape(count, steps)
    order = np.tile(np.arange(size), (count, 1))
    if count <= _FEW:
        for i, places in enumerate(flat.tolist()):
            rows = [*range(size)]
            for j, place in enumerate(places):
                rows[j], rows[place - 1] = rows[place - 1], rows[j]
            order[i] = rows
    else:
        each = np.arange(count)
        for j in range(steps):
            place = flat[:, j] - 1
            order[each, place], order[:, j] = order[:, j].copy(), order[each, place]
    return order.reshape(*batch, size)
