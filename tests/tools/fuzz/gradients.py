"""First and second gradients of rows of the op table, with other sizes."""

from __future__ import annotations

from typing import Any

from tests.op_db._case import HostTensor, TensorSpec, tree_leaves, tree_map
from tests.op_db._check import OURS, TORCH, GradientCase
from tests.tools.fuzz.judging import ASSERT, outcome, refusals, said, skipped
from tests.tools.fuzz.plain import Random
from tests.tools.fuzz.rounding import compare_gradients
from tests.tools.fuzz.rows import ROWS, pick

DIFFERENTIABLE = [
    op
    for op in ROWS
    if op.supports_autograd and "float64" in op.dtypes and op.torch_grad_orders >= 1
]


class Gradient:
    """The gradient of a sample's random inputs along random upstream gradients."""

    def __init__(self, rng: Random) -> None:
        self.op, self.sample = pick(rng, DIFFERENTIABLE)
        twice = self.op.supports_gradgrad is True and self.op.torch_grad_orders >= 2
        self.order = 2 if twice and self.sample.mode == "full" and rng.random() < 0.3 else 1
        self.frozen = rng.random(16) < 0.25

    @property
    def name(self) -> str:
        return f"{self.op.name} (gradient)"

    def __repr__(self) -> str:
        return f"gradient {self.order} of {self.op.name}{self.sample!r}"

    def trial(self) -> GradientCase:
        """The sample with some inputs that do not require gradients."""
        trial = GradientCase(self.op, self.sample)
        turn = iter(self.frozen)

        def freeze(leaf: Any) -> Any:
            if not (isinstance(leaf, HostTensor) and leaf.requires_grad) or not next(turn, False):
                return leaf
            return leaf._replace(requires_grad=False)

        trial.drawn = tree_map(freeze, trial.drawn)
        trial.inputs = [v for v in tree_leaves(trial.drawn, HostTensor) if v.requires_grad]
        return trial

    def judge(self) -> str | None:
        """None, or how the outcome differs."""
        if self.sample.mode not in ("full", "torch"):
            return None
        shapes = [
            arg.shape for arg in tree_leaves((self.sample.args, self.sample.kwargs), TensorSpec)
        ]
        if "gradient" in self.op.skip_undefined_behavior and any(0 in shape for shape in shapes):
            skipped["an accident of PyTorch, named in the row"] += 1
            return None
        trial = self.trial()
        if not trial.inputs:
            return None
        theirs = outcome(lambda: trial.derivative(TORCH, self.order))
        ours = outcome(lambda: trial.derivative(OURS, self.order))
        refused = refusals(ours, theirs)
        if refused:
            return refused if isinstance(refused, str) else None

        def comparison() -> None:
            ASSERT.assertEqual(trial.wants_grad[OURS], trial.wants_grad[TORCH], "requires_grad")
            compare_gradients(trial, self.order, ours, theirs)

        return said(comparison)
