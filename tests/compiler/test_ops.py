"""Every public op in a graph: what it gives is what it gives without."""

from __future__ import annotations

import unittest
import warnings
from typing import Any

import numpy as np

import tensorflow_lite_clone as tlc
from tests.op_db import OPS
from tests.op_db._case import draw, materialize
from tests.op_db._check import failure_note, flatten, parametrize_rows, representable
from tests.op_db._device import OURS

#: Ops whose results, or their shapes, are values, and others that are not recorded.
BREAKS = frozenset(
    """
    F.ctc_loss F.one_hot Tensor.item Tensor.numpy Tensor.repr Tensor.repr.int Tensor.resize_
    Tensor.tolist allclose argwhere bincount cond ctc_loss equal getitem.bool getitem.empty
    getitem.uint8 histogram histogramdd iadd_item.bool lobpcg masked_select nonzero nonzero.tuple
    operator.bool.number operator.contains operator.float.number operator.int.number
    repeat_interleave setitem.scalarbool tensor.numpy unique unique.dim unique_consecutive
    where.one while_loop
    """.split()
)


def outcome(op: Any, drawn: Any, run: Any) -> Any:
    """Results and gradients, or what was raised."""
    variables = []

    def make(value: Any, dtype: str) -> Any:
        tensor = OURS.tensor(value.array, dtype)
        if op.supports_autograd and value.requires_grad and "float" in dtype:
            variables.append(tensor.requires_grad_())
        return tensor

    args, kwargs = materialize(drawn, OURS, make=make)
    tlc.manual_seed(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some are given once only
            results = flatten(run(args, kwargs))
        outputs = [each for each in results if isinstance(each, tlc.Tensor) and each.requires_grad]
        if outputs:
            tlc.autograd.backward(outputs, [tlc.ones_like(each) for each in outputs])
    except Exception as error:
        return type(error), str(error)
    return results + [x.grad for x in variables]


def look(value: Any) -> Any:
    """A result as something that is compared by ``==``."""
    if not isinstance(value, tlc.Tensor):
        return repr(value)
    if value.layout is not tlc.strided:
        value = value.to_dense()
    array = value.detach().resolve_conj().resolve_neg().cpu()
    facts = value.dtype, tuple(value.shape), value.stride(), value.requires_grad, value.device
    return facts, np.asarray(array.tolist()).tobytes()


def served(op: Any) -> list[tuple[Any, str]]:
    """A row's samples, with dtypes that they serve; none where it has errors alone."""
    dtypes = sorted(op.dtypes, key=lambda dtype: dtype != "float32")
    return [
        (sample, dtype) for dtype in dtypes for sample in op.samples if representable(sample, dtype)
    ]


class TestOps(unittest.TestCase):
    @parametrize_rows([op for op in OPS if served(op)][::6])  # all would take half a minute
    def test_in_a_graph(self, op: Any) -> None:
        sample, dtype = served(op)[0]
        drawn = draw(op, sample, dtype)

        def run(args: Any, kwargs: Any) -> Any:
            return OURS.run(op, args, kwargs)

        compiled = tlc.compile(run, backend="eager", fullgraph=op.name not in BREAKS)
        with failure_note(sample):
            expected = outcome(op, drawn, run)
            for _ in range(2):
                found = outcome(op, drawn, compiled)
                if isinstance(expected, tuple):
                    self.assertEqual(found, expected)
                else:
                    self.assertEqual([*map(look, found)], [*map(look, expected)])
