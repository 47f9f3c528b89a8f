"""Every row of the op table with subclasses of Tensor: their class and tag, as with PyTorch."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np
import torch

import tensorflow_lite_clone as tlc
from tests.op_db import OPS
from tests.op_db._case import draw, materialize
from tests.op_db._check import flatten, parametrize_rows, representable
from tests.op_db._device import OURS, TORCH
from tests.overrides.kinds import described, kept, tagged

KINDS = [(kept(tlc), kept(torch)), (tagged(tlc), tagged(torch))]


def compared(op: Any) -> bool:
    """Not functions whose branches PyTorch compiles, nor those of formulas, beneath the face."""
    if op.function in ("cond", "while_loop") or op.name.startswith("array_api."):
        return False
    return first_sample(op) is not None


def first_sample(op: Any) -> Any:
    return next((sample for sample in op.samples if representable(sample, op.dtypes[0])), None)


def result_of(op: Any, side: Any, drawn: Any, kind: Any) -> Any:
    """The row's result for tensors of a class, or the error."""

    def make(value: Any, dtype: str) -> Any:
        tensor = side.tensor(value.array, dtype)
        if kind is None:
            return tensor
        tensor = tensor.as_subclass(kind)
        tensor.tag = "a"
        return tensor

    side.module.manual_seed(0)
    args, kwargs = materialize(drawn, side, make=make)
    try:
        return side.run(op, args, kwargs)
    except Exception as error:
        return error


class TestRows(unittest.TestCase):
    @parametrize_rows([op for op in OPS if compared(op)])
    def test(self, op):
        drawn = draw(op, first_sample(op), op.dtypes[0])
        plain = flatten(result_of(op, OURS, drawn, None))
        for ours, theirs in KINDS:
            got = result_of(op, OURS, drawn, ours)
            self.assertEqual(described(got), described(result_of(op, TORCH, drawn, theirs)))
            for value, same in zip(flatten(got), plain, strict=True):
                if isinstance(value, tlc.Tensor):
                    np.testing.assert_array_equal(OURS.numpy(value), OURS.numpy(same))
