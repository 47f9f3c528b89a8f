"""An LSTM over all steps, its states in columns.

BLAS multiplies weights by a few columns up to three times as fast as a few rows by weights. So a
step's input, a one and the hidden state lie below each other, a column for each sequence, and one
product with [w_ih, bias, w_hh] gives all gates. sigmoid(x) is (1 + tanh(x / 2)) / 2, so one call
finds all of them; the halves are in the copy of the weights. Backwards, everything that does not
depend on gradients is calculated for all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.backends.numpy.workspace import workspace
from tensorflow_lite_clone.dispatch.table import override

#: ``(block, c, h)`` makes of a step's products the sigmoids or tanh of its gates and the new state.
#: block (5, hidden, n) has the gates i, f, o, g, of which the sigmoids' are halved, and the cell.
Activate = Callable[[Any, Any, Any], None]
#: ``(gh, gc, w_hh, kept, gates, order)`` writes the gradients of all gates, (4, hidden, steps, n),
#: the gates i, f, g, o, and gives those of the first h and c. gh is (steps, hidden, n), its steps
#: in order of calculation; gc, h's and c's are (hidden, n).
Slopes = Callable[[Any, Any, Any, Any, Any, slice], tuple[Any, Any]]


def is_supported(x: Any, *arrays: Any) -> bool:
    kind = x.dtype
    return (
        kind.kind == "f"
        and kind.itemsize > 2
        and x.shape[0] * x.shape[1] >= tuning.lstm_columns
        and all([array is None or array.dtype == kind for array in arrays])
    )


def _joined(w_ih: Any, bias: Any, w_hh: Any) -> Any:
    """[w_ih, bias, w_hh] with the rows of i, f, o and g below each other, all but g's halved."""
    rows, width = w_ih.shape
    two, three = rows // 2, rows * 3 // 4
    made = np.empty((rows, width + 1 + w_hh.shape[1]), w_ih.dtype)
    between = np.zeros((rows, 1), w_ih.dtype) if bias is None else bias[:, None]
    start = 0
    for given in (w_ih, between, w_hh):
        part = made[:, start : start + given.shape[1]]
        np.multiply(given[:two], 0.5, out=part[:two])
        np.multiply(given[three:], 0.5, out=part[two:three])
        part[three:] = given[two:three]
        start += given.shape[1]
    return made


def forward(
    activate: Activate, x: Any, w_ih: Any, w_hh: Any, bias: Any, h: Any, c: Any, backwards: bool
) -> tuple[Any, ...]:
    """The op's results. It keeps columns of products, (steps + 1, in + 1 + hidden, n), and blocks
    as `Activate` leaves them, (steps + 1, 5, hidden, n), both in the order of calculation."""
    steps, n, width = x.shape
    size = h.shape[1]
    order = slice(None, None, -1 if backwards else 1)
    weights = _joined(w_ih, bias, w_hh)
    columns = np.empty((steps + 1, weights.shape[1], n), x.dtype)
    columns[:-1, :width] = x[order].swapaxes(1, 2)
    columns[:, width] = 1
    states = columns[:, width + 1 :]
    states[0] = h.T
    kept = np.empty((steps + 1, 5, size, n), x.dtype)
    cells = kept[:, 4]
    cells[0] = c.T
    products = kept.reshape(steps + 1, 5 * size, n)[:-1, : 4 * size]
    for column, product, block, cell, state in zip(
        columns, products, kept, cells[1:], states[1:], strict=False
    ):
        np.matmul(weights, column, out=product)
        activate(block, cell, state)
    out = np.empty((steps, n, size), x.dtype)
    out[order] = states[1:].swapaxes(1, 2)
    return out, np.array(cells[-1].T, order="C"), columns, kept


def _activate(block: Any, c: Any, h: Any) -> None:
    gates = block[:4]
    np.tanh(gates, gates)
    sigmoids = block[:3]
    sigmoids *= 0.5
    sigmoids += 0.5
    enter, stay = block[:2] * block[3:]
    np.add(enter, stay, c)
    np.tanh(c, h)
    h *= block[2]


