"""Rows of recurrent networks and of their cells."""

# fmt: off
from __future__ import annotations

from tests.op_db._case import OpInfo, error, int64, sample, tensor

HALVES = {"float16": (1e-2, 2e-2), "bfloat16": (6e-2, 1e-1), "float32": (1e-5, 1e-5)}
WHY = "sums of products of rounded numbers"


def cell(name, gates, *hidden, errors=()):
    """A row of a cell of 3 units over inputs of 4, of batches of 2."""
    h = (tensor(2, 3), tensor(2, 3)) if len(hidden) == 2 else tensor(2, 3)
    short = (tensor(2, 2), tensor(2, 2)) if len(hidden) == 2 else tensor(2, 2)
    more = (tensor(3, 3), tensor(3, 3)) if len(hidden) == 2 else tensor(3, 3)
    none = (tensor(0, 3), tensor(0, 3)) if len(hidden) == 2 else tensor(0, 3)
    rows = 3 * gates
    w, b = (tensor(rows, 4), tensor(rows, 3)), tensor(rows)
    return OpInfo(name, sample(tensor(2, 4), h, *w), sample(tensor(2, 4), h, *w, b, b),
        sample(tensor(2, 4), h, *w, b, None), sample(tensor(2, 4), h, *w, b_hh=b),
        sample(tensor(0, 4), none, *w, b, b), tolerances=HALVES, tolerance_reason=WHY,
        skip_undefined_behavior=("zero_dim",), errors=[error(tensor(2, 5), h, *w),
        error(tensor(2, 4), short, *w), error(tensor(2, 4), more, *w),
        error(tensor(2, 4), h, tensor(rows - 1, 4), tensor(rows, 3)),
        error(tensor(2, 4), h, *w, tensor(rows + 1), b), error(tensor(4), h, *w),
        error(tensor(2, 4, dtype="float64"), h, *w), *errors])


def network(name, gates, states, orders=3):
    """A row of a network of 3 units over inputs of 4: padded and packed, deep, in both ways."""
    rows = 3 * gates
    def hx(cells, n=2, units=3):
        return (tensor(cells, n, units),
            tensor(cells, n, 3)) if states == 2 else tensor(cells, n, units)
    def cell(size=4, hidden=3):
        return [tensor(rows, size), tensor(rows, hidden), tensor(rows), tensor(rows)]
    one, deep = cell(), [*cell(), *cell(3)]
    both = [*cell(), *cell(), *cell(6), *cell(6)]
    padded, sizes = tensor(3, 2, 4), int64([3, 3, 1])
    samples = [sample(padded, hx(1), one, True, 1, 0.0, False, False, False),
        sample(padded, hx(1), one[:2], False, 1, 0.0, False, False, False),
        sample(tensor(2, 3, 4), hx(2), deep, True, 2, 0.0, False, False, True),
        sample(padded, hx(4), both, True, 2, 0.0, True, True, False),
        sample(tensor(7, 4), sizes, hx(1, 3), one, True, 1, 0.0, False, False),
        sample(tensor(7, 4), sizes, hx(4, 3), both, True, 2, 0.0, False, True),
        sample(data=tensor(7, 4), batch_sizes=sizes, hx=hx(1, 3), params=one, has_biases=True,
        num_layers=1, dropout=0.0, train=True, bidirectional=False)]
    if states == 2:
        samples += [sample(padded, hx(1, 2, 2), [*cell(4, 2), tensor(2, 3)], True, 1, 0.0, False,
            False, False),
            sample(padded, hx(1, 2, 2), [*cell(4, 2)[:2], tensor(2, 3)], False, 1, 0.0, False,
            False, False)]
    return OpInfo(name, *samples, tolerances=HALVES, tolerance_reason=WHY,
        skip_undefined_behavior=("zero_dim", "empty", "resized"), torch_grad_orders=orders,
        errors=[error(), error(padded, hx(1), one),
        error(padded, hx(1) if states == 1 else tensor(1, 2, 3), deep[:2], True, 1, 0.0, False,
        False, False), error(padded, hx(1), one, True, 2, 0.0, False, False, False),
        error(padded, hx(1), one, True, 1, 0.0, False, True, False),
        *[error(tensor(2, 4), hx(1), one, True, 1, 0.0, False, False, False)] * (gates > 1),
        error(tensor(0, 2, 4), hx(1), one, True, 1, 0.0, False, False, False),
        error(tensor(3, 2, 4, dtype="float64"), hx(1), one, True, 1, 0.0, False, False, False),
        error(tensor(6, 4), sizes, hx(1, 3), one, True, 1, 0.0, False, False)])


OPS = [
    network("lstm", 4, 2), network("gru", 3, 1), network("rnn_tanh", 1, 1),
    network("rnn_relu", 1, 1),
    cell("lstm_cell", 4, "h", "c",
        errors=[error(tensor(2, 4), tensor(2, 3), tensor(12, 4), tensor(12, 3)),
        error(tensor(2, 4), (tensor(2, 3),), tensor(12, 4), tensor(12, 3)),
        error(tensor(2, 4), (tensor(2, 3), tensor(2, 2)), tensor(12, 4), tensor(12, 3)),
        error(tensor(2, 4), (tensor(2, 3), tensor(3, 3)), tensor(12, 4), tensor(12, 3))]),
    cell("gru_cell", 3, "h"), cell("rnn_tanh_cell", 1, "h"), cell("rnn_relu_cell", 1, "h"),
]
