"""Steps of LSTM and GRU cells; gates lie beside each other in rows."""

from __future__ import annotations

import numpy as np

from tensorflow_lite_clone.backends.numba.kernels.elementary import sigmoid, tanh
from tensorflow_lite_clone.backends.numba.kernels.jit import kernel

_ONE, _TWO = np.float32(1), np.float32(2)


@kernel
def lstm_activate(start, stop, block, c, h):
    """Of the elements from `start` to `stop` of (hidden, n): see `Activate` in NumPy's form."""
    size = c.size
    gates, new_c, new_h = block.ravel(), c.ravel(), h.ravel()
    enter, forget, leave = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size]
    value, old = gates[3 * size : 4 * size], gates[4 * size :]
    for i in range(np.uintp(start), np.uintp(stop)):
        e, f, o = sigmoid(_TWO * enter[i]), sigmoid(_TWO * forget[i]), sigmoid(_TWO * leave[i])
        v = tanh(value[i])
        state = f * old[i] + e * v
        enter[i], forget[i], leave[i], value[i] = e, f, o, v
        new_c[i] = state
        new_h[i] = o * tanh(state)


@kernel
def lstm_slopes(start, stop, gh, block, new, to_h, to_c, target):
    """Of the same elements: the gradients of the gates i, f, g, o, (4, hidden, n), from what
    arrives, gh + to_h and to_c, which is that of the cell before afterwards."""
    size = to_c.size
    gates, cell, slopes = block.ravel(), new.ravel(), target.ravel()
    here, late, early = gh.ravel(), to_h.ravel(), to_c.ravel()
    enter, forget, leave = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size]
    value, old = gates[3 * size : 4 * size], gates[4 * size :]
    g_enter, g_forget = slopes[:size], slopes[size : 2 * size]
    g_value, g_leave = slopes[2 * size : 3 * size], slopes[3 * size :]
    for i in range(np.uintp(start), np.uintp(stop)):
        g, t = here[i] + late[i], tanh(cell[i])
        e, f, o, v = enter[i], forget[i], leave[i], value[i]
        s = early[i] + g * o * (_ONE - t * t)
        g_enter[i] = s * v * ((_ONE - e) * e)
        g_forget[i] = s * old[i] * ((_ONE - f) * f)
        g_value[i] = s * e * (_ONE - v * v)
        g_leave[i] = g * t * ((_ONE - o) * o)
        early[i] = s * f


@kernel
def lstm_cell_step(start, stop, gates, c, h, new):
    size = c.shape[1]
    for i in range(start, stop):
        row = gates[i]
        enter, forget = row[:size], row[size : 2 * size]
        value, leave = row[2 * size : 3 * size], row[3 * size :]
        for j in range(size):
            state = sigmoid(forget[j]) * c[i, j] + sigmoid(enter[j]) * tanh(value[j])
            new[i, j] = state
            h[i, j] = sigmoid(leave[j]) * tanh(state)


@kernel
def lstm_cell_step_backward(start, stop, gh, gc, gates, c, new, g_gates, g_c):
    size = c.shape[1]
    for i in range(start, stop):
        row, target = gates[i], g_gates[i]
        enter, forget = row[:size], row[size : 2 * size]
        value, leave = row[2 * size : 3 * size], row[3 * size :]
        g_enter, g_forget = target[:size], target[size : 2 * size]
        g_value, g_leave = target[2 * size : 3 * size], target[3 * size :]
        for j in range(size):
            e, f, v = sigmoid(enter[j]), sigmoid(forget[j]), tanh(value[j])
            o, t = sigmoid(leave[j]), tanh(new[i, j])
            s = gc[i, j] + gh[i, j] * o * (_ONE - t * t)
            g_enter[j] = s * v * ((_ONE - e) * e)
            g_forget[j] = s * c[i, j] * ((_ONE - f) * f)
            g_value[j] = s * e * (_ONE - v * v)
            g_leave[j] = gh[i, j] * t * ((_ONE - o) * o)
            g_c[i, j] = s * f


@kernel
def gru_cell_step(start, stop, x_gates, h_gates, h, new):
    size = h.shape[1]
    for i in range(start, stop):
        x, y = x_gates[i], h_gates[i]
        x_r, x_z, x_n = x[:size], x[size : 2 * size], x[2 * size :]
        h_r, h_z, h_n = y[:size], y[size : 2 * size], y[2 * size :]
        for j in range(size):
            n = tanh(x_n[j] + sigmoid(x_r[j] + h_r[j]) * h_n[j])
            new[i, j] = n + sigmoid(x_z[j] + h_z[j]) * (h[i, j] - n)


@kernel
def gru_cell_step_backward(start, stop, g, x_gates, h_gates, h, gx, gy, gh):
    size = h.shape[1]
    for i in range(start, stop):
        x, y, to_x, to_y = x_gates[i], h_gates[i], gx[i], gy[i]
        x_r, x_z, x_n = x[:size], x[size : 2 * size], x[2 * size :]
        h_r, h_z, h_n = y[:size], y[size : 2 * size], y[2 * size :]
        for j in range(size):
            r, z = sigmoid(x_r[j] + h_r[j]), sigmoid(x_z[j] + h_z[j])
            n = tanh(x_n[j] + r * h_n[j])
            gz = g[i, j] * (h[i, j] - n) * ((_ONE - z) * z)
            gn = g[i, j] * (_ONE - z) * (_ONE - n * n)
            gr = gn * h_n[j] * ((_ONE - r) * r)
            to_x[j], to_x[size + j], to_x[2 * size + j] = gr, gz, gn
            to_y[j], to_y[size + j], to_y[2 * size + j] = gr, gz, gn * r
            gh[i, j] = g[i, j] * z
