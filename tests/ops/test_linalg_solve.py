"""What the table's rows do not say of factorizations: complex gradients, messages, large ones."""

from __future__ import annotations

import unittest

import numpy as np
from parameterized import parameterized

from tests.op_db._check import flatten
from tests.op_db._device import OURS, SELF_CHECK, TORCH

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
BATCH = [[[1.0, 0.0], [0.0, 1.0]], SINGULAR]


def eye(torch, x):
    return torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)


def gram(torch, x):
    return x @ x.mH + eye(torch, x)


def lower(torch, x):
    return torch.tril(x, -1) + 3 * eye(torch, x)


GRADIENTS = {
    "cholesky": (lambda torch, x: torch.linalg.cholesky(x), (2, 3, 3)),
    "cholesky_upper": (lambda torch, x: torch.linalg.cholesky(x, upper=True), (2, 3, 3)),
    "cholesky_of_product": (lambda torch, x: torch.linalg.cholesky(gram(torch, x)), (4, 4)),
    "cholesky_solve": (
        lambda torch, x, b: torch.cholesky_solve(b, lower(torch, x)), (3, 3), (2, 3, 2)),
    "cholesky_inverse": (lambda torch, x: torch.cholesky_inverse(lower(torch, x)), (2, 3, 3)),
    "lu": (lambda torch, x: torch.linalg.lu(x)[1:], (2, 3, 3)),
    "lu_wide": (lambda torch, x: torch.linalg.lu(x)[1:], (3, 5)),
    "lu_tall": (lambda torch, x: torch.linalg.lu(x)[1:], (2, 5, 3)),
    "lu_factor": (lambda torch, x: torch.linalg.lu_factor(x)[0], (4, 4)),
    **{
        f"lu_solve_{left}_{adjoint}": (
            lambda torch, x, b, left=left, adjoint=adjoint: torch.linalg.lu_solve(
                *torch.linalg.lu_factor(x), b, left=left, adjoint=adjoint), (2, 3, 3), (3, 3))
        for left in (True, False) for adjoint in (True, False)
    },
    "solve": (lambda torch, x, b: torch.linalg.solve(x, b), (2, 3, 3), (3, 2)),
    "solve_right": (lambda torch, x, b: torch.linalg.solve(x, b, left=False), (3, 3), (2, 2, 3)),
    "solve_triangular": (
        lambda torch, x, b: torch.linalg.solve_triangular(x, b, upper=True), (3, 3), (2, 3, 2)),
    "solve_triangular_right": (
        lambda torch, x, b: torch.linalg.solve_triangular(
            x, b, upper=False, left=False, unitriangular=True), (2, 3, 3), (2, 3)),
    "triangular_solve": (
        lambda torch, x, b: tuple(torch.triangular_solve(b, x, transpose=True)), (3, 3), (3, 2)),
    "inv_ex": (lambda torch, x: torch.linalg.inv_ex(x)[0], (2, 3, 3)),
    "slogdet": (lambda torch, x: tuple(torch.linalg.slogdet(x)), (2, 3, 3)),
    "logdet": (lambda torch, x: torch.logdet(x), (2, 3, 3)),
    "lstsq": (lambda torch, x, b: torch.linalg.lstsq(x, b)[0], (2, 4, 3), (2, 4)),
    "lstsq_wide": (lambda torch, x, b: torch.linalg.lstsq(x, b)[0], (3, 5), (3, 2)),
    "lstsq_residuals": (
        lambda torch, x, b: torch.linalg.lstsq(x, b, driver="gelsd")[:2], (5, 3), (5, 2)),
    "tensorinv": (lambda torch, x: torch.linalg.tensorinv(x, 1), (4, 2, 2)),
    "tensorsolve": (lambda torch, x, b: torch.linalg.tensorsolve(x, b), (2, 3, 6), (2, 3)),
}  # fmt: skip


def drawn(rng, shape, complex_too=True):
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if complex_too else values


def matrices(name, shapes, rng):
    """Inputs of a function; those of a Cholesky factorization are positive definite."""
    arrays = [drawn(rng, shape) for shape in shapes]
    if name in ("cholesky", "cholesky_upper"):
        arrays[0] = arrays[0] @ arrays[0].conj().swapaxes(-1, -2) + np.eye(3)
    if name.startswith(("solve_tri", "triangular")):
        arrays[0] = arrays[0] + 3 * np.eye(3)
    return arrays


