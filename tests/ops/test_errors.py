"""Bad input raises what PyTorch raises, and touches nothing."""

from __future__ import annotations

import unittest

from tests.expected_skips import torch_is_pinned
from tests.op_db import OPS
from tests.op_db._case import draw, materialize
from tests.op_db._check import OURS, TORCH, failure_note, parametrize_rows, run_ours


class TestErrors(unittest.TestCase):
    @parametrize_rows([op for op in OPS if op.errors])
    def test(self, op):
        for sample in op.errors:
            if sample.mode == "cpu_only" and OURS.device == "cuda":
                continue
            if "x" in sample.args and not torch_is_pinned():
                continue  # 2.11 refuses dim="x" with an exception of another type
            with failure_note(sample):
                drawn = draw(op, sample, "float32")
                with self.assertRaises(Exception) as theirs:
                    TORCH.run(op, *materialize(drawn, TORCH))
                # "Not implemented for 'Bool'" is about PyTorch's kernels: any RuntimeError will do.
                kind = type(theirs.exception)
                if kind.__module__.startswith("torch"):  # LinAlgError: each has its own
                    kind = kind.__base__
                later = sample.mode == "async" and OURS.device == "cuda"
                if later or kind is NotImplementedError:
                    kind = RuntimeError
                with self.assertRaises(kind):
                    run_ours(op, drawn)
                    if later:
                        OURS.module.cuda.synchronize()
