"""`out=` of every function for which PyTorch takes it: a walk over the op table.

Which functions these are PyTorch says itself, when it is called with `out=`. Outputs have other
sizes, strides and dtypes, are inputs or overlap one. What PyTorch refuses is refused, the rest is
right; only where PyTorch writes what it is still reading (its result is wrong then), or elements
that lie at one place, may it be refused here. A resized output lies in its memory if that suffices.
"""

from __future__ import annotations

import unittest
import warnings

import numpy as np
import torch
from parameterized import parameterized

from tests.op_db import FAMILIES
from tests.op_db._case import HostTensor, draw, materialize, tree_leaves
from tests.op_db._check import OURS, TORCH, assert_close, failure_note, flatten, representable

DTYPES = ("float64", "float32", "int64", "bool", "complex64")

#: row -> (cases, why they are not as in PyTorch).
GAPS: dict[str, tuple[tuple[str, ...], str]] = {
    "ldexp": (("float64", "complex64"), "PyTorch fails by an assertion of its own"),
    "lu": (DTYPES, "PyTorch looks at no dtype and truncates"),
    "split_copy": (
        ("larger", "without_elements", "within_memory", *DTYPES),
        "PyTorch copies where others write",
    ),
}


def zeros(side, shape, kind):
    return side.tensor(np.zeros(shape), kind)


def larger(side, shape, kind):
    return zeros(side, (*shape, 2), kind)


def without_elements(side, shape, kind):
    return side.empty(kind)


def turned(side, shape, kind):
    return zeros(side, shape[::-1], kind).permute(tuple(reversed(range(len(shape)))))


def with_gaps(side, shape, kind):
    return zeros(side, (*shape, 2), kind).select(-1, 1)


def at_one_place(side, shape, kind):
    # PyTorch may write as if there were no strides: the memory is there.
    return zeros(side, (1 + int(np.prod(shape)),), kind)[0].expand(shape)


def larger_at_one_place(side, shape, kind):
    return zeros(side, (1, *shape), kind).expand(3, *shape)


def within_memory(side, shape, kind):
    # There is room behind the two elements, which a larger result is written into.
    return zeros(side, (4 + int(np.prod(shape)),), kind)[1:3]


def beside_input(side, drawn, position, shape, kind, shift):
    """Arguments and an output that begins `shift` elements behind input number `position`."""
    values = tree_leaves(drawn, HostTensor)
    size, count = values[position].array.size, int(np.prod(shape))
    line = zeros(side, (2 + size + count,), kind)
    line[:size].copy_(side.tensor(values[position].array.reshape(-1), kind))
    numbers = iter(range(len(values)))

    def make(value, dtype):
        if next(numbers) == position:
            return line[:size].reshape(value.array.shape)
        return side.tensor(value.array, dtype)

    args, kwargs = materialize(drawn, side, make=make)
    return args, kwargs, line[shift : shift + count].reshape(shape)


#: Outputs with several elements at one place.
SHARED = (at_one_place, larger_at_one_place)


def attempt(side, op, args, kwargs, outs):
    """The exception, or None, and whether an output was said to be resized."""
    out = outs[0] if len(outs) == 1 else tuple(outs)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            op.run(side.module, args, kwargs | {"out": out})
            error = None
        except Exception as raised:
            error = raised
    return error, any("was resized" in str(warning.message) for warning in heard)