def gradients(side, function, arrays, order):
    rng = np.random.default_rng(3)

    def upstream(outputs):
        kinds = [side.dtype(output) for output in outputs]
        return [
            side.tensor(drawn(rng, tuple(output.shape), "complex" in kind), kind)
            for output, kind in zip(outputs, kinds, strict=True)
        ]

    inputs = [side.tensor(array, "complex128").requires_grad_(True) for array in arrays]
    found = flatten(function(side.module, *inputs))
    for number in range(1, order + 1):
        found = side.module.autograd.grad(
            found, inputs, upstream(found), create_graph=number < order
        )
    return [side.numpy(gradient) for gradient in found]


class TestComplexGradients(unittest.TestCase):
    @parameterized.expand([(name, order) for name in GRADIENTS for order in (1, 2)])
    def test(self, name, order):
        function, *shapes = GRADIENTS[name]
        arrays = matrices(name, shapes, np.random.default_rng(7))
        wanted = TORCH.call(gradients, TORCH, function, arrays, order)
        got = OURS.call(gradients, OURS, function, arrays, order)
        for left, right in zip(got, wanted, strict=True):
            size = max(1.0, np.abs(right).max())
            np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-10 * size)


class TestRealGradients(unittest.TestCase):
    def test_rank_deficient_least_squares(self):
        a = np.array([[1.0, 2, 3], [2, 4, 6], [1, 0, 1], [3, 1, 4]])
        b = np.array([[1.0], [2], [3], [5]])
        results = []
        for side in (OURS, TORCH):
            x = side.tensor(a, "float64").requires_grad_(True)
            y = side.tensor(b, "float64").requires_grad_(True)
            side.module.linalg.lstsq(x, y).solution.sum().backward()
            results.append((side.numpy(x.grad), side.numpy(y.grad)))
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)

    @unittest.skipIf(SELF_CHECK, "PyTorch gives the other triangle one as well")
    def test_only_what_is_read_has_a_gradient(self):
        x = OURS.tensor(np.array([[1.0, 7.0], [1.0, 2.0]]), "float64").requires_grad_(True)
        for function in (
            lambda torch: torch.cholesky_inverse(x),
            lambda torch: torch.cholesky_solve(torch.ones_like(x), x),
        ):
            (gradient,) = OURS.module.autograd.grad(function(OURS.module)[0].sum(), x)
            self.assertEqual(OURS.numpy(gradient)[0, 1], 0)
            self.assertNotEqual(OURS.numpy(gradient)[1, 0], 0)

    def test_ldl_has_none(self):
        x = OURS.tensor(np.eye(2), "float64").requires_grad_(True)
        factor, pivots = OURS.module.linalg.ldl_factor(x)
        self.assertTrue(factor.requires_grad)
        solution = OURS.module.linalg.ldl_solve(factor.detach(), pivots, x)
        for result in (factor, solution):
            with self.assertRaisesRegex(RuntimeError, "derivative for aten::linalg_ldl_.* is not"):
                result.sum().backward()


class TestBroadcasting(unittest.TestCase):
    @unittest.skipIf(SELF_CHECK, "PyTorch's pivots do not broadcast")
    def test_ldl_solve(self):
        """One matrix, two right sides: PyTorch reads pivots past their end there."""
        rng = np.random.default_rng(2)
        x = OURS.tensor(rng.standard_normal((3, 3)), "float64")
        b = OURS.tensor(rng.standard_normal((2, 3, 1)), "float64")
        linalg = OURS.module.linalg
        factor, pivots = linalg.ldl_factor(x)
        both = OURS.numpy(linalg.ldl_solve(factor, pivots, b))
        for i in range(2):
            one = OURS.numpy(linalg.ldl_solve(factor, pivots, b[i]))
            np.testing.assert_allclose(both[i], one, rtol=1e-12)


