"""Every row on the meta device: results and gradients have the geometry that the CPU's have.

Shapes, dtypes, strides, offsets, views, what requires a gradient, and what is refused. Where a
result depends on values, PyTorch's meta device decides what is raised.
"""

from __future__ import annotations

import unittest

import numpy as np
import torch

import tensorflow_lite_clone as tlc
from tests.op_db import OPS
from tests.op_db._case import TensorSpec, draw, materialize, tree_leaves, tree_map
from tests.op_db._check import failure_note, flatten, parametrize_rows, representable
from tests.op_db._device import Side
from tests.ops.test_layout import alike, no_rows, zero_dim
from tests.ops.test_memory_order import LAYOUTS, LAYOUTS_OF_LEAVES, chosen

CPU, META, TORCH_META = Side(tlc, "cpu"), Side(tlc, "meta"), Side(torch, "meta")
#: Rows that ask for values, and why what is raised is not as in PyTorch.
REFUSED = {
    **dict.fromkeys(
        (
            "argwhere", "getitem.bool", "getitem.deep", "getitem.empty", "iadd_item.bool",
            "nonzero", "nonzero.tuple", "where.one",
        ),
        "PyTorch speaks of the registration of its own function",
    ),
    **dict.fromkeys(
        ("gru", "lstm", "rnn_relu", "rnn_tanh"),
        "PyTorch fails by an assertion: sizes of batches are read, and belong on the CPU",
    ),
    **dict.fromkeys(("histogram", "histogramdd"), "PyTorch names one of several functions"),
    "getitem.uint8": "PyTorch takes no masks of bytes here",
    "repeat_interleave": "PyTorch refuses zero-dim tensors before",
    "while_loop": "PyTorch refuses results that lie otherwise than the arguments before",
}  # fmt: skip
#: Rows whose geometry follows from values, or from how the CPU computes.
OTHERWISE = {
    "linalg.lstsq": "there are no residuals where the rank is lower",
    "linalg.lstsq.deficient": "there are no residuals where the rank is lower",
    "native_layer_norm": "the CPU computes the statistics into memory of another shape",
}


def geometry(value):
    """What a tensor is but for its values; strides where dimensions have several elements."""
    if not isinstance(value, tlc.Tensor):
        return type(value)
    facts = tuple(value.shape), value.dtype, value.requires_grad, value._is_view()
    if not value.numel():
        return facts
    steps = [step for n, step in zip(value.shape, value.stride(), strict=True) if n > 1]
    return (*facts, value.storage_offset(), steps)


def of_results(side, call):
    outputs, _ = call.results(side)
    return [geometry(value) for value in outputs]


def differentiable(outputs):
    return [t for t in outputs if isinstance(t, tlc.Tensor) and t.requires_grad]


def of_gradients(side, call):
    outputs, variables = call.results(side)
    outputs = differentiable(outputs)
    if outputs:
        tlc.autograd.backward(outputs, [tlc.ones_like(t) for t in outputs])
    return [None if x.grad is None else geometry(x.grad) for x in variables]


def of_recorded_gradients(side, call):
    """Shapes and dtypes of the first and the second order."""
    outputs, variables = call.results(side)
    found = []
    for _ in range(2):
        outputs = differentiable(outputs)
        if not outputs or not variables:
            break
        ups = [tlc.ones_like(t) for t in outputs]
        outputs = tlc.autograd.grad(outputs, variables, ups, create_graph=True, allow_unused=True)
        found.append([None if t is None else geometry(t)[:3] for t in outputs])
    return found


def of_written(side, call):
    """The in-place form of the row."""
    (target, *others), kwargs, _ = call.arguments(side)
    result = side.call(getattr(target, call.op.inplace_variant), *others, **kwargs)
    return result is target, geometry(target), target._version


def of_out(side, call):
    """Into an output that is resized, and one that lies otherwise."""
    args, kwargs, _ = call.arguments(side)
    like = side.run(call.op, args, kwargs)
    turned = side.tensor(np.zeros(tuple(like.shape)[::-1]), side.dtype(like))
    turned = turned.permute(tuple(range(like.ndim))[::-1])
    outs = side.empty(side.dtype(like)), turned
    for out in outs:
        side.run(call.op, args, kwargs | {"out": out})
    return [geometry(out) for out in outs]


def of_samples(side, call):
    """Shapes and dtypes for two samples of the first tensor, under `func.vmap`."""
    arguments = call.arguments(side)[:2]
    first = tree_leaves(arguments, tlc.Tensor)[0]

    def of_one(x):
        args, kwargs = tree_map(lambda leaf: x if leaf is first else leaf, arguments)
        outputs = flatten(side.run(call.op, args, kwargs))
        return tuple(t for t in outputs if isinstance(t, tlc.Tensor))

    outputs = tlc.func.vmap(of_one, randomness="different")(tlc.stack([first, first]))
    return [geometry(t)[:2] for t in outputs]


