"""Every row, sample and dtype: values of PyTorch in float64, shape and dtype of PyTorch."""

from __future__ import annotations

import unittest

from tests.op_db import OPS
from tests.op_db._case import draw
from tests.op_db._check import (
    compare,
    expected,
    failure_note,
    parametrize_rows,
    representable,
    run_ours,
)


class TestForward(unittest.TestCase):
    @parametrize_rows(OPS, dtypes=True)
    def test(self, op, dtype):
        for sample in op.samples:
            if not representable(sample, dtype):
                continue
            with failure_note(sample, dtype):
                drawn = draw(op, sample, dtype)
                like, exact = expected(op, drawn)
                compare(self, op, run_ours(op, drawn), like, exact)
