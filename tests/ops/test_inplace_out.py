"""In-place twins and `out=`: same values, the right memory, gradients and refusals."""

from __future__ import annotations

import unittest

import numpy as np

from tests.op_db import OPS
from tests.op_db._case import HostTensor, TensorSpec, draw, materialize, tree_leaves
from tests.op_db._check import (
    OURS,
    TORCH,
    GradientCase,
    assert_close,
    failure_note,
    parametrize_rows,
    representable,
)
from tests.op_db._device import SELF_CHECK

WRITING = [op for op in OPS if op.inplace_variant]
DIFFERENTIABLE = [op for op in WRITING if op.supports_autograd and "float64" in op.dtypes]


def writes(op, dtype):
    """The row's samples whose first argument is a tensor to write into."""
    for sample in op.samples:
        if (
            representable(sample, dtype)
            and isinstance(sample.args[0], TensorSpec)
            and sample.args[0].dtype is None
        ):
            yield sample, draw(op, sample, dtype)


def outcome(side, function, *args, **kwargs):
    """What a call returns, or the exception it raises."""
    try:
        return side.call(function, *args, **kwargs)
    except Exception as error:
        return error


class Outcomes(unittest.TestCase):
    def same_outcome(self, ours, theirs):
        """Whether both returned; if PyTorch refused, so must we, in the same way."""
        if isinstance(theirs, Exception):
            kind = type(theirs)
            self.assertIsInstance(ours, RuntimeError if kind is NotImplementedError else kind)
        elif isinstance(ours, Exception):
            raise ours
        return not isinstance(theirs, Exception)


class TestInplace(Outcomes):
    @parametrize_rows(WRITING)
    def test_values(self, op):
        for dtype in [d for d in ("float32", "int64", "bool") if d in op.dtypes]:
            for sample, drawn in writes(op, dtype):
                with failure_note(sample, dtype):
                    self.check_values(op, drawn)

    def check_values(self, op, drawn):
        targets, results = [], []
        for side in (OURS, TORCH):
            (target, *others), options = materialize(drawn, side)
            version = target._version
            method = getattr(target, op.inplace_variant)
            results.append(outcome(side, method, *others, **options))
            targets.append((side, target, version))
        if self.same_outcome(*results):
            self.assertIs(results[0], targets[0][1])
            self.assertGreater(targets[0][1]._version, targets[0][2], "the version has not moved")
        (_, ours, _), (_, theirs, _) = targets
        relative, absolute = op.tolerance(TORCH.dtype(theirs))
        self.assertEqual(OURS.dtype(ours), TORCH.dtype(theirs))
        assert_close(OURS.numpy(ours), TORCH.numpy(theirs), (2 * relative, absolute))

    @parametrize_rows(DIFFERENTIABLE)
    def test_gradient(self, op):
        """Of a copy written in place."""
        if SELF_CHECK and not op.torch_inplace_grad:
            self.skipTest("PyTorch has no gradient here")
        for sample, _ in writes(op, "float64"):
            trial = GradientCase(op, sample)
            if not trial.drawn[0][0].requires_grad or sample.mode == "forward":
                continue
            trial.run = lambda module, args, kwargs: getattr(args[0].clone(), op.inplace_variant)(
                *args[1:], **kwargs
            )
            theirs = trial if op.torch_inplace_grad else GradientCase(op, sample)
            wanted = outcome(TORCH, theirs.derivative, TORCH, 1)
            with failure_note(sample):
                got = outcome(OURS, trial.derivative, OURS, 1)
                if self.same_outcome(got, wanted):
                    trial.compare(got, wanted)

    @parametrize_rows(DIFFERENTIABLE)
    def test_leaf_refuses(self, op):
        drawn = next(
            (d for s, d in writes(op, "float64") if d[0][0].array.size and s.mode != "forward"),
            None,
        )
        if drawn is None:
            self.skipTest("no sample writes")
        (target, *others), options = materialize(drawn, OURS)
        with self.assertRaises(RuntimeError):
            getattr(target.requires_grad_(True), op.inplace_variant)(*others, **options)
        np.testing.assert_array_equal(OURS.numpy(target), drawn[0][0].array)


class TestOut(Outcomes):
    @parametrize_rows([op for op in OPS if op.supports_out])
    def test(self, op):
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        for sample in op.samples:
            if representable(sample, dtype):
                with failure_note(sample):
                    self.check(op, draw(op, sample, dtype), dtype)

    def check(self, op, drawn, dtype):
        like = TORCH.run(op, *materialize(drawn, TORCH))
        kind, shape = TORCH.dtype(like), tuple(like.shape)
        for out in (OURS.empty(kind), self.strided(shape, kind)):
            args, kwargs = materialize(drawn, OURS)
            self.assertIs(OURS.run(op, args, kwargs | {"out": out}), out)
            self.assertEqual((tuple(out.shape), OURS.dtype(out)), (shape, kind))
            relative, absolute = op.tolerance(kind)
            assert_close(OURS.numpy(out), TORCH.numpy(like), (2 * relative, absolute))
        into_integers = []
        for side in (OURS, TORCH):
            args, kwargs = materialize(drawn, side)
            out = side.tensor(np.zeros(shape), "int64")
            into_integers.append(outcome(side, op.run, side.module, args, kwargs | {"out": out}))
        self.same_outcome(*into_integers)
        if op.supports_autograd and any(v.requires_grad for v in tree_leaves(drawn, HostTensor)):
            args, kwargs = materialize(
                drawn,
                OURS,
                make=lambda v, d: OURS.tensor(v.array, d).requires_grad_(v.requires_grad),
            )
            with self.assertRaises(RuntimeError, msg="out= cannot be differentiated"):
                OURS.run(op, args, kwargs | {"out": OURS.tensor(np.zeros(shape), kind)})

    def strided(self, shape, kind):
        """An output that is not contiguous."""
        return OURS.tensor(np.zeros(shape[::-1]), kind).permute(tuple(reversed(range(len(shape)))))
