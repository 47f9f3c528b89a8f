"""How a product of strided arrays becomes one product of column-major matrices, or a batch of them.

Shapes and strides only (in elements), no arrays. cuBLASLt's matrices are column-major, where a
row-major matrix reads as its transpose: instead of z = x y it computes z^T = y^T x^T, so that its
matrix A is our y and its B our x, and nothing is moved.
"""

from __future__ import annotations

from typing import NamedTuple

Ints = tuple[int, ...]


class Matrices(NamedTuple):
    """One operand: matrices of one column-major layout, `stride` elements apart."""

    rows: int
    columns: int
    ld: int  # elements from column to column
    stride: int
    flipped: bool  # the operation reads its transpose


class Problem(NamedTuple):
    """z (`shape`) = `batch` products of m x k and k x n matrices; z is contiguous."""

    shape: Ints
    m: int
    n: int
    k: int
    batch: int
    x: Matrices | None  # None: there is nothing to compute, z is empty or zeros
    y: Matrices | None
    x_to: Ints | None  # the shape in which x must be laid contiguous first
    y_to: Ints | None


def contiguous(shape: Ints) -> Ints:
    """The strides of a contiguous array."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def arrange(x_shape: Ints, x_strides: Ints, y_shape: Ints, y_strides: Ints) -> Problem:
    """The problem for operands of these shapes and strides, multiplied as numpy.matmul does.

    Raises ValueError for shapes that do not fit.
    """
    if not x_shape or not y_shape:
        raise ValueError("matmul: operands need at least one axis")
    m, n = 1 if len(x_shape) == 1 else x_shape[-2], 1 if len(y_shape) == 1 else y_shape[-1]
    k = x_shape[-1]
    if (y_shape[0] if len(y_shape) == 1 else y_shape[-2]) != k:
        raise ValueError(f"matmul: shapes {x_shape} and {y_shape} do not fit")
    batch = _broadcast(x_shape[:-2], y_shape[:-2])
    shape = (*batch, *x_shape[-2:-1], *(y_shape[-1:] if len(y_shape) > 1 else ()))
    if 0 in batch or not (m and n and k):
        return Problem(shape, m, n, k, 0, None, None, None, None)
    x_to = y_to = None
    while True:  # an operand is laid anew in its own shape, at worst then in the batch's
        x_rows, x_columns = x_strides[-2:] if len(x_shape) > 1 else (k, x_strides[0])
        y_rows, y_columns = y_strides[-2:] if len(y_shape) > 1 else (y_strides[0], k)
        xs = _batch_strides(batch, x_shape, x_strides)
        ys = _batch_strides(batch, y_shape, y_strides)
        sizes = list(batch)
        m = 1 if len(x_shape) == 1 else x_shape[-2]
        # The last axis of the batch counts more rows of x where y is the same all along.
        while sizes:
            if sizes[-1] != 1:
                if ys[-1] != 0 or xs[-1] <= 0 or (m > 1 and xs[-1] != m * x_rows):
                    break
                if m == 1:
                    x_rows = xs[-1]
                m *= sizes[-1]
            del sizes[-1], xs[-1], ys[-1]
        x_layout = _matrix(m, k, x_rows, x_columns)
        y_layout = _matrix(k, n, y_rows, y_columns)
        x_step, y_step = _one_stride(sizes, xs), _one_stride(sizes, ys)
        if x_layout is None or x_step is None:
            if x_step is None:
                x_shape = (*batch, *x_shape[-2:])
            x_to = x_shape
            x_strides = contiguous(x_shape)
        elif y_layout is None or y_step is None:
            if y_step is None:
                whole = (*(1,) * (len(batch) - len(y_shape) + 2), *y_shape)
                y_shape = (*sizes, *whole[len(sizes) :])
            y_to = y_shape
            y_strides = contiguous(y_shape)
        else:
            break
    count = 1
    for size in sizes:
        count *= size
    return Problem(
        shape,
        m,
        n,
        k,
        count,
        _matrices(m, k, *x_layout, x_step),
        _matrices(k, n, *y_layout, y_step),
        x_to,
        y_to,
    )


def mirrored(problem: Problem) -> tuple[Matrices, Matrices]:
    """x and y for z = x y computed as it stands: for one column, which is also column-major."""
    x, y = problem.x, problem.y
    assert x is not None and y is not None
    return x._replace(flipped=not x.flipped), y._replace(flipped=not y.flipped)


def _broadcast(x: Ints, y: Ints) -> Ints:
    if x == y:
        return x
    length = max(len(x), len(y))
    x, y = (1,) * (length - len(x)) + x, (1,) * (length - len(y)) + y
    if any(a != b and 1 not in (a, b) for a, b in zip(x, y)):
        raise ValueError(f"matmul: batches of shapes {x} and {y} cannot be broadcast")
    return tuple([b if a == 1 else a for a, b in zip(x, y)])


def _batch_strides(batch: Ints, shape: Ints, strides: Ints) -> list[int]:
    """An operand's strides along the batch's axes: 0 where it is repeated."""
    own = len(shape) - 2
    found = [0] * len(batch)
    for i in range(1, own + 1):
        if shape[own - i] != 1:
            found[-i] = strides[own - i]
    return found


def _one_stride(sizes: list[int], strides: list[int]) -> int | None:
    """The one stride along all the axes, taken together; None where there is none."""
    step = span = None
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size == 1:
            continue
        if span is None:
            step = span = stride
        elif stride != span:
            return None
        span *= size
    if step is None:
        return 0
    return step if step >= 0 else None


def _matrix(rows: int, columns: int, down: int, along: int) -> tuple[bool, int] | None:
    """(whether column-major, ld) of a matrix, given its strides; None if it is neither."""
    by_rows = (along == 1 or columns == 1) and (rows == 1 or down >= columns)
    by_columns = (down == 1 or rows == 1) and (columns == 1 or along >= rows)
    # A vector is laid along its one axis, which can be read in packs.
    if by_columns and (not by_rows or (columns == 1 and rows > 1)):
        return True, along if columns > 1 else rows
    if by_rows:
        return False, down if rows > 1 else columns
    return None


def _matrices(rows: int, columns: int, by_columns: bool, ld: int, stride: int) -> Matrices:
    if by_columns:
        return Matrices(rows, columns, ld, stride, True)
    return Matrices(columns, rows, ld, stride, False)
