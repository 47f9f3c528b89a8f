"""Properties of decompositions: factors give the matrix back, vectors are orthonormal ..."""

from __future__ import annotations

import unittest
import warnings

import numpy as np
import torch
from parameterized import parameterized

from tests.op_db._device import OURS, SELF_CHECK, TORCH, tlc

SHAPES = [(3, 3), (6, 4), (4, 6), (2, 5, 3), (2, 1, 3, 5), (40, 30), (1, 1)]
SQUARES = [shape for shape in SHAPES if shape[-1] == shape[-2]] + [(2, 4, 4), (20, 20)]
DTYPES = {"float32": 2e-5, "float64": 1e-12, "complex64": 2e-5, "complex128": 1e-12}
LinAlgError = torch.linalg.LinAlgError if SELF_CHECK else tlc.linalg.LinAlgError


def cases(shapes):
    return [(dtype, shape) for dtype in DTYPES for shape in shapes]


def drawn(shape, dtype, side=OURS):
    rng = np.random.default_rng(sum(shape))
    array = rng.standard_normal(shape)
    if dtype.startswith("complex"):
        array = array + 1j * rng.standard_normal(shape)
    return side.tensor(array, dtype)


class Close(unittest.TestCase):
    def close(self, left, right, dtype, scale=20):
        left, right = OURS.numpy(left), OURS.numpy(right)
        self.assertEqual(left.shape, right.shape)
        size = max(1.0, np.abs(right).max(initial=0))
        np.testing.assert_allclose(left, right, rtol=0, atol=scale * DTYPES[dtype] * size)

    def orthonormal(self, q, dtype):
        one = np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1]))
        self.close(q.mH @ q, OURS.tensor(one, dtype), dtype)

    def ordered(self, values):
        self.assertTrue((np.diff(OURS.numpy(values), axis=-1) >= 0).all())


