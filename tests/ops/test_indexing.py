"""Random indices, read and written, against PyTorch: values, shapes, views, gradients, refusals."""

from __future__ import annotations

import random
import unittest

import numpy as np
import torch
from parameterized import parameterized

from tests.expected_skips import torch_is_pinned
from tests.op_db._device import OURS, TORCH, Side

KINDS = {
    "int": 3, "slice": 4, "none": 1, "ellipsis": 1, "bool": 0.5, "zero": 0.5, "index": 3, "mask": 2
}  # fmt: skip
SHAPES = [(), (4,), (3, 4), (2, 3, 4), (3, 1, 4), (2, 3, 2, 2), (0, 3), (4, 4)]

ELLIPSIS = lambda side: ...


class Draw:
    """A random key for a tensor of a shape, as functions of a side, and a value to write."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.shape = self.rng.choice(SHAPES)
        self.order = self.rng.sample(range(len(self.shape)), len(self.shape))
        self.sizes = [self.shape[dim] for dim in self.order]
        self.items = []
        dim = 0
        for _ in range(self.rng.randint(0, 4)):
            rest = self.sizes[dim:] or [self.rng.randint(1, 3)]  # one too many is refused
            make, span = self.item(rest)
            self.items.append(make)
            dim += span
        self.single = len(self.items) == 1 and self.rng.random() < 0.7

    def place(self, size: int) -> int:
        """A place in a dimension, rarely out of bounds."""
        if not size or self.rng.random() < 0.02:
            return self.rng.choice([size, -size - 1])
        return self.rng.randrange(-size, size)

    def item(self, sizes: list):
        """How to make an item of the key, and how many dimensions it looks at."""
        rng, size = self.rng, sizes[0]
        kind = rng.choices(*zip(*KINDS.items()))[0]
        if kind == "int":
            number = self.place(size)
            return lambda side: number, 1
        if kind == "slice":
            start, stop = rng.choice([None, 0, 1, -1, 5]), rng.choice([None, 1, 2, -1, 9])
            step = rng.choice([None, 1, 2, 3, 3, 0, -1]) if rng.random() < 0.3 else None
            return lambda side: slice(start, stop, step), 1
        if kind == "none":
            return lambda side: None, 0
        if kind == "ellipsis" and ELLIPSIS not in self.items:
            return ELLIPSIS, 0
        if kind == "bool":
            truth = rng.random() < 0.6
            return lambda side: truth, 0
        if kind == "zero":
            number = self.place(size)
            return lambda side: side.tensor(np.array(number), "int64"), 1
        if kind == "mask":
            shape = tuple(sizes[: rng.choice([1, 1, 2])])
            mask = np.random.default_rng(rng.randrange(99)).random(shape) < 0.5
            if len(shape) == 1 and rng.random() < 0.3:
                return lambda side: mask.tolist(), 1
            return lambda side: side.tensor(mask, "bool"), len(shape)
        shape = rng.choice([(2,), (3,), (1,), (2, 1), (1, 3), (0,), (2, 3)])
        numbers = np.array([self.place(size) for _ in range(int(np.prod(shape)))], int)
        numbers = numbers.reshape(shape)
        if rng.random() < 0.3:
            return lambda side: numbers.tolist(), 1
        dtype = rng.choice(["int64", "int64", "int32"])
        return lambda side: side.tensor(numbers, dtype), 1

    def key(self, side: Side):
        items = [make(side) for make in self.items]
        return items[0] if self.single else tuple(items)

    def base(self, side: Side, grad: bool):
        x = side.tensor(np.arange(1.0, 1 + np.prod(self.shape)).reshape(self.shape), "float64")
        x.requires_grad_(grad)
        return x, (x * 1).permute(self.order)

    def value(self, side: Side, shape: tuple, kind: int):
        """A number, or a tensor that broadcasts to `shape` or almost does."""
        if kind == 0:
            return 2.5
        rng = random.Random(kind)
        if kind > 1:
            shape = tuple(1 if rng.random() < 0.4 else size for size in shape[kind % 2 :])
        values = np.random.default_rng(kind).standard_normal(shape)
        return side.tensor(values, "float64").requires_grad_(True)


def weighted(side, y):
    weights = np.random.default_rng(0).standard_normal(tuple(y.shape))
    return (y * y * side.tensor(weights, "float64")).sum()


def read(side, draw):
    x, y = draw.base(side, True)
    found = y[draw.key(side)]
    strides = None
    if found._is_view():
        strides = [step for step, size in zip(found.stride(), found.shape) if size > 1]
    weighted(side, found).backward()
    return tuple(found.shape), strides, side.numpy(found.detach()), side.numpy(x.grad)


def write(side, draw, shape, kind, grad):
    x, y = draw.base(side, grad)
    value = draw.value(side, shape, kind)
    if isinstance(value, side.module.Tensor) and not grad:
        value = value.detach()
    y[draw.key(side)] = value
    if not grad:
        return [side.numpy(y)]
    weighted(side, y).backward()
    return [side.numpy(y.detach()), side.numpy(x.grad)]


def outcome(side, function, *args):
    try:
        return side.call(function, side, *args)
    except (IndexError, ValueError, TypeError, RuntimeError) as error:
        return error


def repeats(draw) -> bool:
    """Whether an index names a place more than once."""
    places = torch.arange(int(np.prod(draw.shape))).reshape(draw.shape).permute(draw.order)
    try:
        found = places[draw.key(TORCH)]
    except (IndexError, ValueError, TypeError, RuntimeError):
        return False
    return found.unique().numel() < found.numel()


class TestIndexing(unittest.TestCase):
    def same(self, function, draw, *args):
        if function is write and OURS.device == "cuda" and repeats(draw):
            return None  # which of several values stays is not said there
        theirs, ours = (outcome(side, function, draw, *args) for side in (TORCH, OURS))
        if OURS.device == "cuda" and "out of bounds" in str(theirs):
            return theirs  # it would have to read the indices back
        found = args[0] if args else () if isinstance(theirs, Exception) else theirs[0]
        empty = 0 in (*draw.sizes, *found)
        if isinstance(theirs, Exception):
            # What is wrong in two ways PyTorch refuses in its own order. Steps below zero are the
            # array API standard's: tests/array_api/test_indexing.py has them.
            if not empty and "step must be greater than zero" not in str(theirs):
                self.assertIsInstance(ours, (type(theirs), IndexError), theirs)
        elif isinstance(ours, Exception):
            if not empty:  # PyTorch does not look at indices into nothing
                raise ours
        else:
            for got, wanted in zip(ours, theirs, strict=True):
                if isinstance(wanted, np.ndarray):
                    np.testing.assert_allclose(got, wanted, rtol=1e-12)
                else:
                    self.assertEqual(got, wanted)
        return theirs

    @parameterized.expand([(start,) for start in range(0, 800, 100)])
    def test_random(self, start):
        for seed in range(start, start + 100):
            draw = Draw(seed)
            if isinstance(draw.key(TORCH), list) and not torch_is_pinned():
                continue  # older PyTorch takes a list of lists for a tuple
            with self.subTest(seed=seed, shape=draw.sizes, key=draw.key(TORCH)):
                found = self.same(read, draw)
                shape = () if isinstance(found, Exception) else found[0]
                for grad in (False, True):
                    self.same(write, draw, shape, seed % 4, grad)


if __name__ == "__main__":
    unittest.main()
