"""vmap over the table of ops: every row's function, and its gradient, against a loop in PyTorch."""

from __future__ import annotations

import unittest
import warnings

import numpy as np
import torch

from tests.op_db import OPS
from tests.op_db._case import (
    FLOATS,
    Attribute,
    DeviceUnderTest,
    HostTensor,
    draw,
    materialize,
    tree_leaves,
    tree_map,
)
from tests.op_db._check import failure_note, flatten, parametrize_rows, representable
from tests.op_db._device import OURS, TORCH, tlc

SAMPLES = 3
_READS = "it reads values back"
_SIZES = "the shape of its result depends on values"

#: Row -> why it is refused for some of its samples; RuntimeError is then expected, or the result.
REFUSED = {
    **dict.fromkeys(
        "allclose equal cov Tensor.tolist Tensor.item Tensor.numpy F.gaussian_nll_loss "
        "embedding_renorm_ hash_tensor lobpcg".split(),
        _READS,
    ),
    **dict.fromkeys(
        "unique unique.dim unique_consecutive getitem.empty masked_select nonzero nonzero.tuple "
        "where.one".split(),
        _SIZES,
    ),
}
#: Rows that write statistics of the mapped input into tensors that are not mapped over.
WRITES_CONSTANTS = ("F.batch_norm.training", "F.instance_norm.running")
#: Rows whose gradient by the mapped tensors is looked at.
DIFFERENTIABLE = [
    op
    for op in OPS
    if op.supports_autograd
    and "float64" in op.dtypes
    and op.name not in (*REFUSED, *WRITES_CONSTANTS)
]


def floating(value: HostTensor) -> bool:
    """Whether a drawn tensor is one of numbers that the row computes with."""
    return value.spec.literal is None and value.dtype in FLOATS


def variable(value: HostTensor) -> bool:
    """Whether the row's derivative by a tensor is looked at."""
    return floating(value) and value.requires_grad


def every(value: HostTensor) -> bool:
    """Whether a tensor is drawn at all."""
    return value.spec.literal is None


def samples_of(drawn, mapped):
    """The arguments of every sample: what is mapped over has its elements rolled."""

    def rolled(leaf, number):
        if not (isinstance(leaf, HostTensor) and mapped(leaf)):
            return leaf
        array = np.roll(leaf.array.ravel(), number).reshape(leaf.array.shape)
        return leaf._replace(array=array)

    return [
        tree_map(lambda leaf, number=number: rolled(leaf, number), drawn)
        for number in range(SAMPLES)
    ]


def tensors(result, side) -> list:
    return [leaf for leaf in flatten(result) if side.is_tensor(leaf)]


def looped(op, versions, side=TORCH) -> list:
    """What a loop over the samples gives, stacked."""
    rows = []
    for version in versions:
        args, kwargs = materialize(version, side)
        rows.append(tensors(side.run(op, args, kwargs), side))
    return [torch.stack(column) for column in zip(*rows, strict=True)]


def inputs(versions, mapped) -> list:
    """Our stacked tensors to map over."""
    columns = zip(*[tree_leaves(version, HostTensor) for version in versions], strict=True)
    return [
        OURS.tensor(np.stack([value.array for value in column]), column[0].dtype)
        for column in columns
        if mapped(column[0])
    ]


def function(op, drawn, mapped):
    """The row's call with the mapped tensors as arguments."""

    def call(*given):
        rest = iter(given)

        def leaf(item):
            if isinstance(item, HostTensor):
                return next(rest) if mapped(item) else OURS.tensor(item.array, item.dtype)
            if isinstance(item, DeviceUnderTest):
                return OURS.device
            return getattr(tlc, item.name) if isinstance(item, Attribute) else item

        args, kwargs = tree_map(leaf, drawn)
        return tuple(tensors(op.run(tlc, args, kwargs), OURS))

    return call


def cases(op):
    """Per sample of the row the drawn arguments, and which of them are mapped over."""
    dtype = "float64" if "float64" in op.dtypes else op.dtypes[0]
    for sample in op.samples:
        if not representable(sample, dtype):
            continue
        drawn = draw(op, sample, dtype)
        values = tree_leaves(drawn, HostTensor)
        ways = [floating] if all(map(every, values)) and all(map(floating, values)) else [
            floating, every
        ]  # fmt: skip
        for mapped in ways:
            if any(map(mapped, values)):
                yield sample, drawn, mapped


class TestRows(unittest.TestCase):
    @parametrize_rows(OPS)
    def test_values(self, op):
        for sample, drawn, mapped in cases(op):
            with failure_note(sample, mapped.__name__), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                versions = samples_of(drawn, mapped)
                try:
                    expected = looped(op, versions)
                except Exception:  # PyTorch refuses a sample, or shapes differ among them
                    continue
                try:
                    found = tlc.func.vmap(function(op, drawn, mapped), randomness="same")(
                        *inputs(versions, mapped)
                    )
                except RuntimeError:
                    self.assertIn(op.name, REFUSED)
                    continue
                self.assertEqual(len(found), len(expected))
                for got, wanted in zip(found, expected, strict=True):
                    relative, absolute = op.tolerance(TORCH.dtype(wanted))
                    np.testing.assert_allclose(
                        OURS.numpy(got), TORCH.numpy(wanted),
                        rtol=max(relative, 1e-9), atol=max(absolute, 1e-11),
                    )  # fmt: skip

    @parametrize_rows(DIFFERENTIABLE)
    def test_gradients(self, op):
        for sample, drawn, mapped in cases(op):
            if (
                sample.mode == "forward"
                or mapped is every
                or not any(map(variable, tree_leaves(drawn, HostTensor)))
            ):
                continue
            with failure_note(sample), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                versions = samples_of(drawn, variable)
                expected = gradients(op, versions)
                if expected is None:
                    continue
                call = function(op, drawn, variable)

                def total(*given, call=call):
                    return sum([weighed(y, tlc) for y in call(*given) if y.dtype.kind in "fc"])

                given = inputs(versions, variable)
                numbers = tuple(range(len(given)))
                found = tlc.func.vmap(tlc.func.grad(total, numbers), randomness="same")(*given)
                for got, wanted in zip(found, expected, strict=True):
                    # PyTorch's CPU kernels have some constants (1/6, alpha) in float32 only.
                    np.testing.assert_allclose(
                        OURS.numpy(got), wanted.numpy(), rtol=1e-6, atol=1e-7
                    )


def weighed(y, module):
    """A number in which the elements have different parts."""
    if y.is_complex():
        y = module.view_as_real(y)
    if not y.numel():
        return y.sum()
    weights = module.arange(1, y.numel() + 1, dtype=y.dtype, device=y.device)
    return (y.reshape(-1) * weights).sum() / y.numel()


def gradients(op, versions):
    """Every sample's gradients from PyTorch, stacked; None where it has none."""
    rows = []
    for version in versions:
        made = []

        def make(item, dtype, made=made):
            tensor = TORCH.tensor(item.array, dtype)
            if variable(item):
                made.append(tensor.requires_grad_())
            return tensor

        args, kwargs = materialize(version, TORCH, make=make)
        try:
            results = [y for y in tensors(TORCH.run(op, args, kwargs), TORCH) if y.requires_grad]
            if not results:
                return None
            value = sum([weighed(y, torch) for y in results])
            found = torch.autograd.grad(value, made, allow_unused=True)
        except Exception:  # an operation in place on a leaf, or without a derivative
            return None
        rows.append(
            [torch.zeros_like(x) if g is None else g for g, x in zip(found, made, strict=True)]
        )
    return [torch.stack(column) for column in zip(*rows, strict=True)]
