"""torch.special: what has a gradient, what refuses one, and names of nodes."""

from __future__ import annotations

import unittest

import numpy as np
import torch
from parameterized import parameterized

from tests.op_db._device import OURS, SELF_CHECK, TORCH, tlc

WITHOUT = ["airy_ai", "bessel_j0", "bessel_y1", "modified_bessel_i0", "scaled_modified_bessel_k1"]
POLYNOMIALS = ["chebyshev_polynomial_t", "shifted_chebyshev_polynomial_w", "laguerre_polynomial_l"]
OF_SECOND = ["gammainc", "gammaincc", "zeta"]


def leaf(side, *values):
    return side.tensor(np.array(values), "float64").requires_grad_(True)


class TestSpecialGradients(unittest.TestCase):
    @parameterized.expand(WITHOUT)
    def test_results_without_gradient(self, name):
        for side in (OURS, TORCH):
            y = getattr(side.module.special, name)(leaf(side, 1.5, 0.5))
            self.assertFalse(y.requires_grad)
            self.assertIsNone(y.grad_fn)

    @parameterized.expand(POLYNOMIALS)
    def test_polynomials_without_gradient(self, name):
        for side in (OURS, TORCH):
            y = getattr(side.module.special, name)(leaf(side, 1.5, 0.5), 3)
            self.assertFalse(y.requires_grad)

    @parameterized.expand(OF_SECOND)
    def test_the_first_argument_has_none(self, name):
        """Said by the backward pass, also where only the second's gradient is asked for."""
        for side in (OURS, TORCH):
            function = getattr(side.module.special, name)
            a, x = leaf(side, 2.5), leaf(side, 1.5)
            y = function(a, x.detach())
            self.assertTrue(y.requires_grad)
            with self.assertRaisesRegex(NotImplementedError, "the derivative for"):
                y.sum().backward()
            with self.assertRaisesRegex(NotImplementedError, "the derivative for"):
                function(a, x).sum().backward()

    @parameterized.expand([*OF_SECOND, "multigammaln"])
    def test_names_of_nodes(self, name):
        names = []
        for side in (OURS, TORCH):
            x = leaf(side, 2.5)
            arguments = (x, 2) if name == "multigammaln" else (x.detach(), x)
            names.append(getattr(side.module.special, name)(*arguments).grad_fn.name())
        self.assertEqual(*names)

    def test_a_number_has_no_gradient(self):
        for side in (OURS, TORCH):
            x = leaf(side, 1.5, 2.5)
            side.module.special.zeta(3.0, x).sum().backward()
            self.assertEqual(tuple(x.grad.shape), (2,))

    @unittest.skipIf(SELF_CHECK, "these are ours to add")
    def test_no_name_is_missing(self):
        public = [n for n in dir(torch.special) if n.islower() and not n.startswith("_")]
        helpers = {"common_args", "multi_dim_common", "torch"}
        self.assertEqual([n for n in public if not hasattr(tlc.special, n)], sorted(helpers))

    @parameterized.expand([("xlogy", 0.0), ("xlog1py", -1.0)])
    def test_no_gradient_comes_back_where_none_arrives(self, name, least):
        """0 * log(0) counts as 0 in the gradient as well."""
        for side in (OURS, TORCH):
            x = leaf(side, 1.0, 2.0)
            y = getattr(side.module.special, name)(x, leaf(side, least, least))
            y.backward(side.tensor(np.array([0.0, 1.0]), "float64"))
            self.assertEqual(x.grad.tolist(), [0.0, -np.inf])
