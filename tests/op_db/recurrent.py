"""Rows of the cells of recurrent networks."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import E, Op, S, T

HALVES = {"float16": (1e-2, 2e-2), "bfloat16": (6e-2, 1e-1), "float32": (1e-5, 1e-5)}
WHY = "sums of products of rounded numbers"


def cell(name, gates, *hidden, errors=()):
    """A row of a cell of 3 units over inputs of 4, of batches of 2."""
    h = (T(2, 3), T(2, 3)) if len(hidden) == 2 else T(2, 3)
    short = (T(2, 2), T(2, 2)) if len(hidden) == 2 else T(2, 2)
    more = (T(3, 3), T(3, 3)) if len(hidden) == 2 else T(3, 3)
    none = (T(0, 3), T(0, 3)) if len(hidden) == 2 else T(0, 3)
    rows = 3 * gates
    w, b = (T(rows, 4), T(rows, 3)), T(rows)
    return Op(name, S(T(2, 4), h, *w), S(T(2, 4), h, *w, b, b), S(T(2, 4), h, *w, b, None),
        S(T(2, 4), h, *w, b_hh=b), S(T(0, 4), none, *w, b, b), tol=HALVES, why=WHY,
        accidents=("zero_dim",),
        errors=[E(T(2, 5), h, *w), E(T(2, 4), short, *w), E(T(2, 4), more, *w),
        E(T(2, 4), h, T(rows - 1, 4), T(rows, 3)), E(T(2, 4), h, *w, T(rows + 1), b),
        E(T(4), h, *w), E(T(2, 4, dtype="float64"), h, *w), *errors])


OPS = [
    cell("lstm_cell", 4, "h", "c", errors=[E(T(2, 4), T(2, 3), T(12, 4), T(12, 3)),
        E(T(2, 4), (T(2, 3),), T(12, 4), T(12, 3)),
        E(T(2, 4), (T(2, 3), T(2, 2)), T(12, 4), T(12, 3)),
        E(T(2, 4), (T(2, 3), T(3, 3)), T(12, 4), T(12, 3))]),
    cell("gru_cell", 3, "h"), cell("rnn_tanh_cell", 1, "h"), cell("rnn_relu_cell", 1, "h"),
]