class TestFactors(Close):
    @parameterized.expand(cases(SHAPES))
    def test_qr(self, dtype, shape):
        x = drawn(shape, dtype)
        for mode in ("reduced", "complete"):
            q, r = tlc.linalg.qr(x, mode)
            self.orthonormal(q, dtype)
            self.close(q @ r, x, dtype)
            self.close(r.triu(), r, dtype, 0)
        empty, alone = tlc.linalg.qr(x, "r")
        self.assertEqual(tuple(empty.shape), (0,))
        self.close(alone, tlc.linalg.qr(x).R, dtype)

    @parameterized.expand(cases(SHAPES))
    def test_qr_has_the_signs_of_lapack(self, dtype, shape):
        if OURS.device == "cuda":
            self.skipTest("cuSOLVER chooses its own signs")
        for ours, theirs in zip(
            tlc.linalg.qr(drawn(shape, dtype)), torch.linalg.qr(drawn(shape, dtype, TORCH))
        ):
            np.testing.assert_allclose(
                OURS.numpy(ours), TORCH.numpy(theirs), rtol=0, atol=200 * DTYPES[dtype]
            )

    @parameterized.expand(cases([shape for shape in SHAPES if shape[-2] >= shape[-1]]))
    def test_reflections_make_q(self, dtype, shape):
        x = drawn(shape, dtype)
        a, tau = tlc.geqrf(x)
        q, r = tlc.linalg.householder_product(a, tau), a.triu()[..., : shape[-1], :]
        self.orthonormal(q, dtype)
        self.close(q @ r, x, dtype)
        whole = tlc.ormqr(
            a,
            tau,
            tlc.eye(shape[-2], dtype=x.dtype, device=x.device).expand(*shape[:-1], shape[-2]),
        )
        self.close(whole[..., : shape[-1]], q, dtype)
        self.close(tlc.ormqr(a, tau, x, transpose=True), a.triu(), dtype)
        self.close(tlc.ormqr(a, tau, x.mH, left=False), x.mH @ whole, dtype)

    @parameterized.expand(cases(SHAPES))
    def test_svd(self, dtype, shape):
        x = drawn(shape, dtype)
        for full in (True, False):
            u, s, vh = tlc.linalg.svd(x, full)
            self.orthonormal(u, dtype)
            self.orthonormal(vh.mH, dtype)
            k = min(shape[-2:])
            self.close((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], x, dtype)
            self.ordered(-s)
            self.assertEqual(str(s.dtype)[6:], OURS.dtype(x.abs()))
            self.assertEqual(u.shape[-1], shape[-2] if full else k)
        self.close(tlc.linalg.svdvals(x), s, dtype)
        u, s, v = tlc.svd(x)
        self.close((u * s.unsqueeze(-2)) @ v.mH, x, dtype)

    @parameterized.expand(cases(SQUARES))
    def test_eigh(self, dtype, shape):
        x = drawn(shape, dtype)
        whole = x.tril() + x.tril(-1).mH
        whole = (whole + whole.mH) / 2
        for matrix, side in ((whole, "L"), (whole.tril(), "L"), (whole.triu(), "U")):
            values, vectors = tlc.linalg.eigh(matrix, side)
            self.orthonormal(vectors, dtype)
            self.close((vectors * values.unsqueeze(-2)) @ vectors.mH, whole, dtype)
            self.ordered(values)
            self.close(tlc.linalg.eigvalsh(matrix, side), values, dtype)

    @parameterized.expand(cases(SQUARES))
    def test_eig(self, dtype, shape):
        x = drawn(shape, dtype)
        values, vectors = tlc.linalg.eig(x)
        kind = {"4": "complex64", "8": "complex128"}[str(x.abs().element_size())]
        self.assertEqual((OURS.dtype(values), OURS.dtype(vectors)), (kind, kind))
        self.close(x.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2), dtype)
        ones = np.ones(values.shape)
        self.close(vectors.abs().square().sum(-2), OURS.tensor(ones, OURS.dtype(x.abs())), dtype)
        self.close(tlc.linalg.eigvals(x).sum(-1), values.sum(-1), dtype, 50)

    def test_real_eigenvalues_are_complex_numbers(self):
        values = tlc.linalg.eigvals(OURS.tensor(np.diag([1.0, 2.0]), "float64"))
        self.assertEqual(OURS.dtype(values), "complex128")

    @parameterized.expand(cases(SHAPES))
    def test_pinv(self, dtype, shape):
        """The four equations of Moore and Penrose."""
        x = drawn(shape, dtype)
        y = tlc.linalg.pinv(x)
        self.close(x @ y @ x, x, dtype)
        self.close(y @ x @ y, y, dtype, 200)
        self.close((x @ y).mH, x @ y, dtype)
        self.close((y @ x).mH, y @ x, dtype)

    @parameterized.expand(cases([(6, 4), (4, 6), (2, 8, 5)]))
    def test_low_rank(self, dtype, shape):
        """A matrix of rank 2 is found again."""
        x = drawn((*shape[:-1], 2), dtype) @ drawn((*shape[:-2], 2, shape[-1]), dtype)
        u, s, v = tlc.svd_lowrank(x, 3)
        self.close((u * s.unsqueeze(-2)) @ v.mH, x, dtype, 100)
        shift = drawn(shape[-1:], dtype)
        u, s, v = tlc.svd_lowrank(x + shift, 3, M=shift)
        self.close((u * s.unsqueeze(-2)) @ v.mH, x, dtype, 100)
        self.assertTrue((OURS.numpy(tlc.linalg.matrix_rank(x)) == 2).all())
        u, s, v = tlc.pca_lowrank(x + shift, 2)
        self.close((u * s.unsqueeze(-2)) @ v.mH, x - x.mean(-2, True), dtype, 100)

    def test_pca_lowrank_refuses(self):
        x = drawn((6, 4), "float32")
        for options in ({"q": 5}, {"q": -1}, {"niter": -1}):
            with self.assertRaises(ValueError):
                tlc.pca_lowrank(x, **options)

    @parameterized.expand(cases(SQUARES))
    def test_matrix_exp(self, dtype, shape):
        """exp(x) has the eigenvalues' exponentials, and its inverse is exp(-x)."""
        x = drawn(shape, dtype)
        values, vectors = tlc.linalg.eig(x)
        wanted = (vectors * values.exp().unsqueeze(-2)) @ tlc.linalg.inv(vectors)
        y = tlc.matrix_exp(x)
        self.close(y.to(wanted.dtype), wanted, dtype, 500)
        if shape[-1] < 5:
            one = np.broadcast_to(np.eye(shape[-1]), shape)
            self.close(y @ tlc.matrix_exp(-x), OURS.tensor(one, dtype), dtype, 1000)

    @parameterized.expand(["float16", "bfloat16"])
    def test_matrix_exp_of_two_bytes(self, dtype):
        if SELF_CHECK:
            self.skipTest("PyTorch's is infinite")
        x = drawn((3, 3), "float32")
        got = tlc.matrix_exp(x.to(getattr(tlc, dtype)))
        self.assertEqual(OURS.dtype(got), dtype)
        np.testing.assert_allclose(
            OURS.numpy(got.float()), OURS.numpy(tlc.matrix_exp(x)), rtol=0.05, atol=0.05
        )

    def test_matrix_exp_of_a_batch_is_that_of_each(self):
        """However different the scalings are."""
        if SELF_CHECK:
            self.skipTest("PyTorch's digits depend on what else is in the batch")
        x = drawn((2, 3, 3), "float64") * OURS.tensor([[[0.01]], [[30.0]]], "float64")
        both = tlc.matrix_exp(x)
        for i in range(2):
            np.testing.assert_allclose(
                OURS.numpy(both[i]), OURS.numpy(tlc.matrix_exp(x[i])), rtol=1e-10
            )


