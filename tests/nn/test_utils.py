"""`nn.utils` against torch."""

from __future__ import annotations

import unittest

import numpy as np
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.device import DEVICE


def parameters(lib):
    """Two parameters with gradients from a fixed seed, and one without."""
    rng = np.random.default_rng(0)
    made = []
    for shape in ((3, 4), (5,), (2,)):
        values = rng.standard_normal((2, *shape)).astype("f4")
        device = DEVICE if lib is tlc else "cpu"
        parameter = lib.nn.Parameter(lib.tensor(values[0], device=device))
        if shape != (2,):
            parameter.grad = lib.tensor(values[1] * 3, device=device)
        made.append(parameter)
    return made


def grads(entries):
    return [entry.grad.cpu().numpy() for entry in entries if entry.grad is not None]


class ClipTest(unittest.TestCase):
    @parameterized.expand([(1.0, 2.0), (1.0, float("inf")), (100.0, 2.0), (0.5, 1.0)])
    def test_norm(self, max_norm, norm_type):
        results = []
        for lib in (tlc, torch):
            entries = parameters(lib)
            total = lib.nn.utils.clip_grad_norm_(entries, max_norm, norm_type)
            results.append((total.item(), grads(entries)))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6)
        for ours, theirs in zip(*[result[1] for result in results], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=2e-6)

    def test_value(self):
        results = []
        for lib in (tlc, torch):
            entries = parameters(lib)
            lib.nn.utils.clip_grad_value_(entries, 0.5)
            results.append(grads(entries))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_array_equal(ours, theirs)

    def test_nonfinite(self):
        for lib in (tlc, torch):
            entries = parameters(lib)
            entries[0].grad[0, 0] = float("nan")
            with self.assertRaisesRegex(RuntimeError, "non-finite"):
                lib.nn.utils.clip_grad_norm_(entries, 1.0, error_if_nonfinite=True)


class VectorTest(unittest.TestCase):
    def test_round_trip(self):
        entries = parameters(tlc)
        vector = tlc.nn.utils.parameters_to_vector(entries)
        assert vector.shape == (19,)
        tlc.nn.utils.vector_to_parameters(vector * 2, entries)
        expected = np.concatenate([p.detach().numpy().ravel() for p in parameters(torch)]) * 2
        found = tlc.nn.utils.parameters_to_vector(entries).detach().cpu().numpy()
        np.testing.assert_allclose(found, expected)
