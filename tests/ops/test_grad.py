"""Gradients: against PyTorch's, and by central differences along a random direction."""

from __future__ import annotations

import unittest

import numpy as np

from tests.op_db import OPS
from tests.op_db._check import OURS, TORCH, GradientCase, failure_note, parametrize_rows
from tests.op_db._device import SELF_CHECK

STEP = 1e-5
ROWS = [op for op in OPS if op.supports_autograd and "float64" in op.dtypes]
TWICE = [op for op in ROWS if op.supports_gradgrad is True]

#: Rows of which some gradient requires one here alone, or in PyTorch alone; that one is zeros.
OTHERWISE = frozenset(
    """
    F.cross_entropy F.instance_norm F.instance_norm.running conv_tbc det instance_norm
    linalg.householder_product prod vander
    """.split()
)


def trials(op, modes):
    """The row's samples that have something to differentiate."""
    for sample in op.samples:
        trial = GradientCase(op, sample)
        if sample.mode in modes and trial.inputs:
            with failure_note(sample):
                yield trial


def dot(left, right) -> float:
    return float(sum(np.vdot(a, b) for a, b in zip(left, right, strict=True)))


class TestGrad(unittest.TestCase):
    def by_differences(self, trial, order):
        """<gradient of order k, u> is the slope of <order k-1, its upstream> in the direction u."""
        gradient = trial.derivative(OURS, order)
        directions = trial.directions("step", gradient)
        above, below = (
            dot(level, trial.directions(order, level))
            for level in (
                trial.derivative(OURS, order - 1, sign * STEP, directions) for sign in (1, -1)
            )
        )
        slope, wanted = dot(gradient, directions), (above - below) / (2 * STEP)
        size = max(1.0, abs(above), max((np.abs(g).max() for g in gradient if g.size), default=0.0))
        self.assertLess(abs(slope - wanted), 1e-6 * size, f"order {order}: {slope} and {wanted}")

    def against_torch(self, trial, order, dtype="float64"):
        wanted = trial.derivative(TORCH, order)
        got = trial.derivative(OURS, order, dtype=dtype)
        self.assertEqual(
            trial.wants_grad[OURS], trial.wants_grad[TORCH], "which results require gradients"
        )
        trial.compare(got, wanted, dtype)

    @parametrize_rows(ROWS)
    def test_first(self, op):
        beyond = self.beyond_torch(op, 1)
        for trial in trials(op, ("full", "torch")):
            if not beyond:
                self.against_torch(trial, 1)
            if trial.sample.mode == "full":
                self.by_differences(trial, 1)

    @parametrize_rows([op for op in ROWS if "float32" in op.dtypes and op.torch_grad_orders])
    def test_first_float32(self, op):
        for trial in trials(op, ("full", "torch")):
            self.against_torch(trial, 1, "float32")

    def beyond_torch(self, op, order):
        """Whether PyTorch cannot be asked; with PyTorch on both sides nothing is left to check."""
        if SELF_CHECK and op.torch_grad_orders < order:
            self.skipTest(f"PyTorch has no right derivative of order {order} here")
        return op.torch_grad_orders < order

    @parametrize_rows(TWICE)
    def test_second(self, op):
        beyond = self.beyond_torch(op, 2)
        for trial in trials(op, ("full",)):
            if not beyond:
                self.against_torch(trial, 2)
            self.by_differences(trial, 2)

    @parametrize_rows([op for op in ROWS if op.torch_grad_orders and op.name not in OTHERWISE])
    def test_gradients_require_grad_as_in_pytorch(self, op):
        """Upstream gradients are constant, so that only the formula of the first one decides."""
        for trial in trials(op, ("full", "torch")):
            self.assertEqual(trial.depends(OURS), trial.depends(TORCH))

    @parametrize_rows([op for op in TWICE if op.check_third_order])
    def test_third(self, op):
        self.beyond_torch(op, 3)
        for trial in trials(op, ("full",)):
            self.by_differences(trial, 3)

    @parametrize_rows([op for op in ROWS if op.supports_gradgrad is not True])
    def test_no_second(self, op):
        for trial in trials(op, ("full",)):
            with self.assertRaises(RuntimeError, msg=op.supports_gradgrad):
                trial.derivative(OURS, 2)