class TestGradients(Close):
    """What the table does not reach."""

    PHASES = {
        "svd": lambda x: tlc.linalg.svd(x, False)[0].sum().abs(),
        "eigh": lambda x: tlc.linalg.eigh(x)[1].sum().abs(),
        "eig": lambda x: tlc.linalg.eig(x)[1].sum().abs(),
    }

    @parameterized.expand(sorted(PHASES))
    def test_phases(self, name):
        if OURS.device == "cuda":
            self.skipTest("a CUDA device does not read values back to see it")
        x = drawn((3, 3), "complex128").requires_grad_(True)
        loss = self.PHASES[name](x)
        for recorded in (False, True):
            with self.assertRaisesRegex(RuntimeError, "backward: The .* in the complex case"):
                tlc.autograd.grad(loss, x, create_graph=recorded, retain_graph=True)

    def test_eig_of_a_real_matrix_has_phases_too(self):
        if OURS.device == "cuda":
            self.skipTest("a CUDA device does not read values back to see it")
        x = OURS.tensor([[1.0, -2.0], [3.0, 1.0]], "float64").requires_grad_(True)
        with self.assertRaisesRegex(RuntimeError, "linalg_eig_backward"):
            tlc.linalg.eig(x)[1].sum().abs().backward()

    @parameterized.expand([("complete", (4, 3)), ("r", (3, 3))])
    def test_qr_refuses(self, mode, shape):
        x = drawn(shape, "float64").requires_grad_(True)
        r = tlc.linalg.qr(x, mode).R
        with self.assertRaisesRegex(RuntimeError, f"mode='{mode}'"):
            r.sum().backward()

    def test_geqrf_refuses(self):
        x = drawn((3, 3), "float64").requires_grad_(True)
        with self.assertRaises(NotImplementedError):
            tlc.geqrf(x).a.sum().backward()

    VALUES = {
        "svd": lambda x: tlc.linalg.svd(x).S,
        "svdvals": lambda x: tlc.linalg.svdvals(x),
        "eigh": lambda x: tlc.linalg.eigh(x).eigenvalues,
        "eigvals": lambda x: tlc.linalg.eigvals(x).real,
    }

    @parameterized.expand(sorted(VALUES))
    def test_equal_values(self, name):
        """The sum of equal eigenvalues has a gradient, as the vectors take no part."""
        x = OURS.tensor(2 * np.eye(3), "float64").requires_grad_(True)
        self.VALUES[name](x).sum().backward()
        np.testing.assert_allclose(OURS.numpy(x.grad), np.eye(3), atol=1e-12)

    def test_nuclear_norm_of_zeros(self):
        x = OURS.tensor(np.zeros((2, 3)), "float64").requires_grad_(True)
        tlc.linalg.matrix_norm(x, "nuc").backward()
        self.assertTrue(np.isfinite(OURS.numpy(x.grad)).all())

    def test_qr_of_a_singular_matrix(self):
        x = OURS.tensor(np.zeros((2, 2)), "float64").requires_grad_(True)
        tlc.linalg.qr(x).R.sum().backward()
        self.assertTrue(np.isnan(OURS.numpy(x.grad)).all())


