"""Other names, kinds and orders of arguments that PyTorch takes: each expression on both sides."""

from __future__ import annotations

import unittest
import warnings

import numpy as np
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc

X, Y = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
TAKEN = """
F.softmax(x, 1, 3, torch.float64)
F.softmax(x, 1, 3, None)
F.log_softmax(x, 1, 3, torch.float64)
F.softmin(x, 1, 3, torch.float64)
torch.pow(self=2, exponent=x)
torch.float_power(self=2, exponent=x)
torch.remainder(self=2, other=x)
torch.xlogy(self=2, other=x.abs())
torch.special.xlogy(self=2, other=x.abs())
torch.special.xlog1py(self=2, other=x.abs())
torch.special.zeta(self=2, other=x.abs())
torch.bitwise_and(self=2, other=n)
torch.bitwise_or(self=2, other=n)
torch.bitwise_xor(self=2, other=n)
torch.bitwise_left_shift(self=2, other=n)
torch.bitwise_right_shift(self=2, other=n)
torch.where(x > 0, self=1.0, other=x)
torch.bucketize(self=1.0, boundaries=torch.tensor([0.0, 2.0]))
torch.searchsorted(torch.tensor([0.0, 2.0]), self=1.0)
torch.special.chebyshev_polynomial_t(x=0.5, n=n)
torch.special.hermite_polynomial_h(x=x, n=2)
torch.result_type(tensor=x, other=2.0)
torch.result_type(scalar=2, tensor=x)
torch.result_type(scalar1=2, scalar2=2.0)
torch.result_type(2, 2.0)
torch.sum(a=x)
torch.sum(x1=x, axis=0, keepdims=True)
torch.addcmul(x=x, tensor1=y, tensor2=y)
torch.cumsum(a=x, axis=0)
x.sum(dim=torch.tensor(1))
x.softmax(dim=torch.tensor(1))
torch.linalg.norm(x, dim=torch.tensor(0))
torch.linalg.norm(x, dim=np.int64(0))
torch.sparse.sum(x.to_sparse(), dim=np.int64(0)).to_dense()
torch.sparse.sum(x.to_sparse(), dim=torch.tensor(0)).to_dense()
F.embedding_bag(x, torch.tensor([0, 1]), torch.tensor([0]))
F.embedding_bag(torch.tensor([[1]]), x, include_last_offset=0)
F.gaussian_nll_loss(x, y, y.abs(), full=1)
F.triplet_margin_with_distance_loss(x, y, x + 1, swap=1)
F.gumbel_softmax(x, hard=1).sum()
F.interpolate(x[None], scale_factor=2, recompute_scale_factor=1)
F.max_unpool2d(x[:1, :1, None], n[:1, None, None] * 0, kernel_size=2.0, output_size=(2, 2))
F.unfold(x[None, None], np.array([2, 1]))
torch.histogramdd(x[:, :2], bins=[torch.tensor(3), 3])[0]
torch.histogramdd(x[:, :2], bins=torch.tensor(3))[0]
torch.histogramdd(x[:, :2], bins=np.int64(3))[0]
torch.Size([torch.tensor(2), 3])
torch.Size([np.int64(2), True])
torch.Size(torch.tensor([2, 3]))
F.huber_loss(x, y.double())
F.huber_loss(x.half(), y, reduction="sum")
F.huber_loss(x.bfloat16(), y, reduction="none")
F.huber_loss(x, y.double(), weight=x.abs())
F.soft_margin_loss(x, y.double())
F.soft_margin_loss(x.half(), y, reduction="none")
x.uniform_(**{"from": 2, "to": 2.0001}).round()
x.random_(**{"from": 2, "to": 3})
x.random_(to=1)
x.random_(1, to=2)
x.random_(2**24 - 100, None) >= 2**24 - 100
"""
REFUSED = """
torch.sum(a=x, input=x)
torch.sum(x, x=x)
torch.abs(self=x)
torch.result_type(tensor=x, scalar1=2)
torch.result_type(x)
F.softmax(x, 1, 3, 4)
F.poisson_nll_loss(x, y, full=1)
F.huber_loss(n, x[0, :2])
F.max_unpool2d(x[:1, :1, None], n[:1, None, None] * 0, kernel_size=2.0)
torch.histogramdd(x[:, :2], bins=[torch.tensor([0.0, 1.0]), 3])
torch.histogramdd(x[:, :2], bins=[3.0, 3])
torch.Size([2.0])
torch.Size(["a"])
torch.Size([torch.tensor(2.0)])
torch.Size([np.bool_(True)])
torch.Size([None])
x.uniform_(a=0)
(F.conv1d(x[None], y[:, :3, None]), F.conv1d(x[None], y[:, :3, None], None, 1.0))
torch.cdist(x, y, p=float("nan"))
torch.renorm(x, 2, 0, float("nan"))
torch.isclose(x, y, rtol=float("nan"))
torch.pinverse(x, None)
F.embedding_bag(torch.tensor([[1]]), x, padding_idx=100)
F.fractional_max_pool2d(x[None], (2, 2, 2), 2)
"""


def outcome(module, text):
    """The value, or the exception; tensors as (dtype, array)."""
    scope = {"torch": module, "F": module.nn.functional, "np": np}
    scope |= {"x": module.tensor(X), "y": module.tensor(Y), "n": module.tensor([1, 2])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = eval(text, scope)
        except Exception as error:
            return error
    return tuple(value) if isinstance(value, tuple) else value


class TestCallForms(unittest.TestCase):
    @parameterized.expand([(line,) for line in TAKEN.strip().splitlines()])
    def test_taken(self, text):
        ours, theirs = outcome(tlc, text), outcome(torch, text)
        self.same(ours, theirs)

    def same(self, ours, theirs):
        if isinstance(theirs, tuple) and not isinstance(ours, tlc.Tensor):
            self.assertEqual(len(ours), len(theirs))
            for left, right in zip(ours, theirs, strict=True):
                self.same(left, right)
        elif isinstance(theirs, torch.Tensor):
            self.assertEqual(str(ours.dtype), str(theirs.dtype))
            tolerance = 1e-2 if theirs.dtype.itemsize == 2 else 1e-5
            left, right = ours.double().numpy(), theirs.double().numpy()
            np.testing.assert_allclose(left, right, rtol=tolerance, atol=tolerance)
        else:
            self.assertEqual(str(ours), str(theirs))
            self.assertEqual(type(ours) is int, type(theirs) in (int, np.int64))

    @parameterized.expand([(line,) for line in REFUSED.strip().splitlines()])
    def test_refused(self, text):
        theirs = outcome(torch, text)
        self.assertIsInstance(theirs, Exception)
        self.assertIsInstance(outcome(tlc, text), type(theirs))

    def test_lists_are_true(self):
        for line in TAKEN.strip().splitlines():
            self.assertNotIsInstance(outcome(torch, line), Exception, line)


class TestResize(unittest.TestCase):
    def test_resize_keeps_to_its_memory(self):
        for module in (torch, tlc):
            base = module.zeros(10)
            part = base[1:3].resize_(2, 3)
            part.fill_(1)
            self.assertEqual(base.tolist(), [0.0] + [1.0] * 6 + [0.0] * 3)
