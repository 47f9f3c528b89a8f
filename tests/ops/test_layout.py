"""Every sample in other layouts and shapes; inputs stay as they are; views share memory."""

from __future__ import annotations

import re
import unittest

import numpy as np

from tests.op_db import OPS
from tests.op_db._case import HostTensor, draw, materialize, tree_leaves, tree_map
from tests.op_db._check import (
    OURS,
    TORCH,
    GradientCase,
    compare,
    expected,
    failure_note,
    flatten,
    parametrize_rows,
    representable,
    run_ours,
)
from tests.op_db._device import Side
from tests.op_db._layouts import JUNK, stepped, transposed


def long_axis(array):
    """The first dimension longer than one; None: there is none."""
    return next((i for i, size in enumerate(array.shape) if size > 1), None)


def expanded(side, array, dtype):
    """One slice, seen many times (stride 0), where all slices are equal."""
    axis = long_axis(array)
    if axis is None or (array != array.take([0], axis)).any():
        return side.tensor(array, dtype)
    return side.tensor(array.take([0], axis), dtype).expand(array.shape)


def each_value(drawn, change):
    """The drawn arguments with all values changed."""
    return tree_map(lambda leaf: change(leaf) if isinstance(leaf, HostTensor) else leaf, drawn)


def alike(drawn):
    """All slices equal, in tensors that were drawn; indices and chosen values stay."""

    def change(value):
        axis = long_axis(value.array)
        if axis is None or not value.dtype_varies or value.spec.literal is not None:
            return value
        slices = np.broadcast_to(value.array.take([0], axis), value.array.shape)
        return value._replace(array=np.ascontiguousarray(slices))

    return each_value(drawn, change)


def zero_dim(drawn):
    """The first element of each tensor, without dimensions."""
    return each_value(drawn, lambda v: v._replace(array=first_element(v.array)))


def first_element(array):
    return array.reshape(-1)[:1].sum(dtype=array.dtype).reshape(())


def no_rows(drawn):
    """An empty batch: no rows in the first tensor, nor in those with as many rows."""
    rows = tree_leaves(drawn, HostTensor)[0].array.shape[:1]

    def change(value):
        return value._replace(array=value.array[:0]) if value.array.shape[:1] == rows else value

    return each_value(drawn, change) if rows else drawn


def constant(side, array, dtype):
    """A single number, expanded."""
    return side.tensor(first_element(array), dtype).expand(array.shape)


REFUSALS = (RuntimeError, IndexError, ValueError, TypeError)
ROWS = [op for op in OPS if op.check_layouts]


def outcome(function, *args):
    """What a call returns, or the exception with which it refuses."""
    try:
        return function(*args)
    except REFUSALS as error:
        return error


class TestLayout(unittest.TestCase):
    def check(self, op, layout=Side.tensor, change=None):
        """All samples with inputs laid out so, after a change of their values or shapes.

        PyTorch decides whether that is a result or an error.
        """
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        for sample in op.samples:
            drawn = draw(op, sample, dtype)
            if not representable(sample, dtype) or not tree_leaves(drawn, HostTensor):
                continue
            if change:
                drawn = change(drawn)
            with failure_note(sample):
                theirs = outcome(expected, op, drawn, layout)
                ours = outcome(run_ours, op, drawn, layout)
                if isinstance(theirs, Exception):
                    if re.search("out of (bounds|range)", str(theirs)) and OURS.device == "cuda":
                        outcome(OURS.module.cuda.synchronize)  # it is told now
                        continue
                    if layout is not Side.tensor and not op.is_view:
                        continue  # PyTorch needs another layout here; we may serve this one
                    self.assertIsInstance(ours, REFUSALS)
                elif isinstance(ours, Exception):
                    raise ours
                else:
                    compare(self, op, ours, *theirs)

    @parametrize_rows(ROWS)
    def test_transposed(self, op):
        self.check(op, transposed)

    @parametrize_rows(ROWS)
    def test_stepped(self, op):
        self.check(op, stepped)

    @parametrize_rows([op for op in ROWS if not op.domain.distinct])
    def test_expanded(self, op):
        self.check(op, expanded, alike)

    @parametrize_rows([op for op in ROWS if "zero_dim" not in op.skip_undefined_behavior])
    def test_zero_dim(self, op):
        self.check(op, change=zero_dim)

    @parametrize_rows([op for op in ROWS if "empty" not in op.skip_undefined_behavior])
    def test_empty(self, op):
        self.check(op, change=no_rows)


class TestView(unittest.TestCase):
    @parametrize_rows([op for op in OPS if op.is_view])
    def test(self, op):
        """The result has PyTorch's strides and sees what is written into the input."""
        for sample in op.samples:
            for layout in (Side.tensor, transposed, stepped):
                with failure_note(sample, layout.__name__):
                    self.check(op, draw(op, sample, "float32"), layout)

    def check(self, op, drawn, layout):
        seen = []
        for side in (TORCH, OURS):
            args, kwargs = materialize(drawn, side, make=lambda v, d, s=side: layout(s, v.array, d))
            try:
                result = flatten(side.run(op, args, kwargs))
            except RuntimeError:
                seen.append("raises")
                continue
            # NumPy has no strides for empty arrays.
            strides = [tensor.stride() for tensor in result if tensor.numel()]
            tree_leaves(args, side.module.Tensor)[0].fill_(JUNK)
            seen.append([strides, [side.numpy(tensor).tolist() for tensor in result]])
        self.assertEqual(seen[1], seen[0])


class TestUpstream(unittest.TestCase):
    @parametrize_rows(
        [
            op
            for op in OPS
            if op.supports_autograd and op.torch_grad_orders and "float64" in op.dtypes
        ]
    )
    def test(self, op):
        """Upstream gradients come in any layout: with stride 0 (from a sum), and transposed."""
        sample = next(
            (s for s in op.samples if s.mode != "forward" and GradientCase(op, s).inputs), None
        )
        if sample is None:
            self.skipTest("nothing to differentiate")
        trial = GradientCase(op, sample)
        for upstream in (constant, transposed):
            with failure_note(sample, upstream.__name__):
                wanted = trial.derivative(TORCH, 1, upstream=upstream)
                trial.compare(trial.derivative(OURS, 1, upstream=upstream), wanted)
