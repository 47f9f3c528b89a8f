"""Rows of recurrent networks and of their cells."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import V64, E, Op, S, T

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


def network(name, gates, states, orders=3):
    """A row of a network of 3 units over inputs of 4: padded and packed, deep, in both ways."""
    rows = 3 * gates
    def hx(cells, n=2, units=3):
        return (T(cells, n, units), T(cells, n, 3)) if states == 2 else T(cells, n, units)
    def cell(size=4, hidden=3):
        return [T(rows, size), T(rows, hidden), T(rows), T(rows)]
    one, deep = cell(), [*cell(), *cell(3)]
    both = [*cell(), *cell(), *cell(6), *cell(6)]
    padded, sizes = T(3, 2, 4), V64([3, 3, 1])
    samples = [
        S(padded, hx(1), one, True, 1, 0.0, False, False, False),
        S(padded, hx(1), one[:2], False, 1, 0.0, False, False, False),
        S(T(2, 3, 4), hx(2), deep, True, 2, 0.0, False, False, True),
        S(padded, hx(4), both, True, 2, 0.0, True, True, False),
        S(T(7, 4), sizes, hx(1, 3), one, True, 1, 0.0, False, False),
        S(T(7, 4), sizes, hx(4, 3), both, True, 2, 0.0, False, True),
        S(data=T(7, 4), batch_sizes=sizes, hx=hx(1, 3), params=one, has_biases=True, num_layers=1,
          dropout=0.0, train=True, bidirectional=False),
    ]
    if states == 2:
        samples += [S(padded, hx(1, 2, 2), [*cell(4, 2), T(2, 3)], True, 1, 0.0, False, False,
            False), S(padded, hx(1, 2, 2), [*cell(4, 2)[:2], T(2, 3)], False, 1, 0.0, False, False,
            False)]
    return Op(name, *samples, tol=HALVES, why=WHY, accidents=("zero_dim", "empty", "resized"),
        torch_orders=orders, errors=[
            E(), E(padded, hx(1), one),
            E(padded, hx(1) if states == 1 else T(1, 2, 3), deep[:2], True, 1, 0.0, False, False,
              False),
            E(padded, hx(1), one, True, 2, 0.0, False, False, False),
            E(padded, hx(1), one, True, 1, 0.0, False, True, False),
            *[E(T(2, 4), hx(1), one, True, 1, 0.0, False, False, False)] * (gates > 1),
            E(T(0, 2, 4), hx(1), one, True, 1, 0.0, False, False, False),
            E(T(3, 2, 4, dtype="float64"), hx(1), one, True, 1, 0.0, False, False, False),
            E(T(6, 4), sizes, hx(1, 3), one, True, 1, 0.0, False, False)])


OPS = [
    network("lstm", 4, 2), network("gru", 3, 1), network("rnn_tanh", 1, 1),
    network("rnn_relu", 1, 1),
    cell("lstm_cell", 4, "h", "c", errors=[E(T(2, 4), T(2, 3), T(12, 4), T(12, 3)),
        E(T(2, 4), (T(2, 3),), T(12, 4), T(12, 3)),
        E(T(2, 4), (T(2, 3), T(2, 2)), T(12, 4), T(12, 3)),
        E(T(2, 4), (T(2, 3), T(3, 3)), T(12, 4), T(12, 3))]),
    cell("gru_cell", 3, "h"), cell("rnn_tanh_cell", 1, "h"), cell("rnn_relu_cell", 1, "h"),
]
