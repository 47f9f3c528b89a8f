"""Every row, sample and dtype: values of PyTorch in float64, shape and dtype of PyTorch."""

from __future__ import annotations

import unittest

from tests.op_db import OPS
from tests.op_db._case import draw
from tests.op_db._check import about, compare, each, expected, run_ours, serves


class TestForward(unittest.TestCase):
    @each(OPS, dtypes=True)
    def test(self, op, dtype):
        for sample in op.samples:
            if not serves(sample, dtype):
                continue
            with about(sample, dtype):
                drawn = draw(op, sample, dtype)
                like, exact = expected(op, drawn)
                compare(self, op, run_ours(op, drawn), like, exact)
