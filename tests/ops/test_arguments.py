"""Arguments of a wrong kind are refused as PyTorch refuses them, before anything is done.

Of every row of the table one sample is taken, and one argument after the other replaced by a
value of another kind. Where PyTorch answers with a TypeError, so do we.
"""

from __future__ import annotations

import unittest
import warnings

import numpy as np

from tests.op_db import OPS
from tests.op_db._case import HostTensor, draw, materialize
from tests.op_db._check import OURS, TORCH, failure_note, parametrize_rows
from tests.ops._mutations import mutations

#: function -> why it takes more than PyTorch does
LENIENT = {
    "gru": "flags may be any truth values",
    "lstm": "flags may be any truth values",
    "rnn_relu": "flags may be any truth values",
    "rnn_tanh": "flags may be any truth values",
}


def replacements(value):
    """Values of other kinds than the sample's."""
    if isinstance(value, HostTensor):
        return ("x", [0.5], np.ones(2, np.float32))
    if isinstance(value, bool):
        return (1, "x")
    if isinstance(value, int):
        return (True, 1.5, "x")
    if isinstance(value, float):
        return ("x", [0.5])
    return ()


def wrong(args, kwargs):
    """The sample with one argument replaced, and with a keyword that nobody knows."""
    yield from mutations(args, kwargs, replacements)
    yield args, {**kwargs, "no_such_argument": 1}


def outcome(op, side, drawn):
    """The exception, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            side.module.manual_seed(0)
            op.run(side.module, *materialize(drawn, side))
        except Exception as error:
            return error
    return None


def refused(op):
    """(mutated sample, our outcome) where PyTorch raises TypeError for what it can run else."""
    drawn = draw(op, op.samples[0], "float32" if "float32" in op.dtypes else op.dtypes[0])
    if outcome(op, TORCH, drawn) is None:
        for mutated in wrong(*drawn):
            if type(outcome(op, TORCH, mutated)) is TypeError:
                yield mutated, outcome(op, OURS, mutated)


class TestArguments(unittest.TestCase):
    @parametrize_rows(
        [op for op in OPS if op.samples and op.call is None and op.function not in LENIENT]
    )
    def test(self, op):
        for mutated, ours in refused(op):
            with failure_note(mutated):
                self.assertIsInstance(ours, TypeError)  # not AttributeError, not a result

    def test_the_list_of_lenient_functions_is_short_and_true(self):
        for name in LENIENT:
            rows = [op for op in OPS if op.function == name and op.samples and op.call is None]
            taken = [ours for op in rows for _, ours in refused(op)]
            self.assertTrue(any(type(ours) is not TypeError for ours in taken), name)
