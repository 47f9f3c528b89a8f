"""What has no derivative says so, where it would otherwise be left out of a sum in silence."""

from __future__ import annotations

import unittest

from parameterized import parameterized

from tests.op_db._device import OURS, TORCH

WITHOUT_DERIVATIVE = {
    "unique": lambda torch, x: torch.unique(x),
    "unique_dim": lambda torch, x: torch.unique(x, dim=0, return_counts=True)[0],
    "unique_consecutive": lambda torch, x: torch.unique_consecutive(x),
    "bincount": lambda torch, x: x[0].long().abs().bincount(x[0]),
    "powsum": lambda torch, x: torch.linalg._powsum(x, 3, 1),
    "foreach_powsum": lambda torch, x: torch._foreach_powsum([x])[0],
}
LOSSES = {
    "binary_cross_entropy": lambda F, x, w: F.binary_cross_entropy(x, x.detach(), w),
    "with_logits": lambda F, x, w: F.binary_cross_entropy_with_logits(x, x.detach(), w),
    "pos_weight": lambda F, x, w: F.binary_cross_entropy_with_logits(x, x.detach(), pos_weight=w),
    "nll_loss": lambda F, x, w: F.nll_loss(x, x[:, 0].long(), w[0]),
    "cross_entropy": lambda F, x, w: F.cross_entropy(x, x[:, 0].long(), w[0]),
    "multi_margin_loss": lambda F, x, w: F.multi_margin_loss(x, x[:, 0].long(), 1, 1.0, w[0]),
    "soft_margin_loss": lambda F, x, w: F.soft_margin_loss(x, w),
    "batch_norm": lambda F, x, w: F.batch_norm(x, w[0], w[1].detach()),
}
VALUES = [[0.2, 0.7, 0.4], [0.9, 0.1, 0.3]]


def outcomes(function):
    """What `function(side)` raises on each side; the messages may differ."""
    found = []
    for side in (OURS, TORCH):
        try:
            function(side)
            found.append(None)
        except (RuntimeError, NotImplementedError) as error:
            found.append(type(error))
    return found


class TestNoGradient(unittest.TestCase):
    @parameterized.expand(WITHOUT_DERIVATIVE.items())
    def test_backward_raises(self, name, function):
        def run(side):
            x = side.tensor(VALUES, "float64").requires_grad_(True)
            y = function(side.module, x)
            self.assertTrue(y.requires_grad)
            (y.sum() + x.sum()).backward()

        ours, theirs = outcomes(run)
        self.assertIsNotNone(theirs)
        self.assertEqual(ours, theirs)

    @parameterized.expand(LOSSES.items())
    def test_constants(self, name, function):
        for grad, wanted in ((True, RuntimeError), (False, None)):

            def run(side, grad=grad):
                x = side.tensor(VALUES, "float64").requires_grad_(True)
                w = side.tensor(VALUES, "float64").requires_grad_(grad)
                function(side.module.nn.functional, x, w)

            self.assertEqual(outcomes(run), [wanted, wanted])

    @parameterized.expand([("scale",), ("zero_point",)])
    def test_quantizing_does_not_reach_scales(self, wanting):
        def run(side):
            levels = {name: side.tensor([0.5], "float32") for name in ("scale", "zero_point")}
            levels[wanting].requires_grad_(True)
            x = side.tensor([0.2, 0.7], "float32")
            side.module.fake_quantize_per_tensor_affine(x, *levels.values(), -8, 7)

        self.assertEqual(outcomes(run), [RuntimeError, RuntimeError])


if __name__ == "__main__":
    unittest.main()
