"""Convolutions of drawn geometries against PyTorch; the CPU's forms against the generic ones."""

from __future__ import annotations

import random
import unittest

import numpy as np
from parameterized import parameterized

from tensorflow_lite_clone import backends
from tensorflow_lite_clone.dispatch.op import TABLE
from tests.op_db._device import OURS, SELF_CHECK, TORCH


def geometry(seed):
    """A convolution, or a transposed one, of one to three axes: function, shapes, options."""
    rng = random.Random(seed)
    ndim = rng.choice([1, 2, 2, 2, 3])
    depthwise, transposed = rng.random() < 0.2, rng.random() < 0.35
    groups = rng.choice([2, 3, 5] if depthwise else [1, 1, 1, 2, 3])
    per_group = [1 if depthwise else rng.randint(1, 3) for _ in range(2)]
    # from 256 windows on the CPU multiplies sample by sample
    longest = 6 if ndim == 3 else rng.choice([9, 9, 20])
    kernel = [rng.randint(1, 3) for _ in range(ndim)]
    stride = [rng.choice([1, 1, 2, 3]) for _ in range(ndim)]
    if rng.random() < 0.3:
        stride = [1] * ndim
    dilation = [rng.choice([1, 1, 2]) for _ in range(ndim)]
    padding = [rng.randint(0, 2) for _ in range(ndim)]
    size = [rng.randint(5 if ndim < 3 else 4, longest) for _ in range(ndim)]
    batch = rng.randint(1, 3)
    inputs, outputs = groups * per_group[0], groups * per_group[1]
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if transposed:
        options["padding"] = [min(p, k // 2) for p, k in zip(padding, kernel)]
        most = [max(s, d) - 1 for s, d in zip(stride, dilation)]
        options["output_padding"] = [rng.randint(0, m) for m in most]
        weight = (inputs, outputs // groups, *kernel)
    else:
        size = [max(n, d * (k - 1) + 1) for n, d, k in zip(size, dilation, kernel)]
        weight = (outputs, inputs // groups, *kernel)
    name = f"conv_transpose{ndim}d" if transposed else f"conv{ndim}d"
    return name, ((batch, inputs, *size), weight, (outputs,)), options


class TestGeometry(unittest.TestCase):
    @parameterized.expand([(seed,) for seed in range(60)])
    def test(self, seed):
        """Values, and gradients of orders one and two."""
        name, shapes, options = geometry(seed)
        results = [self.run_on(side, name, shapes, options) for side in (OURS, TORCH)]
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, 1e-9, 1e-9, err_msg=f"{name} {options}")

    def run_on(self, side, name, shapes, options):
        rng = np.random.default_rng(0)
        grad = side.module.autograd.grad
        inputs = [
            side.tensor(rng.standard_normal(s), "float64").requires_grad_(True) for s in shapes
        ]
        y = getattr(side.module.nn.functional, name)(*inputs, **options)
        g = side.tensor(rng.standard_normal(tuple(y.shape)), "float64").requires_grad_(True)
        first = grad(y, inputs, g, create_graph=True)
        second = grad(sum((gx * gx * gx).sum() for gx in first), [*inputs[:2], g])
        return [side.numpy(t) for t in (y.detach(), *[t.detach() for t in (*first, *second)])]


@unittest.skipIf(SELF_CHECK or OURS.device != "cpu", "about the CPU's forms")
class TestForms(unittest.TestCase):
    @parameterized.expand([(seed,) for seed in range(40)])
    def test(self, seed):
        """The columns of blocks, merged blocks and depthwise sums equal the generic windows."""
        name, (x, w, _), options = geometry(seed)
        if "transpose" in name:
            self.skipTest("made of the others")
        F = backends.load("cpu").F
        rng = np.random.default_rng(seed)
        x, w = rng.standard_normal((70, *x[1:])), rng.standard_normal(w)  # several blocks
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
        y = F.conv(x, w, None, **options)
        g = rng.standard_normal(y.shape)
        size, kernel = {"size": x.shape[2:]}, {"kernel": w.shape[2:]}
        for op, arrays, more in (
            ("conv", (x, w, None), {}),
            ("conv_backward_input", (g, w), size),
            ("conv_backward_weight", (g, x), kernel),
        ):
            own = getattr(F, op)(*arrays, **more, **options)
            generic = TABLE[op].forward(F, *arrays, **more, **options)
            np.testing.assert_allclose(own, generic, rtol=1e-9, atol=1e-9, err_msg=op)