class TestFace(Close):
    @parameterized.expand(["eigh", "eigvalsh", "svd", "svdvals"])
    def test_no_convergence(self, name):
        if OURS.device == "cuda":
            self.skipTest("cuSOLVER returns NaN")
        with self.assertRaisesRegex(LinAlgError, "failed to converge"):
            getattr(tlc.linalg, name)(OURS.tensor(np.full((3, 3), np.nan), "float64"))

    def test_names_of_results(self):
        x = drawn((3, 3), "float64")
        for name, fields in (
            ("svd", "U S Vh"), ("qr", "Q R"), ("eigh", "eigenvalues eigenvectors"),
            ("eig", "eigenvalues eigenvectors"),
        ):  # fmt: skip
            result = getattr(tlc.linalg, name)(x)
            self.assertEqual(type(result).__name__, f"linalg_{name}")
            self.assertIs(type(result), getattr(tlc.return_types, f"linalg_{name}"))
            for number, field in enumerate(fields.split()):
                self.assertIs(getattr(result, field), result[number])

    @parameterized.expand(["svd", "qr", "eigh", "eig"])
    def test_out(self, name):
        x = drawn((3, 3), "float64")
        wanted = getattr(tlc.linalg, name)(x)
        out = tuple(OURS.empty(OURS.dtype(part)) for part in wanted)
        got = getattr(tlc.linalg, name)(x, out=out)
        for target, part, value in zip(out, got, wanted, strict=True):
            self.assertIs(part, target)
            np.testing.assert_array_equal(OURS.numpy(target), OURS.numpy(value))

    def test_old_names_without_vectors(self):
        x = drawn((4, 3), "float64")
        u, s, v = tlc.svd(x, compute_uv=False)
        self.assertEqual([tuple(z.shape) for z in (u, s, v)], [(4, 4), (3,), (3, 3)])
        self.assertFalse(OURS.numpy(u).any() or OURS.numpy(v).any())

    @unittest.skipIf(SELF_CHECK, "PyTorch warns once in a process")
    def test_old_qr_warns(self):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            q, r = tlc.qr(drawn((4, 3), "float64"), some=False)
        self.assertIn("torch.qr is deprecated", str(seen[0].message) if seen else "")
        self.assertEqual((tuple(q.shape), tuple(r.shape)), ((4, 4), (4, 3)))

    @parameterized.expand(["eig", "symeig", "matrix_rank"])
    def test_removed(self, name):
        x = drawn((2, 2), "float64")
        homes = [tlc] if name == "matrix_rank" else [tlc, tlc.Tensor]
        for home in homes:
            with self.assertRaisesRegex(RuntimeError, "is now removed"):
                getattr(home, name)(x)
        self.assertFalse(hasattr(tlc.Tensor, "matrix_rank"))

    def test_autocast_of_reflections(self):
        """No product inside runs in two bytes."""
        if OURS.device != "cpu":
            self.skipTest("it is so on the CPU alone")
        x = drawn((4, 3), "float32")
        a, tau = tlc.geqrf(x)
        with tlc.autocast("cpu"):
            q, r = tlc.linalg.householder_product(a, tau), tlc.ormqr(a, tau, x, transpose=True)
        self.orthonormal(q, "float32")
        self.close(r, a.triu(), "float32")

    @parameterized.expand(["svd", "svdvals", "qr", "eigh", "eigvalsh", "eig", "eigvals", "cond"])
    def test_autocast(self, name):
        """On a CPU decompositions run in float32; without autocast they refuse two bytes."""
        if OURS.device != "cpu":
            self.skipTest("it is so on the CPU alone")
        function = getattr(tlc.linalg, name)
        x = drawn((3, 3), "bfloat16")
        with tlc.autocast("cpu"):
            got = function(x)
        wanted = function(x.float())
        for left, right in zip(*[(r if isinstance(r, tuple) else (r,)) for r in (got, wanted)]):
            self.close(left, right, OURS.dtype(right))
        with self.assertRaises(RuntimeError):
            function(x)

    @unittest.skipIf(SELF_CHECK, "PyTorch has no such namespace")
    def test_the_standards_words(self):
        """Of the array API standard's extension, over Tensors."""
        words = tlc.array_api.linalg
        x = drawn((4, 3), "float64")
        u, s, vh = words.svd(x, full_matrices=False)
        self.close((u * s) @ vh, x, "float64")
        self.close(words.svdvals(x), s, "float64")
        self.close(words.pinv(x, rtol=1e-10) @ x, OURS.tensor(np.eye(3), "float64"), "float64")
        self.assertEqual(words.matrix_rank(x, rtol=1e-10).item(), 3)
        q, r = words.qr(x, mode="complete")
        self.close(q @ r, x, "float64")
        square = x[:3] + x[:3].mT
        values, vectors = words.eigh(square)
        self.close((vectors * values) @ vectors.mT, square, "float64")
        self.close(words.eigvalsh(square), values, "float64")
        self.close(words.eigvals(square).sum().real, values.sum(), "float64")
        self.close(words.eig(square).eigenvalues.sum().real, values.sum(), "float64")

    def test_driver(self):
        if OURS.device == "cuda":
            self.skipTest("it may be named there")
        for name in ("svd", "svdvals"):
            with self.assertRaisesRegex(RuntimeError, "driver="):
                getattr(tlc.linalg, name)(drawn((2, 2), "float64"), driver="gesvd")
