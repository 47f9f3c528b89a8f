"""Numbers before or between the tensors, as PyTorch took them once and still does.

Every order is called as a function, as a method, in place and with ``out=``, beside PyTorch.
"""

from __future__ import annotations

import subprocess
import sys
import unittest
import warnings

import numpy as np
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc

rng = np.random.default_rng(0)
VECTOR, MATRIX, BATCH = [rng.standard_normal(shape) for shape in ((3,), (3, 3), (3, 3, 3))]
#: function -> input, and what it is combined with
SUMS = {"add": (MATRIX, MATRIX), "sub": (MATRIX, MATRIX)}
TERMS = {"addcmul": (MATRIX, MATRIX, MATRIX), "addcdiv": (MATRIX, MATRIX, MATRIX)}
PRODUCTS = {
    "addbmm": (MATRIX, BATCH, BATCH),
    "addmm": (MATRIX, MATRIX, MATRIX),
    "addmv": (VECTOR, MATRIX, VECTOR),
    "addr": (MATRIX, VECTOR, VECTOR),
    "baddbmm": (BATCH, BATCH, BATCH),
}
FORMS = ("function", "out", "method", "inplace")


def calls():
    """(function, form, the arguments behind or before the input)."""
    for form in FORMS:
        for name, (first, *others) in {**SUMS, **TERMS}.items():
            yield name, form, (first, 2.5, *others)
        for name, (tensor, *factors) in PRODUCTS.items():
            first = (tensor, 2.5) if form in ("method", "inplace") else (2.5, tensor)
            yield name, form, (*first, *factors)
            yield name, form, (*first, 3, *factors)


def run(module, name, form, values):
    values = [module.tensor(x) if isinstance(x, np.ndarray) else x for x in values]
    if form == "function":
        return getattr(module, name)(*values)
    if form == "out":
        out = module.empty(0, dtype=module.float64)
        getattr(module, name)(*values, out=out)
        return out
    tensor, *others = values
    if form == "method":
        return getattr(tensor, name)(*others)
    assert getattr(tensor, f"{name}_")(*others) is tensor
    return tensor


class TestOlderOrders(unittest.TestCase):
    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")

    @parameterized.expand(calls())
    def test_values(self, name, form, values):
        ours, theirs = [run(module, name, form, values) for module in (tlc, torch)]
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)

    def test_a_number_before_named_tensors(self):
        for module in (tlc, torch):
            m = module.tensor(MATRIX)
            wanted = 2 * MATRIX + MATRIX @ MATRIX
            np.testing.assert_allclose(module.addmm(2, input=m, mat1=m, mat2=m).numpy(), wanted)
            np.testing.assert_allclose(module.addmm(m, mat1=m, mat2=m, beta=2).numpy(), wanted)

    def test_zero_dim_tensors_are_numbers(self):
        for module in (tlc, torch):
            m = module.tensor(MATRIX)
            given = module.add(m, module.tensor(2), m)
            np.testing.assert_allclose(given.numpy(), 3 * MATRIX)

    @parameterized.expand([(name,) for name in ("add", "sub", "subtract", "rsub")])
    def test_two_numbers_are_other_and_alpha(self, name):
        ours, theirs = [
            getattr(module, name)(module.tensor([5, 7]), 2, 3).tolist() for module in (tlc, torch)
        ]
        self.assertEqual(ours, theirs)

    def test_gradients_go_to_the_tensors(self):
        p, g = tlc.ones(3, requires_grad=True), tlc.full((3,), 2.0, requires_grad=True)
        tlc.add(p, -0.5, g).sum().backward()
        self.assertEqual((p.grad.tolist(), g.grad.tolist()), ([1.0] * 3, [-0.5] * 3))

    @parameterized.expand(
        [
            ("three tensors", "add", lambda t: (t, t, t), {}),
            ("text", "add", lambda t: (t, "x", t), {}),
            ("alpha twice", "add", lambda t: (t, 2, t), {"alpha": 3}),
            ("too many", "add", lambda t: (t, 2, t, t), {}),
            ("number first", "add", lambda t: (2, t, t), {}),
            ("number last", "addcmul", lambda t: (t, t, t, 2), {}),
            ("beta twice", "addmm", lambda t: (2, t, t, t), {"beta": 3}),
            ("three numbers", "addmm", lambda t: (2, t, 3, t, 4), {}),
            ("of another function", "mul", lambda t: (t, 2, t), {}),
        ]
    )
    def test_other_orders_raise(self, _, name, values, keywords):
        for module in (torch, tlc):
            with self.assertRaises(TypeError):
                getattr(module, name)(*values(module.tensor(MATRIX)), **keywords)

    def test_named_tensors_of_methods_in_place(self):
        for module in (torch, tlc):
            v, m = module.tensor(VECTOR), module.tensor(MATRIX)
            v.addmv_(mat=m, vec=v.clone(), alpha=2)
            np.testing.assert_allclose(v.numpy(), VECTOR + 2 * MATRIX @ VECTOR)

    def test_warns_once_of_all(self):
        code = """
import warnings
import tensorflow_lite_clone as torch
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    p = torch.ones(2)
    p.add_(-1, p), p.sub_(2, p), torch.addcmul(p, 2, p, p), p.add(p, alpha=2)
    print([(str(warning.message), warning.filename) for warning in heard])
"""
        text = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(
            text.stdout.strip(),
            str([("add_(input, alpha, other) is deprecated: write add_(input, other, alpha=alpha)",
                  "<string>")]),
        )  # fmt: skip