@unittest.skipIf(SELF_CHECK, "PyTorch has no array API namespace")
class TestStandard(unittest.TestCase):
    """The words of the array API standard."""

    def test(self):
        rng = np.random.default_rng(4)
        a = rng.standard_normal((2, 3, 3))
        a = a @ a.swapaxes(-1, -2) + np.eye(3)
        x = OURS.tensor(a, "float64")
        words = OURS.module.array_api.linalg
        factor = np.linalg.cholesky(a)
        np.testing.assert_allclose(OURS.numpy(words.cholesky(x)), factor, rtol=1e-12)
        upper = OURS.numpy(words.cholesky(x, upper=True))
        np.testing.assert_allclose(upper, factor.swapaxes(-1, -2), rtol=1e-12)
        for got, wanted in zip(words.slogdet(x), np.linalg.slogdet(a), strict=True):
            np.testing.assert_allclose(OURS.numpy(got), wanted, rtol=1e-12)

    @parameterized.expand([((3,),), ((2, 3, 1),), ((3, 2),), ((2, 3),)])
    def test_solve(self, shape):
        """A matrix is never taken for a batch of vectors, as `torch.linalg.solve` does."""
        rng = np.random.default_rng(6)
        size = 2 if shape == (2, 3) else 3
        a, b = rng.standard_normal((2, size, size)), rng.standard_normal(shape)
        x = OURS.module.array_api.linalg.solve(OURS.tensor(a, "float64"), OURS.tensor(b, "float64"))
        np.testing.assert_allclose(OURS.numpy(x), np.linalg.solve(a, b), rtol=1e-10)


MESSAGES = {
    "cholesky": lambda torch, x: torch.linalg.cholesky(x),
    "cholesky_ex": lambda torch, x: torch.linalg.cholesky_ex(x, check_errors=True),
    "old_cholesky": lambda torch, x: torch.cholesky(x),
    "inv": lambda torch, x: torch.linalg.inv(x),
    "inv_ex": lambda torch, x: torch.linalg.inv_ex(x, check_errors=True),
    "solve": lambda torch, x: torch.linalg.solve(x, x),
    "solve_ex": lambda torch, x: torch.linalg.solve_ex(x, x, check_errors=True),
    "cholesky_inverse": lambda torch, x: torch.cholesky_inverse(x - 1),
    "lu_factor": lambda torch, x: torch.linalg.lu_factor(x),
    "lu_factor_ex": lambda torch, x: torch.linalg.lu_factor_ex(x, check_errors=True),
}


class TestMessages(unittest.TestCase):
    @parameterized.expand([(name, kind) for name in MESSAGES for kind in ("single", "batch")])
    def test(self, name, kind):
        messages = []
        for side in (OURS, TORCH):
            x = side.tensor(np.array(BATCH if kind == "batch" else SINGULAR), "float64")
            error = RuntimeError if name.startswith("lu") else side.module.linalg.LinAlgError
            with self.assertRaises(error) as caught:
                side.call(MESSAGES[name], side.module, x)
            messages.append(str(caught.exception))
        self.assertEqual(*messages)

    def test_removed(self):
        x = OURS.tensor(np.eye(2), "float64")
        for name in ("solve", "lstsq"):
            for place in (OURS.module, OURS.module.Tensor):
                with self.assertRaisesRegex(RuntimeError, "removed"):
                    getattr(place, name)(x, x)


class TestOut(unittest.TestCase):
    @parameterized.expand(
        ["cholesky_ex", "inv_ex", "lu", "lu_factor", "lu_factor_ex", "ldl_factor",
         "ldl_factor_ex", "slogdet"]
    )  # fmt: skip
    def test_out_with_multiple_results(self, name):
        matrix = np.array([[4.0, 1.0], [1.0, 3.0]])
        results = []
        for side in (OURS, TORCH):
            function = getattr(side.module.linalg, name)
            x = side.tensor(matrix, "float64")
            out = tuple([side.empty(side.dtype(part)) for part in function(x)])
            result = side.call(function, x, out=out)
            self.assertTrue(all(got is given for got, given in zip(result, out, strict=True)))
            results.append([side.numpy(part) for part in out])
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)

    @parameterized.expand(["tensorinv", "tensorsolve"])
    def test_tensors(self, name):
        shapes = ((2, 3, 6),) if name == "tensorinv" else ((2, 3, 6), (2, 3))
        arrays = [np.random.default_rng(5).standard_normal(shape) for shape in shapes]
        arguments = [OURS.tensor(array, "float64") for array in arrays]
        out, function = OURS.empty("float64"), getattr(OURS.module.linalg, name)
        self.assertIs(function(*arguments, out=out), out)
        np.testing.assert_array_equal(OURS.numpy(out), OURS.numpy(function(*arguments)))


