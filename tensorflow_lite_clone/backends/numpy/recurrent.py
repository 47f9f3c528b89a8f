"""An LSTM over all steps in a few large arrays, of which a step writes its part in place.

sigmoid(x) is (1 + tanh(x / 2)) / 2, so with the gates in the order i, f, o, g one call finds all
of them; the halves are in copies of the weight and of the input's part. Backwards, everything that
does not depend on gradients is calculated for all steps at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorflow_lite_clone.backends.numpy.scratch import scratch
from tensorflow_lite_clone.dispatch.table import override


def _declined(*arrays: Any) -> bool:
    kind = arrays[0].dtype
    return kind.kind != "f" or kind.itemsize == 2 or any([x.dtype != kind for x in arrays])


def _by_gate(x: Any) -> Any:
    """The view (steps, 4, n, hidden) of (steps, n, 4 hidden)."""
    steps, n, width = x.shape
    return x.reshape(steps, n, 4, width // 4).swapaxes(1, 2)


def _prepared(given: Any, made: Any) -> Any:
    """Parts i, f, g, o along the first axis, written as i, f, o, g, all but g halved."""
    np.multiply(given[:2], 0.5, out=made[:2])
    np.multiply(given[3], 0.5, out=made[2])
    made[3] = given[2]
    return made


@override("lstm_sequence", backend="numpy")
def lstm_sequence(F: Any, gates: Any, w: Any, h: Any, c: Any, *, backwards: bool) -> Any:
    if _declined(gates, w, h, c):
        return NotImplemented
    steps, n, width = gates.shape
    size = width // 4
    parts = w.reshape(4, size, size)
    turned = _prepared(parts, np.empty(parts.shape, w.dtype)).reshape(width, size).T
    after = np.empty((steps, 4, n, size), w.dtype)
    _prepared(_by_gate(gates).swapaxes(0, 1), after.swapaxes(0, 1))
    out, cells = np.empty((steps, n, size), w.dtype), np.empty((steps, n, size), w.dtype)
    product, room = np.empty((1, n, width), w.dtype), np.empty((n, size), w.dtype)
    products = _by_gate(product)[0]
    for step in range(steps)[:: -1 if backwards else 1]:
        z = after[step]
        np.matmul(h, turned, out=product[0])
        z += products
        np.tanh(z, z)
        sigmoids = z[:3]
        sigmoids *= 0.5
        sigmoids += 0.5
        i, f, o, g = z
        c = np.multiply(f, c, out=cells[step])
        c += np.multiply(i, g, out=room)
        h = np.tanh(c, out[step])
        h *= o
    return out, cells, after


@override("lstm_sequence_backward", backend="numpy")
def lstm_sequence_backward(
    F: Any,
    gh: Any,
    gc: Any,
    gates: Any,
    w: Any,
    h: Any,
    c: Any,
    out: Any,
    cells: Any,
    after: Any,
    *,
    backwards: bool,
) -> Any:
    if after is None or _declined(gh, gc, gates, w, h, c):
        return NotImplemented
    steps, n, size = out.shape
    first = -1 if backwards else 0
    later, earlier = (slice(0, -1), slice(1, None)) if backwards else (slice(1, None), slice(0, -1))
    ggates = np.empty(gates.shape, w.dtype)
    by_gate = _by_gate(ggates)
    to_h, to_c = np.zeros(h.shape, h.dtype), np.zeros(c.shape, c.dtype)
    with scratch(5 * out.size, w.dtype) as memory:
        # What the gradients of c' (for i, f and g) and of h (for o and c') are multiplied by
        factors = memory.reshape(steps, 5, n, size)
        i, f, o, g = after.swapaxes(0, 1)
        by_i, by_f, by_g, by_o, by_t = factors.swapaxes(0, 1)
        np.tanh(cells, by_t)
        np.subtract(1, after[:, :2], out=factors[:, :2])
        factors[:, :2] *= after[:, :2]
        by_i *= g
        by_f[later] *= cells[earlier]
        by_f[first] *= c
        np.subtract(1, o, out=by_o)
        by_o *= o
        by_o *= by_t
        np.multiply(g, g, out=by_g)
        np.multiply(by_t, by_t, out=by_t)
        np.subtract(1, factors[:, 2::2], out=factors[:, 2::2])
        by_g *= i
        by_t *= o
        for step in range(steps)[:: 1 if backwards else -1]:
            to_h += gh[step]
            to_c += gc[step]
            to_c += to_h * by_t[step]
            np.multiply(factors[step, :3], to_c, out=by_gate[step, :3])
            np.multiply(by_o[step], to_h, out=by_gate[step, 3])
            to_c *= f[step]
            np.matmul(ggates[step], w, out=to_h)
    gw = np.matmul(ggates[first].T, h)
    if steps > 1:
        rows = ggates[later].reshape(-1, 4 * size)
        gw += np.matmul(rows.T, out[earlier].reshape(-1, size))
    return ggates, gw, to_h, to_c