def backward(
    slopes: Slopes,
    gh: Any,
    gc: Any,
    x: Any,
    w_ih: Any,
    w_hh: Any,
    bias: Any,
    columns: Any,
    kept: Any,
    backwards: bool,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """The gradients of the op, from what `forward` keeps."""
    steps, n, width = x.shape
    size = gh.shape[2]
    order = slice(None, None, -1 if backwards else 1)
    # Steps are side by side in the memory of what the products read.
    gates = np.empty((4, size, steps, n), x.dtype)
    with workspace(steps * size * n, x.dtype) as memory:
        arriving = memory.reshape(steps, size, n)
        arriving[...] = gh[order].swapaxes(1, 2)
        to_h, to_c = slopes(arriving, gc.T, w_hh, kept, gates, order)
    gates = gates.reshape(4 * size, steps * n)
    gx = gw_ih = gw_hh = gb = None
    if needs[0]:
        gx = np.empty((steps, n, width), x.dtype)
        np.matmul(gates.T, w_ih, out=gx.reshape(steps * n, width))
    if any(needs[1:4]):
        with workspace(columns[1:].size, x.dtype) as memory:
            inputs = memory.reshape(columns.shape[1], steps, n)
            inputs[:, order] = columns[:-1].swapaxes(0, 1)
            gw = gates @ inputs.reshape(len(inputs), steps * n).T
        gw_ih, gw_hh = gw[:, :width].copy(), gw[:, width + 1 :].copy()
        gb = None if bias is None else gw[:, width].copy()
    return gx, gw_ih, gw_hh, gb, np.array(to_h.T, order="C"), np.array(to_c.T, order="C")


def _slopes(gh: Any, gc: Any, w_hh: Any, kept: Any, gates: Any, order: slice) -> tuple[Any, Any]:
    steps, size, n = gh.shape
    transposed = w_hh.T
    with workspace(6 * gh.size, gh.dtype) as memory:
        # What the gradients of c' (for c, i, f and g) and of h (for o and c') are multiplied by
        factors = memory.reshape(steps, 6, size, n)
        blocks = kept[:-1]
        i, f, o, g, c = blocks.swapaxes(0, 1)
        by_c, by_i, by_f, by_g, by_o, by_t = factors.swapaxes(0, 1)
        by_c[...] = f
        np.subtract(1, blocks[:, :2], out=factors[:, 1:3])
        factors[:, 1:3] *= blocks[:, :2]
        by_i *= g
        by_f *= c
        np.tanh(kept[1:, 4], by_t)
        np.subtract(1, o, out=by_o)
        by_o *= o
        by_o *= by_t
        np.multiply(g, g, out=by_g)
        np.multiply(by_t, by_t, out=by_t)
        np.subtract(1, factors[:, 3::2], out=factors[:, 3::2])
        by_g *= i
        by_t *= o
        products = memory.reshape(steps, 6 * size, n)[:, size : 5 * size]
        to_h, to_c = np.zeros((size, n), gh.dtype), gc.copy()
        for arriving, product, late, early in zip(
            gh[::-1], products[::-1], factors[::-1, 4:], factors[::-1, :4], strict=True
        ):
            to_h += arriving
            late *= to_h
            to_c += late[1]
            early *= to_c
            to_c = early[0]
            np.matmul(transposed, product, out=to_h)
        gates[:, :, order] = factors[:, 1:5].transpose(1, 2, 0, 3)
        return to_h, to_c.copy()


@override("lstm_sequence", backend="numpy")
def lstm_sequence(
    F: Any, x: Any, w_ih: Any, w_hh: Any, bias: Any, h: Any, c: Any, *, backwards: bool
) -> Any:
    if not is_supported(x, w_ih, w_hh, bias, h, c):
        return NotImplemented
    return forward(_activate, x, w_ih, w_hh, bias, h, c, backwards)


@override("lstm_sequence_backward", backend="numpy")
def lstm_sequence_backward(
    F: Any,
    gh: Any,
    gc: Any,
    x: Any,
    w_ih: Any,
    w_hh: Any,
    bias: Any,
    h: Any,
    c: Any,
    columns: Any,
    kept: Any,
    *,
    backwards: bool,
    needs: tuple[bool, ...],
) -> Any:
    if kept is None or not kept.size:
        return NotImplemented
    return backward(_slopes, gh, gc, x, w_ih, w_hh, bias, columns, kept, backwards, needs)
