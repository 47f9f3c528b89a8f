"""Attention with dropout drops what PyTorch drops, and differentiates it; nothing large is kept."""

from __future__ import annotations

import unittest

import numpy as np
import torch
from parameterized import parameterized

from tests.device import DEVICE
from tests.op_db._device import OURS, SELF_CHECK, TORCH

# (query heads, key heads, rows, columns, options, dtype): all at once, and in blocks
CASES = [
    (2, 2, 7, 5, {}, "float32"),
    (4, 2, 7, 5, {"enable_gqa": True}, "float32"),
    (2, 2, 57, 49, {}, "float32"),
    (2, 2, 57, 49, {"is_causal": True}, "float64"),
    (4, 2, 57, 49, {"enable_gqa": True}, "float64"),
    (2, 2, 17, 9, {}, "float16"),
]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 5e-2}


def plain(side, *args, **options):
    """PyTorch's fused kernels have no dropout to compare with, and no second derivative."""
    attention = side.module.nn.functional.scaled_dot_product_attention
    if side is OURS and not SELF_CHECK:
        return attention(*args, **options)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return attention(*args, **options)


@unittest.skipIf(DEVICE == "cuda", "the streams of devices are their own")
class TestDropout(unittest.TestCase):
    def both(self, heads, shared, rows, columns, dtype, p, **options):
        """Result, first and second gradients, and what the generator gives next, on both sides."""
        rng = np.random.default_rng(0)
        shapes = [(2, heads, rows, 8), (2, shared, columns, 8), (2, shared, columns, 6)]
        arrays = [rng.standard_normal(shape) for shape in shapes]
        results = []
        for side in (OURS, TORCH):
            inputs = [side.tensor(array, dtype).requires_grad_(True) for array in arrays]
            side.module.manual_seed(3)
            y = plain(side, *inputs, None, p, **options)
            following = side.module.rand(3, device=side.device)
            grad = side.module.autograd.grad
            first = grad((y * y).sum(), inputs, create_graph=True)
            second = grad(sum((g * g).sum() for g in first), inputs)
            results.append([side.numpy(x.detach()) for x in (y, *first, *second, following)])
        return results

    @parameterized.expand(CASES)
    def test_values(self, heads, shared, rows, columns, options, dtype):
        ours, theirs = self.both(heads, shared, rows, columns, dtype, 0.3, **options)
        for mine, other in zip(ours, theirs, strict=True):
            bound = TOLERANCE[dtype] * max(1.0, float(np.abs(other).max()))
            np.testing.assert_allclose(mine.astype(float), other.astype(float), atol=bound, rtol=0)

    def test_all_dropped(self):
        ours, theirs = self.both(2, 2, 7, 5, "float32", 1.0)
        for mine, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, other)

    def test_refuses(self):
        x = OURS.tensor(np.ones((1, 2, 3)), "float32")
        with self.assertRaises(RuntimeError):
            plain(OURS, x, x, x, dropout_p=1.5)


@unittest.skipIf(SELF_CHECK, "PyTorch chooses its own")
class TestMemory(unittest.TestCase):
    def test_weights_are_not_kept(self):
        q = OURS.tensor(np.ones((1, 2, 64, 4)), "float32").requires_grad_(True)
        y = plain(OURS, q, q, q)
        kept = [value.array.size for value in y.grad_fn.saved if value is not None]
        self.assertLess(max(kept), 64 * 64)


if __name__ == "__main__":
    unittest.main()