class Call:
    """A row's call with arguments drawn and laid out, the first otherwise than the rest.

    `look` says what is asked of it.
    """

    def __init__(self, op, drawn, look, layouts=LAYOUTS["contiguous"], requires_grad=False):
        self.op, self.drawn, self.look, self.layouts = op, drawn, look, layouts
        self.requires_grad = requires_grad

    def arguments(self, side):
        """Positional and keyword arguments, and the variables among them."""
        made, variables = [], []

        def make(value, dtype):
            tensor = self.layouts[bool(made)](side, value.array, dtype)
            made.append(tensor)
            if self.requires_grad and value.requires_grad and "float" in dtype:
                tensor = tensor.detach().requires_grad_(True)
                variables.append(tensor)
            return tensor

        args, kwargs = materialize(self.drawn, side, make=make)
        return args, kwargs, variables

    def results(self, side):
        args, kwargs, variables = self.arguments(side)
        return flatten(side.run(self.op, args, kwargs)), variables

    def outcome(self, side):
        """What is asked for, or what was raised."""
        try:
            return self.look(side, self)
        except Exception as error:
            return error

    def refusal_of_torch(self):
        try:
            self.results(TORCH_META)
        except Exception as error:
            return error
        return None


def first_words(error):
    """What is said before explanations and advice."""
    return str(error).partition(" registered")[0]


def samples(op, dtype):
    return [sample for sample in op.samples if representable(sample, dtype)]


def calls(op):
    """For each dtype each sample, and some of them laid out in all ways."""
    for dtype in op.dtypes:
        for sample in samples(op, dtype):
            yield (sample, dtype), Call(op, draw(op, sample, dtype), of_results)
    dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
    for sample in chosen(op, dtype):
        drawn = draw(op, sample, dtype)
        for name, layouts in LAYOUTS.items():
            if name != "expanded" or not op.domain.distinct:
                values = alike(drawn) if name == "expanded" else drawn
                yield (
                    (sample, name),
                    Call(op, values, of_results, layouts, bool(op.supports_autograd)),
                )
        for change in (zero_dim, no_rows):
            yield (sample, change.__name__), Call(op, change(drawn), of_results)
        yield (sample, "vmap"), Call(op, drawn, of_samples)


def calls_of_gradients(op):
    for dtype in [d for d in ("float32", "bfloat16") if d in op.dtypes]:
        for sample in samples(op, dtype):
            if sample.mode != "forward":
                drawn = draw(op, sample, dtype)
                yield (sample, dtype), Call(op, drawn, of_gradients, requires_grad=True)
                if dtype == "float32":
                    call = Call(op, drawn, of_recorded_gradients, requires_grad=True)
                    yield (sample, "recorded"), call
    for sample in chosen(op, "float32") if "float32" in op.dtypes else ():
        for name in LAYOUTS_OF_LEAVES:
            drawn = draw(op, sample, "float32")
            yield (sample, name), Call(op, drawn, of_gradients, LAYOUTS[name], True)


class TestMeta(unittest.TestCase):
    maxDiff = None

    def compare(self, cases):
        cases = list(cases)
        state = tlc.get_rng_state()
        found = [call.outcome(META) for _, call in cases]
        self.assertTrue(tlc.equal(tlc.get_rng_state(), state), "the CPU's generator has moved")
        for (words, call), got in zip(cases, found, strict=True):
            with failure_note(*words):
                expected = call.outcome(CPU)
                if isinstance(expected, Exception):
                    continue  # `test_errors`
                if isinstance(got, Exception):
                    self.check_refusal(call, got)
                elif call.op.name not in OTHERWISE:
                    self.assertEqual(got, expected)

    def check_refusal(self, call, error):
        """Values are asked for: PyTorch refuses in the same words."""
        if call.op.name in REFUSED:
            self.assertIsInstance(error, (RuntimeError, NotImplementedError))
            return
        theirs = call.refusal_of_torch()
        if type(theirs) is not type(error) or first_words(theirs) != first_words(error):
            raise error

    @parametrize_rows(OPS)
    def test_results(self, op):
        self.compare(calls(op))

    @parametrize_rows([op for op in OPS if op.supports_autograd])
    def test_gradients(self, op):
        self.compare(calls_of_gradients(op))

    @parametrize_rows([op for op in OPS if op.inplace_variant])
    def test_in_place(self, op):
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        self.compare(
            ((sample, name), Call(op, draw(op, sample, dtype), of_written, LAYOUTS[name]))
            for sample in samples(op, dtype)
            if isinstance(sample.args[0], TensorSpec)
            for name in ("contiguous", "transposed", "stepped")
        )

    @parametrize_rows([op for op in OPS if op.supports_out])
    def test_out(self, op):
        dtype = "float32" if "float32" in op.dtypes else op.dtypes[0]
        self.compare(
            ((sample,), Call(op, draw(op, sample, dtype), of_out)) for sample in samples(op, dtype)
        )

    @parametrize_rows([op for op in OPS if op.errors and op.name not in REFUSED])
    def test_errors(self, op):
        """What is wrong with shapes, dtypes and parameters is raised as on the CPU.

        Where a sample has values of its own, these may be what is wrong.
        """
        for sample in op.errors:
            call = Call(op, draw(op, sample, op.dtypes[0]), of_results)
            args = tree_leaves((sample.args, sample.kwargs), TensorSpec)
            with failure_note(sample):
                expected, found = call.outcome(CPU), call.outcome(META)
                if type(found) is not type(expected):
                    self.assertTrue(any(arg.literal is not None for arg in args), repr(found))
                    self.assertIn(type(found), (list, NotImplementedError))
