"""Dropout draws PyTorch's numbers: the same seed drops the same elements."""

from __future__ import annotations

import unittest

import numpy as np
import torch
from parameterized import parameterized

from tests.device import DEVICE
from tests.op_db._device import OURS, SELF_CHECK, TORCH

CASES = [
    ("dropout", (50, 7), None, "float32"),
    ("dropout", (5, 7, 9), (2, 0, 1), "float32"),
    ("dropout", (50, 7), None, "float64"),
    ("dropout", (50, 7), None, "bfloat16"),
    ("dropout1d", (7, 3), None, "float32"),
    ("dropout1d", (4, 7, 3), None, "float32"),
    ("dropout2d", (5, 7, 3, 3), None, "float32"),
    ("dropout3d", (5, 7, 3, 2, 2), None, "float32"),
    ("dropout3d", (7, 3, 2, 2), None, "float32"),
    ("alpha_dropout", (50, 7), None, "float32"),
    ("feature_alpha_dropout", (50, 7, 3), None, "float32"),
]


@unittest.skipIf(DEVICE == "cuda", "the streams of devices are their own")
class TestStream(unittest.TestCase):
    def both(self, name, shape, order, dtype, **options):
        """The result, and what the generator gives next, on both sides."""
        array = np.random.default_rng(0).standard_normal(shape)
        results = []
        for side in (OURS, TORCH):
            x = side.tensor(array, dtype)
            x = x if order is None else x.permute(order)
            side.module.manual_seed(3)
            function = getattr(side.module.nn.functional, name)
            y = side.call(function, x, p=0.3, training=True, **options)
            following = side.module.rand(3, device=side.device)
            results.append((side.numpy(y), side.numpy(following)))
        return results

    @parameterized.expand(CASES)
    def test_values(self, name, shape, order, dtype):
        for options in ({}, {"inplace": True}):
            ours, theirs = self.both(name, shape, order, dtype, **options)
            np.testing.assert_array_equal(ours[0], theirs[0])
            np.testing.assert_array_equal(ours[1], theirs[1])

    def test_gradient_keeps_what_was_kept(self):
        x = OURS.tensor(np.ones((20, 5)), "float32").requires_grad_(True)
        y = OURS.module.nn.functional.dropout(x, 0.4)
        y.sum().backward()
        np.testing.assert_array_equal(OURS.numpy(x.grad), OURS.numpy(y))

    @parameterized.expand([(0.0, True), (1.0, True), (0.5, False)])
    def test_nothing_is_drawn(self, p, training):
        torch.manual_seed(5)
        wanted = torch.rand(3).numpy()
        OURS.module.manual_seed(5)
        OURS.module.nn.functional.dropout(OURS.tensor(np.ones(9), "float32"), p, training)
        np.testing.assert_array_equal(OURS.numpy(OURS.module.rand(3)), wanted)

    def test_torch_room(self):
        if SELF_CHECK:
            self.skipTest("PyTorch's own")
        x = OURS.tensor(np.ones((3, 4)), "float32")
        for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
            self.assertIs(getattr(OURS.module, name)(x, 0.5, False), x)
            with self.assertRaises(RuntimeError):
                getattr(OURS.module, name)(x, 1.5, True)
