"""A few eigenpairs by iteration: the extreme ones, generalized problems, preconditioners."""

from __future__ import annotations

import unittest

import numpy as np
from parameterized import parameterized

from tests.op_db._device import OURS, SELF_CHECK, tlc


def definite(size, seed=0):
    """A symmetric matrix with the eigenvalues 1 to `size`, and an orthonormal basis of them."""
    q = np.linalg.qr(np.random.default_rng(seed).standard_normal((size, size)))[0]
    return (q * np.arange(1.0, size + 1)) @ q.T, q


def inverse_root(b):
    values, vectors = np.linalg.eigh(b)
    return (vectors / np.sqrt(values)) @ vectors.T


class TestLobpcg(unittest.TestCase):
    @parameterized.expand([(40, 1), (40, 4), (12, 4), (150, 3)])
    def test_extreme_pairs(self, size, k):
        matrix, _ = definite(size)
        a = OURS.tensor(matrix, "float64")
        for largest, wanted in ((True, size - np.arange(k)), (False, 1.0 + np.arange(k))):
            values, vectors = tlc.lobpcg(a, k, largest=largest)
            np.testing.assert_allclose(OURS.numpy(values), wanted, rtol=1e-6)
            np.testing.assert_allclose(
                OURS.numpy(a @ vectors), OURS.numpy(vectors * values), atol=1e-4 * size
            )
            np.testing.assert_allclose(OURS.numpy(vectors.mT @ vectors), np.eye(k), atol=1e-8)

    @parameterized.expand([True, False])
    def test_generalized(self, largest):
        matrix, _ = definite(30)
        other = definite(30, 1)[0] / 30 + np.eye(30)
        root = inverse_root(other)
        wanted = np.linalg.eigvalsh(root @ matrix @ root)
        wanted = wanted[::-1][:3] if largest else wanted[:3]
        a, b = OURS.tensor(matrix, "float64"), OURS.tensor(other, "float64")
        values, vectors = tlc.lobpcg(a, 3, b, largest=largest)
        np.testing.assert_allclose(OURS.numpy(values), wanted, rtol=1e-6)
        np.testing.assert_allclose(OURS.numpy(vectors.mT @ b @ vectors), np.eye(3), atol=1e-7)

    @unittest.skipIf(SELF_CHECK, "PyTorch counts its iterations in another way")
    def test_a_preconditioner_saves_iterations(self):
        matrix, _ = definite(100)
        matrix = matrix @ matrix
        a = OURS.tensor(matrix, "float64")
        near = OURS.tensor(np.linalg.inv(matrix + 0.1 * np.eye(100)), "float64")
        start = OURS.tensor(np.random.default_rng(3).standard_normal((100, 2)), "float64")
        plain, helped = (
            tlc.lobpcg(a, X=start, iK=inverse, niter=6, largest=False)[0]
            for inverse in (None, near)
        )
        wanted = np.array([1.0, 4.0])
        np.testing.assert_allclose(OURS.numpy(helped), wanted, rtol=1e-6)
        self.assertGreater(np.abs(OURS.numpy(plain) - wanted).max(), 1e-3)

    def test_more_vectors_than_wanted(self):
        matrix, _ = definite(40)
        values, vectors = tlc.lobpcg(OURS.tensor(matrix, "float64"), 2, n=5)
        self.assertEqual((tuple(values.shape), tuple(vectors.shape)), ((2,), (40, 2)))
        np.testing.assert_allclose(OURS.numpy(values), [40, 39], rtol=1e-6)

    @unittest.skipIf(SELF_CHECK, "PyTorch counts its iterations in another way")
    def test_a_good_start_ends_at_once(self):
        matrix, basis = definite(20)
        start = OURS.tensor(basis[:, -2:][:, ::-1], "float64")
        values, _ = tlc.lobpcg(OURS.tensor(matrix, "float64"), X=start, niter=0)
        np.testing.assert_allclose(OURS.numpy(values), [20, 19], rtol=1e-10)

    def test_refuses(self):
        a = OURS.tensor(definite(6)[0], "float64").requires_grad_(True)
        b = OURS.tensor(np.eye(6), "float64")
        with self.assertRaisesRegex(ValueError, "B != I"):
            tlc.lobpcg(a, 1, b)[0].sum().backward()
        if not SELF_CHECK:
            with self.assertRaises(NotImplementedError):
                tlc.lobpcg(a, 1, tracker=print)
