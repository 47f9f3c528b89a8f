"""Numbers of NumPy, of enumerations and zero-dim tensors are taken as Python's numbers are.

Of every row of the table one number after the other is replaced. Where PyTorch takes it, so do
we, and the result has PyTorch's dtypes, shapes and values.
"""

from __future__ import annotations

import enum
import unittest
import warnings

import numpy as np

import tensorflow_lite_clone as tl
from tests.op_db import OPS
from tests.op_db._case import draw, materialize
from tests.op_db._check import OURS, TORCH, compare, failure_note, parametrize_rows
from tests.ops._mutations import mutations

NUMPY = {bool: np.bool_, int: np.int64, float: np.float64}
#: row -> why a number of another kind gives another result
OTHERWISE = {"full": "PyTorch gives float32 for np.bool_, which is not a number there"}


def replacements(value):
    """The same number, or the same sizes, of other kinds."""
    if type(value) in (tuple, list) and value and {type(item) for item in value} == {int}:
        yield type(value)(map(np.int64, value))
    if type(value) in NUMPY:
        yield NUMPY[type(value)](value)
    if type(value) is int:
        yield enum.IntEnum("Enumeration", {"MEMBER": value}).MEMBER


def outcome(op, side, sample):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        side.module.manual_seed(0)
        return op.run(side.module, *materialize(sample, side))


class TestNumbers(unittest.TestCase):
    @parametrize_rows(
        [op for op in OPS if op.samples and op.call is None and op.name not in OTHERWISE]
    )
    def test(self, op):
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        for sample in op.samples[:2]:
            for mutated in mutations(*draw(op, sample, dtype), replacements):
                try:
                    same = outcome(op, TORCH, mutated)
                except Exception:  # not a number for PyTorch either, or no sample of this dtype
                    continue
                with failure_note(mutated):
                    ours = outcome(op, OURS, mutated)
                    compare(self, op, ours, same)


class TestMixtures(unittest.TestCase):
    """What no row says."""

    def test_a_zero_dim_bound_beside_a_number(self):
        x = tl.tensor([-2.0, 0.0, 2.0])
        self.assertEqual(tl.clamp(x, -1, tl.tensor(1.0)).tolist(), [-1.0, 0.0, 1.0])
        self.assertEqual(x.clamp(tl.tensor(-1.0), 1).tolist(), [-1.0, 0.0, 1.0])
        with self.assertRaises(TypeError):
            tl.clamp(x, -1, tl.ones(3))

    def test_data_of_numpy_keeps_its_dtype(self):
        self.assertIs(tl.tensor(np.float64(1)).dtype, tl.float64)
        self.assertIs(tl.as_tensor(np.float32(1)).dtype, tl.float32)
        self.assertIs(tl.asarray(np.int32(1)).dtype, tl.int32)

    def test_lengths_of_ctc(self):
        log_probs = tl.zeros(4, 1, 3)
        for lengths in ([4], [np.int64(4)], [tl.tensor(4)], tl.tensor([4])):
            loss = tl.nn.functional.ctc_loss(log_probs, tl.tensor([[1, 2]]), lengths, [2])
            self.assertAlmostEqual(loss.item(), -1.354025, places=5)

    def test_sizes_of_modules(self):
        for norm in (tl.nn.LayerNorm, tl.nn.RMSNorm):
            self.assertEqual(norm(np.int64(4)).normalized_shape, (4,))

    def test_shapes_and_dtypes_beside_numbers(self):
        self.assertEqual(tl.ones(3).broadcast_to(2, 3).shape, (2, 3))
        self.assertEqual(tl.normal(tl.tensor(0.0), tl.tensor(1.0), (2,)).shape, (2,))
        loss = tl.nn.BCEWithLogitsLoss()(tl.ones(2), tl.ones(2, dtype=tl.float64))
        self.assertIs(loss.dtype, tl.float64)
        matrix = tl.eye(2) * 2
        self.assertEqual(tl.linalg.inv(A=matrix)[0, 0].item(), 0.5)
        self.assertEqual(tl.linalg.det(A=matrix).item(), 4.0)

    def test_flags_that_pytorch_reads_in_python(self):
        attention = tl.nn.MultiheadAttention(4, 2)
        x = tl.ones(2, 1, 4)
        self.assertIsNone(attention(x, x, x, need_weights=0)[1])
        pooled, places = tl.nn.functional.max_pool1d(tl.ones(1, 1, 4), 2, return_indices=1)
        self.assertEqual(pooled.shape, places.shape)


if __name__ == "__main__":
    unittest.main()


class TestNumbersAlone(unittest.TestCase):
    def test_sums_and_quotients_of_two_numbers_are_tensors(self):
        cases = [("add", (1, 2), {"alpha": 2}), ("mul", (2, 3.0), {}), ("sub", (1, 2), {})]
        cases += [(name, (-7, 2), {}) for name in ("div", "true_divide", "floor_divide")]
        cases += [("div", (-7, 2), {"rounding_mode": mode}) for mode in ("floor", "trunc")]
        for name, numbers, keywords in cases:
            seen, expected = (
                getattr(side.module, name)(*numbers, **keywords) for side in (OURS, TORCH)
            )
            with self.subTest(name):
                self.assertEqual(seen.item(), expected.item())
                self.assertEqual(str(seen.dtype), str(expected.dtype))

    def test_other_functions_refuse_them_as_pytorch_does(self):
        for name in ("remainder", "pow", "fmod", "eq", "maximum", "bitwise_and"):
            for side in (OURS, TORCH):
                with self.assertRaises(TypeError):
                    getattr(side.module, name)(7, 2)