AUTOCAST = {
    "inv": lambda torch, x, p: torch.linalg.inv(x),
    "inv_ex": lambda torch, x, p: torch.linalg.inv_ex(x)[0],
    "cholesky": lambda torch, x, p: torch.linalg.cholesky(x),
    "old_cholesky": lambda torch, x, p: torch.cholesky(x),
    "cholesky_solve": lambda torch, x, p: torch.cholesky_solve(x, x),
    "cholesky_inverse": lambda torch, x, p: torch.cholesky_inverse(x),
    "lu_factor": lambda torch, x, p: torch.linalg.lu_factor(x)[0],
    "old_lu": lambda torch, x, p: torch.lu(x)[0],
    "lu_solve": lambda torch, x, p: torch.linalg.lu_solve(x, p, x),
    "old_lu_solve": lambda torch, x, p: torch.lu_solve(x, x, p),
    "ldl_factor": lambda torch, x, p: torch.linalg.ldl_factor(x)[0],
    "solve": lambda torch, x, p: torch.linalg.solve(x, x),
    "solve_ex": lambda torch, x, p: torch.linalg.solve_ex(x, x)[0],
    "solve_triangular": lambda torch, x, p: torch.linalg.solve_triangular(x, x, upper=True),
    "triangular_solve": lambda torch, x, p: torch.triangular_solve(x, x)[0],
    "slogdet": lambda torch, x, p: torch.slogdet(x)[1],
    "lstsq": lambda torch, x, p: torch.linalg.lstsq(x, x)[0],
    "tensorinv": lambda torch, x, p: torch.linalg.tensorinv(x, 1),
    "tensorsolve": lambda torch, x, p: torch.linalg.tensorsolve(x, x[0]),
}


@unittest.skipIf(OURS.device != "cpu", "autocast differs by device")
class TestAutocast(unittest.TestCase):
    @parameterized.expand(AUTOCAST)
    def test(self, name):
        """Two-byte floats are widened by the same functions, and refused by the others."""
        kinds = []
        for side in (OURS, TORCH):
            x = side.tensor(np.eye(2), "bfloat16")
            pivots = side.tensor(np.array([1, 2]), "int32")
            with side.module.autocast("cpu", dtype=side.module.bfloat16):
                try:
                    kinds.append(side.dtype(side.call(AUTOCAST[name], side.module, x, pivots)))
                except RuntimeError:
                    kinds.append("refused")
        self.assertEqual(*kinds)


LARGE = {
    "cholesky": lambda torch, x, b: torch.linalg.cholesky(x @ x.mH + eye(torch, x)),
    "lu": lambda torch, x, b: torch.linalg.lu(x),
    "lu_wide": lambda torch, x, b: torch.linalg.lu_factor_ex(x[..., :70, :]),
    "lu_tall": lambda torch, x, b: torch.linalg.lu_factor_ex(x[..., :70]),
    "ldl": lambda torch, x, b: torch.linalg.ldl_factor(x),
    "ldl_hermitian": lambda torch, x, b: torch.linalg.ldl_factor(x, hermitian=True),
    "solve_triangular": lambda torch, x, b: (
        torch.linalg.solve_triangular(x / 50 + eye(torch, x), b, upper=True),
        torch.linalg.solve_triangular(x / 50 + eye(torch, x), b, upper=False)),
}  # fmt: skip


class TestLarge(unittest.TestCase):
    """Larger than the blocks that are computed at a time; the pivots are LAPACK's."""

    @parameterized.expand([(name, dtype) for name in LARGE for dtype in ("float64", "complex128")])
    def test(self, name, dtype):
        rng = np.random.default_rng(11)
        arrays = [drawn(rng, shape, dtype == "complex128") for shape in ((2, 90, 90), (90, 2))]
        results = [
            flatten(LARGE[name](side.module, *[side.tensor(array, dtype) for array in arrays]))
            for side in (OURS, TORCH)
        ]
        for ours, theirs in zip(*results, strict=True):
            np.testing.assert_allclose(OURS.numpy(ours), TORCH.numpy(theirs), rtol=1e-8, atol=1e-9)
