"""Factorizations of symmetric matrices: LDL, and Cholesky's with the place of failure.

Places of failure ("info") count from 1; 0 says that there was none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from tensorflow_lite_clone.backends.numpy import lapack
from tensorflow_lite_clone.backends.numpy.primitives.lu import size1


def cholesky(x: Any) -> tuple[Any, Any]:
    if not x.size:
        return x.copy(), np.zeros(x.shape[:-2], np.int32)
    out = lapack.cholesky(x)
    try:
        factor, info = out or (np.linalg.cholesky(x), np.zeros(x.shape[:-2], np.int32))
    except LinAlgError:
        return _cholesky_by_columns(x)
    if np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any():
        return _cholesky_by_columns(x)
    return factor, info


def _cholesky_by_columns(x: Any) -> tuple[Any, Any]:
    """Golub and Van Loan, Matrix Computations (4th ed.), section 4.2, for many matrices.

    A matrix without a positive pivot in column j has info j and stays as it is from there on.
    """
    shape, n = x.shape, x.shape[-1]
    factor = np.tril(x).reshape(-1, n, n)
    info = np.zeros(len(factor), np.int32)
    for j in range(n):
        done = factor[:, j, None, :j].conj()
        column = factor[:, j:, j] - np.sum(factor[:, j:, :j] * done, axis=-1)
        pivot = column[:, 0].real
        good = (pivot > 0) & (info == 0)
        failed = (info == 0) & ~good
        factor[failed, j, j] = pivot[failed]
        info[failed] = j + 1
        factor[good, j:, j] = column[good] / np.sqrt(pivot[good])[:, None]
    return factor.reshape(shape), info.reshape(shape[:-2])


def ldl_factor(x: Any, *, hermitian: bool) -> tuple[Any, Any, Any]:
    """A matrix at a time, as each has steps of its own."""
    out = lapack.ldl_factor(x, hermitian=hermitian) if x.size else None
    if out is not None:
        return out
    *batch, n, _ = x.shape
    count = int(np.prod(batch))
    lower = np.tril(x).swapaxes(-1, -2).copy().reshape(count, n, n).swapaxes(-1, -2)
    pivots, info = np.empty((count, n), np.int32), np.zeros(count, np.int32)
    for i in range(count):
        info[i] = _bunch_kaufman(lower[i], pivots[i], hermitian and x.dtype.kind == "c")
    return (
        lower.swapaxes(-1, -2).reshape(x.shape).swapaxes(-1, -2),
        pivots.reshape(*batch, n),
        info.reshape(batch),
    )


_ALPHA = (1 + 17**0.5) / 8


def _bunch_kaufman(a: Any, pivots: Any, hermitian: bool) -> int:
    """Write L and D over a lower triangle, and where rows went; returns the info.

    The diagonal pivoting of Bunch and Kaufman (Golub and Van Loan, section 4.4). Pivots are
    written down as LAPACK's sytrf does: row k and row p were interchanged is p + 1 at k, and where
    D has a 2 by 2 block at k, k + 1 and rows k + 1 and p were interchanged, -(p + 1) at both.
    """
    n = len(a)
    whole = np.tril(a, -1)
    adjoint = np.conj if hermitian else np.asarray
    whole = whole + adjoint(whole.T)
    diagonal = np.diagonal(a)
    np.fill_diagonal(whole, diagonal.real if hermitian else diagonal)
    info, k = 0, 0
    while k < n:
        rest = whole[k:, k:]
        wide, at = _choose(rest)
        pivot = at + k
        if wide is None:  # the column is zero: nothing to eliminate
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        last = k + wide - 1
        if pivot != last:
            _interchange(rest, last - k, at)
        pivots[k : k + wide] = pivot + 1 if wide == 1 else -(pivot + 1)
        after = k + wide
        columns = whole[after:, k:after].copy()
        block = whole[k:after, k:after]
        factors = columns / block[0, 0] if wide == 1 else _times_inverse(columns, block, hermitian)
        whole[after:, after:] -= factors @ adjoint(columns.T)
        if hermitian:
            np.fill_diagonal(whole[after:, after:], np.diagonal(whole[after:, after:]).real)
        whole[after:, k:after] = factors
        k = after
    a[...] = np.tril(whole)
    return info


def _choose(rest: Any) -> tuple[int | None, int]:
    """The order of the pivot block, and the row to bring to its end; None: the column is zero."""
    own = size1(rest[0, 0])
    if len(rest) == 1:
        return (1 if own else None), 0
    sizes = size1(rest[1:, 0])
    row = 1 + int(np.argmax(sizes))
    column_max = sizes[row - 1]
    if max(own, column_max) == 0:
        return None, 0
    if own >= _ALPHA * column_max:
        return 1, 0
    sizes = size1(rest[row])
    diagonal = sizes[row]
    sizes[row] = 0
    row_max = sizes.max()
    if own >= _ALPHA * column_max * (column_max / row_max):
        return 1, 0
    return (1 if diagonal >= _ALPHA * row_max else 2), row


def _interchange(a: Any, p: int, q: int) -> None:
    """Exchange rows p and q, and columns p and q."""
    a[[p, q]] = a[[q, p]]
    a[:, [p, q]] = a[:, [q, p]]


def _times_inverse(columns: Any, block: Any, hermitian: bool) -> Any:
    """columns @ inv(block) for a 2 by 2 block; scaled by its large element below the diagonal."""
    below = block[1, 0]
    above = below.conj() if hermitian else below
    d11, d22 = block[1, 1] / below, block[0, 0] / above
    scale = 1 / (d11 * d22 - 1)
    first = scale * (d11 * columns[:, 0] - columns[:, 1]) / above
    second = scale * (d22 * columns[:, 1] - columns[:, 0]) / below
    return np.stack([first, second], axis=1)


def ldl_solve(ld: Any, pivots: Any, b: Any, *, hermitian: bool) -> Any:
    """A matrix at a time, as each has steps of its own."""
    out = lapack.ldl_solve(ld, pivots, b, hermitian=hermitian) if b.size else None
    if out is not None:
        return out
    n = ld.shape[-1]
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    x = np.array(np.broadcast_to(b, batch + b.shape[-2:]))
    factors = np.broadcast_to(ld, (*batch, n, n))
    places = np.broadcast_to(pivots, (*batch, n))
    for index in np.ndindex(batch):
        _ldl_solve(factors[index], places[index], x[index], hermitian and ld.dtype.kind == "c")
    return x


def _ldl_solve(ld: Any, pivots: Any, x: Any, hermitian: bool) -> None:
    """Solve in place: L and D forwards, the transpose of L backwards, with the interchanges."""
    n = len(ld)
    adjoint = np.conj if hermitian else np.asarray
    steps, k = [], 0
    while k < n:
        wide = 1 if pivots[k] > 0 else 2
        after = k + wide
        last, place = after - 1, abs(int(pivots[k])) - 1
        steps.append((k, after, last, place))
        if place != last:
            x[[last, place]] = x[[place, last]]
        x[after:] -= ld[after:, k:after] @ x[k:after]
        if wide == 1:
            x[k] /= ld[k, k].real if hermitian else ld[k, k]
        else:
            below = ld[k + 1, k]
            block = np.array([[ld[k, k], adjoint(below)], [below, ld[k + 1, k + 1]]])
            if hermitian:
                np.fill_diagonal(block, np.diagonal(block).real)
            x[k:after] = np.linalg.solve(block, x[k:after])
        k = after
    for k, after, last, place in reversed(steps):
        x[k:after] -= adjoint(ld[after:, k:after].T) @ x[after:]
        if place != last:
            x[[last, place]] = x[[place, last]]
