"""Every row on the meta device: results and gradients have the geometry that the CPU's have.

Where a result depends on values, PyTorch's meta device decides what is raised.
"""

from __future__ import annotations

import unittest

import torch

import tensorflow_lite_clone as tlc
from tests.op_db import OPS
from tests.op_db._case import Arg, Value, draw, leaves, place
from tests.op_db._check import about, each, flat, serves
from tests.op_db._device import Side
from tests.ops.test_layout import alike, no_rows, zero_dim
from tests.ops.test_memory_order import LAYOUTS, LAYOUTS_OF_LEAVES, chosen

CPU, META, TORCH_META = Side(tlc, "cpu"), Side(tlc, "meta"), Side(torch, "meta")


def geometry(value):
    """What a tensor is but for its values; strides where dimensions have several elements."""
    if not isinstance(value, tlc.Tensor):
        return type(value)
    facts = tuple(value.shape), value.dtype, value.requires_grad, value._is_view()
    if not value.numel():
        return facts
    steps = [step for n, step in zip(value.shape, value.stride(), strict=True) if n > 1]
    return (*facts, value.storage_offset(), steps)


def shape_and_dtype(value):
    return None if value is None else (tuple(value.shape), value.dtype, value.requires_grad)


class Call:
    """A row's call with arguments drawn and laid out, the first otherwise than the rest."""

    def __init__(self, op, drawn, layouts=LAYOUTS["contiguous"]):
        self.op, self.drawn, self.layouts = op, drawn, layouts

    def arguments(self, side, requires_grad):
        """Positional and keyword arguments, and the variables among them."""
        made, variables = [], []

        def make(value, dtype):
            tensor = self.layouts[bool(made)](side, value.array, dtype)
            made.append(tensor)
            if requires_grad and value.grad and "float" in dtype:
                tensor = tensor.detach().requires_grad_(True)
                variables.append(tensor)
            return tensor

        args, kwargs = place(self.drawn, side, make=make)
        return args, kwargs, variables

    def results(self, side, requires_grad=False):
        args, kwargs, variables = self.arguments(side, requires_grad)
        side.module.manual_seed(3)
        outputs = flat(side.run(self.op, args, kwargs))
        return outputs, variables

    def outcome(self, side, look, **options):
        """What `look` finds of results and variables, or what was raised."""
        try:
            return look(*self.results(side, **options))
        except Exception as error:
            return error


def of_results(outputs, variables):
    return [geometry(value) for value in outputs]


def differentiable(outputs):
    return [t for t in outputs if isinstance(t, tlc.Tensor) and t.requires_grad]


def of_gradients(outputs, variables):
    outputs = differentiable(outputs)
    if outputs:
        tlc.autograd.backward(outputs, [tlc.ones_like(t) for t in outputs])
    return [None if x.grad is None else geometry(x.grad) for x in variables]


def of_recorded_gradients(outputs, variables):
    """Of the first and the second order."""
    found = []
    for _ in range(2):
        outputs = differentiable(outputs)
        if not outputs or not variables:
            break
        ups = [tlc.ones_like(t) for t in outputs]
        outputs = tlc.autograd.grad(outputs, variables, ups, create_graph=True, allow_unused=True)
        found.append([shape_and_dtype(t) for t in outputs])
    return found


class TestMeta(unittest.TestCase):
    maxDiff = None

    def compare(self, call, look, **options):
        expected = call.outcome(CPU, look, **options)
        state = tlc.get_rng_state()
        found = call.outcome(META, look, **options)
        self.assertTrue(tlc.equal(tlc.get_rng_state(), state), "the CPU's generator has moved")
        if isinstance(expected, Exception):
            return  # of values, or of shapes: `test_errors`
        if isinstance(found, Exception):
            self.refused(call, found)
        else:
            self.assertEqual(found, expected)

    def refused(self, call, error):
        """Values are asked for: PyTorch refuses in the same words."""
        theirs = call.outcome(TORCH_META, lambda *results: None)
        if type(theirs) is not type(error) or clause(theirs) != clause(error):
            raise error

    @each(OPS)
    def test_results(self, op):
        for dtype in op.dtypes:
            for sample in op.samples:
                if serves(sample, dtype):
                    with about(sample, dtype):
                        self.compare(Call(op, draw(op, sample, dtype)), of_results)

    @each(OPS)
    def test_results_of_layouts(self, op):
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        for sample in chosen(op, dtype):
            drawn = draw(op, sample, dtype)
            for name, layouts in LAYOUTS.items():
                if name == "expanded" and op.of.distinct:
                    continue
                values = alike(drawn) if name == "expanded" else drawn
                with about(sample, name):
                    self.compare(Call(op, values, layouts), of_results, requires_grad=op.grad)
            for change in (zero_dim, no_rows):
                with about(sample, change.__name__):
                    self.compare(Call(op, change(drawn)), of_results)

    @each([op for op in OPS if op.grad])
    def test_gradients(self, op):
        for dtype in [d for d in ("float32", "bfloat16") if d in op.dtypes]:
            for sample in op.samples:
                if not serves(sample, dtype) or sample.mode == "forward":
                    continue
                with about(sample, dtype):
                    call = Call(op, draw(op, sample, dtype))
                    self.compare(call, of_gradients, requires_grad=True)
        for sample in chosen(op, "float32") if "float32" in op.dtypes else ():
            for name in LAYOUTS_OF_LEAVES:
                with about(sample, name):
                    call = Call(op, draw(op, sample, "float32"), LAYOUTS[name])
                    self.compare(call, of_gradients, requires_grad=True)

    @each([op for op in OPS if op.grad and "float64" in op.dtypes])
    def test_recorded_gradients(self, op):
        for sample in op.samples:
            if sample.mode != "forward":
                with about(sample):
                    call = Call(op, draw(op, sample, "float64"))
                    self.compare(call, of_recorded_gradients, requires_grad=True)


def clause(error):
    """What is said before the advice."""
    return str(error).partition(" registered")[0]
