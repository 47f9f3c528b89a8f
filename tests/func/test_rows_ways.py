"""vmap over the table of ops in other ways: each tensor alone, in its last dimension, and nested.

What PyTorch's vmap refuses raises the same here, or is computed; what it computes, so do we.
"""

from __future__ import annotations

import functools
import unittest
import warnings

import numpy as np
import torch

from tests.func.test_rows import REFUSED, SAMPLES, floating, tensors
from tests.op_db import OPS
from tests.op_db._case import Attribute, DeviceUnderTest, HostTensor, draw, tree_leaves, tree_map
from tests.op_db._check import failure_note, parametrize_rows, representable
from tests.op_db._device import OURS, TORCH, tlc

#: Row -> why it raises here, or something else, for samples that PyTorch computes.
REFUSED_HERE = {
    "hash_tensor": "it reads values back",
    "embedding_renorm_": "which rows are written depends on values",
    "F.instance_norm.running": "the weights' samples reach the statistics, which have none",
    **{
        op.name: "the lengths are checked, which reads them back"
        for op in OPS
        if op.name.startswith("segment_reduce")
    },
    "F.grouped_mm": "the number of rows depends on values, which PyTorch leaves undefined",
}
#: Row -> why the exception is of another type than PyTorch's.
OTHER_TYPE = {
    **dict.fromkeys(("cond", "while_loop"), "PyTorch's compiler raises errors of its own"),
    **dict.fromkeys(
        ("getitem.uint8", "getitem.empty"), "PyTorch takes the samples' dimension for the mask's"
    ),
}
#: Row -> why PyTorch's vmap has results of another kind; the loop judges.
LOOP_JUDGES = {
    **dict.fromkeys(("any", "all"), "PyTorch does not reduce over an empty dim"),
    **dict.fromkeys(("linalg.solve", "linalg.solve_ex"), "PyTorch takes a matrix for vectors"),
    **dict.fromkeys(("lu_unpack", "linalg.qr"), "an empty result has no samples in PyTorch"),
    **dict.fromkeys(
        ("F.batch_norm.training", "F.instance_norm.running", "Tensor.resize_"),
        "PyTorch does not write where a loop writes",
    ),
    **dict.fromkeys(("fft.fftn.none", "fft.ifftn.none"), "PyTorch transforms over the samples"),
    "native_dropout": "the mask of nothing or all is of numbers in PyTorch",
    **dict.fromkeys(
        ("F.ctc_loss", "ctc_loss"), "PyTorch reads labels that are not neighbours in memory wrongly"
    ),
    "getitem.advanced": "PyTorch puts the samples behind an empty dimension",
    "getitem.empty": "PyTorch puts the samples behind an empty dimension",
}
#: Of the tensors of a call so many are mapped over: those of layers alike go on and on.
FIRST = 4
#: Rows that are not mapped over alone in the last dimension.
LEFT_OUT = {
    **dict.fromkeys(("linalg.ldl_solve", "linalg.ldl_solve.hermitian"), "PyTorch's process ends"),
    "bucketize": "boundaries whose elements are rolled do not rise",
    "slice_inverse": "it shows memory as it lies, and a sample's lies in steps",
}


def rolled(value, number):
    """The value of a sample: the elements are rolled."""
    return np.roll(value.array.ravel(), number).reshape(value.array.shape)


def caller(op, drawn, which, side, module):
    """The row's call with the mapped tensors as arguments."""
    values = tree_leaves(drawn, HostTensor)

    def call(*given):
        rest, numbers = dict(zip(which, given, strict=True)), iter(range(len(values)))

        def leaf(item):
            if isinstance(item, HostTensor):
                number = next(numbers)
                return rest[number] if number in rest else side.tensor(item.array, item.dtype)
            if isinstance(item, DeviceUnderTest):
                return side.device
            return getattr(module, item.name) if isinstance(item, Attribute) else item

        args, kwargs = tree_map(leaf, drawn)
        return tuple(tensors(op.run(module, args, kwargs), side))

    return call


def mapped(op, drawn, which, side, module, nested=False):
    """What vmap gives or raises: samples in the last dimension, or twice in the first ones."""
    given = []
    for number in which:
        value = tree_leaves(drawn, HostTensor)[number]
        if nested:
            grid = [[rolled(value, i + 2 * j) for j in range(2)] for i in range(2)]
            given.append(side.tensor(np.array(grid), value.dtype))
        else:
            rows = [rolled(value, number) for number in range(SAMPLES)]
            given.append(side.tensor(np.stack(rows, axis=-1), value.dtype))
    vmap = functools.partial(module.func.vmap, randomness="same")
    call = caller(op, drawn, which, side, module)
    try:
        return vmap(vmap(call))(*given) if nested else vmap(call, in_dims=-1)(*given)
    except Exception as error:
        return error


def looped(op, drawn, which, nested=False):
    """What a loop in PyTorch gives, or None where it cannot be stacked."""
    call = caller(op, drawn, which, TORCH, torch)
    values = tree_leaves(drawn, HostTensor)
    rows = []
    numbers = [i + 2 * j for i in range(2) for j in range(2)] if nested else range(SAMPLES)
    try:
        for number in numbers:
            row = [TORCH.tensor(rolled(values[i], number), values[i].dtype) for i in which]
            rows.append(call(*row))
        stacked = [torch.stack(column) for column in zip(*rows, strict=True)]
        return [y.reshape(2, 2, *y.shape[1:]) if nested else y for y in stacked]
    except Exception:
        return None


def samples(op):
    """The row's samples and their drawn arguments."""
    dtype = "float64" if "float64" in op.dtypes else op.dtypes[0]
    for sample in op.samples:
        if representable(sample, dtype):
            yield sample, draw(op, sample, dtype)


class TestWays(unittest.TestCase):
    def compare(self, op, found, expected):
        self.assertEqual(len(found), len(expected))
        for got, wanted in zip(found, expected, strict=True):
            relative, absolute = op.tolerance(TORCH.dtype(wanted))
            np.testing.assert_allclose(
                OURS.numpy(got), TORCH.numpy(wanted),
                rtol=max(relative, 1e-9), atol=max(absolute, 1e-11),
            )  # fmt: skip

    @parametrize_rows([op for op in OPS if op.name not in LEFT_OUT])
    def test_each_tensor(self, op):
        for sample, drawn in samples(op):
            for number in range(min(FIRST, len(tree_leaves(drawn, HostTensor)))):
                with failure_note(sample, number), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = mapped(op, drawn, [number], OURS, tlc)
                    wanted = mapped(op, drawn, [number], TORCH, torch)
                    expected = None
                    if isinstance(wanted, Exception) or op.name in LOOP_JUDGES:
                        expected = looped(op, drawn, [number])
                    else:
                        expected = wanted
                    if isinstance(found, Exception):
                        if not isinstance(wanted, Exception):
                            self.assertIn(op.name, REFUSED_HERE, found)
                        elif op.name not in OTHER_TYPE:
                            self.assertIs(type(found), type(wanted), (found, wanted))
                    elif expected is not None:
                        self.compare(op, found, expected)

    @parametrize_rows(OPS)
    def test_nested(self, op):
        for sample, drawn in samples(op):
            which = [n for n, value in enumerate(tree_leaves(drawn, HostTensor)) if floating(value)]
            if not which:
                continue
            with failure_note(sample), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                expected = looped(op, drawn, which, nested=True)
                if expected is None:
                    continue
                found = mapped(op, drawn, which, OURS, tlc, nested=True)
                if isinstance(found, Exception):
                    self.assertIn(op.name, REFUSED, found)
                else:
                    self.compare(op, found, expected)