class TestOut(unittest.TestCase):
    @parameterized.expand(FAMILIES)
    def test(self, family):
        walked = [
            op
            for op in FAMILIES[family]
            if "out" not in op.skip_undefined_behavior and self.walk(op)
        ]
        flagged = {
            op.name
            for op in FAMILIES[family]
            if op.supports_out and "out" not in op.skip_undefined_behavior
        }
        self.assertEqual(flagged - {op.name for op in walked}, set(), "rows with out= left out")

    def walk(self, op) -> bool:
        """Check a row; False where PyTorch's function takes no `out=`."""
        for dtype in ("float32", *op.dtypes):
            for sample in op.samples if dtype in op.dtypes else ():
                if representable(sample, dtype):
                    with failure_note(op, sample):
                        return self.begin(op, sample, dtype) and self.check()
        return False

    def begin(self, op, sample, dtype) -> bool:
        """Draw the inputs, and say whether PyTorch takes `out=` for them."""
        self.op, self.drawn = op, draw(op, sample, dtype)
        parts = flatten(TORCH.run(op, *materialize(self.drawn, TORCH)))
        if not parts or not all(isinstance(part, torch.Tensor) for part in parts):
            return False
        self.wanted = [TORCH.numpy(part) for part in parts]
        self.kinds = [TORCH.dtype(part) for part in parts]
        outs = [zeros(TORCH, x.shape, kind) for x, kind in zip(self.wanted, self.kinds)]
        error, _ = attempt(TORCH, op, *materialize(self.drawn, TORCH), outs)
        return error is None and all(  # some rows show their result in another way
            np.array_equal(TORCH.numpy(out), x, equal_nan=x.dtype.kind in "fc")
            for out, x in zip(outs, self.wanted, strict=True)
        )

    def check(self) -> bool:
        for make in (zeros, larger, without_elements, turned, with_gaps, within_memory, *SHARED):
            self.into(make.__name__, make, self.kinds)
        for position, _ in enumerate(self.kinds):
            for kind in DTYPES:
                kinds = [*self.kinds[:position], kind, *self.kinds[position + 1 :]]
                self.into(kind, zeros, kinds)
        for position, value in enumerate(tree_leaves(self.drawn, HostTensor)):
            for number, kind in enumerate(self.kinds):
                if value.dtype == kind:
                    self.into_input(position, number, shift=0)
                    self.into_input(position, number, shift=1)
        return True

    def into(self, case, make, kinds):
        """Both sides write into outputs that `make` makes."""
        tried = []
        for side in (TORCH, OURS):
            outs = [make(side, x.shape, kind) for x, kind in zip(self.wanted, kinds, strict=True)]
            tried.append((*attempt(side, self.op, *materialize(self.drawn, side), outs), outs))
        self.judge(case, *tried, free=make in SHARED)

    def into_input(self, position, number, shift):
        """Both sides write output `number` into memory from an input's element `shift` on."""
        tried = []
        for side in (TORCH, OURS):
            shape, kind = self.wanted[number].shape, self.kinds[number]
            args, kwargs, out = beside_input(side, self.drawn, position, shape, kind, shift)
            outs = [zeros(side, x.shape, kind) for x, kind in zip(self.wanted, self.kinds)]
            outs[number] = out
            tried.append((*attempt(side, self.op, args, kwargs, outs), outs))
        self.judge(f"{number} over input {position} from element {shift}", *tried, free=True)

    def judge(self, case, theirs, ours, free):
        """Compare outcomes; with `free` what PyTorch takes may be refused."""
        cases, _ = GAPS.get(self.op.name, ((), ""))
        if case in cases:
            return
        with failure_note(case):
            (error, resized, likes), (mine, warned, outs) = theirs, ours
            if error is not None:
                kind = RuntimeError if isinstance(error, NotImplementedError) else type(error)
                self.assertIsInstance(mine, kind, f"PyTorch says: {error}")
                return
            if mine is not None:
                if not free:
                    raise mine
                self.assertIn("single memory location", str(mine))
                return
            self.assertEqual(warned, resized, "a warning that an output was resized")
            for out, wanted, like in zip(outs, self.wanted, likes, strict=True):
                self.assertEqual(tuple(out.shape), wanted.shape)
                self.assertEqual(OURS.dtype(out), TORCH.dtype(like))
                if wanted.size:
                    self.assertEqual(out.storage_offset(), like.storage_offset())
                # What is cast PyTorch casts; in the same dtype its result may be wrong.
                kept = free or wanted.dtype == TORCH.numpy(like).dtype
                relative, absolute = self.op.tolerance(OURS.dtype(out))
                expected = wanted if kept else TORCH.numpy(like)
                assert_close(OURS.numpy(out), expected, (2 * relative + 1e-5, absolute + 1e-5))
