"""Cells of recurrent networks against torch: text, initial values, steps, gradients, errors."""

from __future__ import annotations

import unittest

import numpy as np
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.device import DEVICE

CELLS = [
    ("LSTMCell", lambda nn: nn.LSTMCell(4, 5), 2),
    ("LSTMCell_no_bias", lambda nn: nn.LSTMCell(4, 5, bias=False), 2),
    ("GRUCell", lambda nn: nn.GRUCell(4, 5), 1),
    ("RNNCell", lambda nn: nn.RNNCell(4, 5), 1),
    ("RNNCell_relu", lambda nn: nn.RNNCell(4, 5, bias=False, nonlinearity="relu"), 1),
]


def steps(lib, make, states, batch, given):
    """Text, initial weights, states after three steps, all gradients."""
    lib.manual_seed(5)
    cell = make(lib.nn)
    device = DEVICE if lib is tlc else "cpu"
    initial = [p.detach().numpy().copy() for p in cell.parameters()]
    cell.to(device)
    rng = np.random.default_rng(1)

    def drawn(*shape):
        values = rng.standard_normal((*batch, *shape)).astype("f4")
        return lib.tensor(values, device=device, requires_grad=True)

    inputs = [drawn(4) for _ in range(3)]
    hx = None
    leaves = inputs + list(cell.parameters())
    if given:
        start = [drawn(5) for _ in range(states)]
        leaves += start
        hx = start[0] if states == 1 else tuple(start)
    for x in inputs:
        hx = cell(x, hx)
    last = [hx] if states == 1 else list(hx)
    sum((h * h).sum() for h in last).backward()
    values = [*last, *(leaf.grad for leaf in leaves)]
    return repr(cell), list(cell.state_dict()), initial, [v.detach().cpu().numpy() for v in values]


class CellTest(unittest.TestCase):
    @parameterized.expand(CELLS)
    def test_steps(self, _, make, states):
        for batch in ((3,), ()):
            for given in (False, True):
                ours = steps(tlc, make, states, batch, given)
                theirs = steps(torch, make, states, batch, given)
                self.assertEqual(ours[:2], theirs[:2])
                for mine, others in zip(ours[2] + ours[3], theirs[2] + theirs[3], strict=True):
                    np.testing.assert_allclose(mine, others, rtol=1e-5, atol=2e-6)

    @parameterized.expand(CELLS)
    def test_errors(self, _, make, states):
        def attempts(lib):
            zeros = lambda *shape: lib.zeros(*shape, device=DEVICE if lib is tlc else "cpu")
            pair = lambda h: h if states == 1 else (h, h)
            cell = make(lib.nn)
            if lib is tlc:
                cell.to(DEVICE)
            for call in (
                lambda: cell(zeros(2, 2, 4)),
                lambda: cell(zeros(2, 3)),
                lambda: cell(zeros(2, 4), pair(zeros(3, 5))),
                lambda: cell(zeros(2, 4), pair(zeros(2, 3))),
                lambda: cell(zeros(2, 4), pair(zeros(2, 2, 5))),
                lambda: cell(zeros(2, 4), pair(zeros(5))),
            ):
                try:
                    call()
                except Exception as error:
                    yield type(error), str(error)
                else:
                    yield None

        self.assertEqual(list(attempts(tlc)), list(attempts(torch)))

    def test_unknown_nonlinearity(self):
        for lib in (tlc, torch):
            with self.assertRaisesRegex(RuntimeError, "Unknown nonlinearity: sine"):
                lib.nn.RNNCell(2, 3, nonlinearity="sine")(lib.zeros(1, 2))
