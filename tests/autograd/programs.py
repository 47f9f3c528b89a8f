"""Random programs of views and in-place writes, run by both frameworks step by step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tests.op_db._device import OURS, TORCH, Side

SHAPES = [(4,), (3, 4), (2, 3, 2), (4, 4)]
Step = Callable[[Side, list], Any]


def view_step(rng: random.Random, i: int, t: torch.Tensor) -> tuple[str, Step]:
    """A view of value number `i`, which looks like `t`."""
    ndim, shape, strides = t.dim(), tuple(t.shape), t.stride()
    place = rng.randint(0, ndim)
    choices: dict[str, Callable] = {
        f"unsqueeze {place}": lambda x: x.unsqueeze(place),
        "none": lambda x: x[None],
        "expand": lambda x: x.expand((2, *shape)),
        "alias": lambda x: x[...],
        "detach": lambda x: x.detach(),
        "as_strided": lambda x: x.as_strided(shape, strides),
    }
    if t.numel() >= 4:
        choices["as_strided (2, 2)"] = lambda x: x.as_strided((2, 2), (2, 1))
        choices["as_strided (3,) from 1"] = lambda x: x.as_strided((3,), (1,), 1)
    if ndim:
        d = rng.randrange(ndim)
        n = shape[d]
        order = rng.sample(range(ndim), ndim)
        choices |= {
            "reshape": lambda x: x.reshape(-1),
            "view": lambda x: x.view(-1),
            f"permute {order}": lambda x: x.permute(order),
            "squeeze": lambda x: x.squeeze(),
            f"unfold {d}": lambda x: x.unfold(d, min(2, n), 2),
            f"narrow {d}": lambda x: x.narrow(d, 0, max(n - 1, 0)),
            f"split {d}": lambda x: x.split(2, d)[0],
            f"unbind {d}": lambda x: x.unbind(d)[0],
            f"chunk {d}": lambda x: x.chunk(2, d)[-1],
            f"tensor_split {d}": lambda x: x.tensor_split(2, d)[-1],
        }
        if n:
            start, number = rng.randrange(n), rng.randrange(-n, n)
            part = slice(start, rng.randrange(start, n + 1), rng.choice([1, 1, 2]))
            choices[f"slice {part} at {d}"] = lambda x: x[(slice(None),) * d + (part,)]
            choices[f"select {number} at {d}"] = lambda x: x.select(d, number)
            choices[f"index {number} at {d}"] = lambda x: x[(slice(None),) * d + (number,)]
        if ndim > 1:
            choices["diagonal"] = lambda x: x.diagonal()
            choices["transpose"] = lambda x: x.transpose(0, 1)
    name = rng.choice(list(choices))
    change = choices[name]
    return f"v{i}.{name}", lambda side, values: change(values[i])


def write_step(rng: random.Random, values: list) -> tuple[str, Step]:
    """An in-place write into one value, with numbers or another value."""
    i, j = rng.randrange(len(values)), rng.randrange(len(values))
    t, other = values[i], values[j]
    choices: dict[str, Step] = {"mul_(2)": lambda side, v: v[i].mul_(2)}
    if 0 not in t.stride():  # what is written into expanded tensors has no gradient in PyTorch
        choices |= {"zero_": lambda side, v: v[i].zero_(), "fill_": lambda side, v: v[i].fill_(3)}
        if t.dim() and t.shape[0] > 1:
            choices["[[0, 1]] = 1.5"] = lambda side, v: v[i].__setitem__([0, 1], 1.5)
    memory = [x.untyped_storage().data_ptr() for x in (t, other)]
    if i == j or memory[0] != memory[1]:  # else the order of reads and writes is undefined
        choices[f"mul_(v{j})"] = lambda side, v: v[i].mul_(v[j])
        if 0 not in t.stride():
            choices[f"copy_(v{j})"] = lambda side, v: v[i].copy_(v[j])
        if t.dim():
            choices[f"[0] = v{j}"] = lambda side, v: v[i].__setitem__(0, v[j])
    choices[f"add_(v{j} * 1)"] = lambda side, v: v[i].add_(v[j] * 1)
    name = rng.choice(list(choices))
    return f"v{i}.{name}", choices[name]


class Program:
    """A leaf v0, a plain tensor v1, v2 = v0 * 2, and what a random sequence of steps makes."""

    def __init__(self, test: Any, seed: int) -> None:
        self.test, self.rng, self.seed = test, random.Random(seed), seed
        draw = np.random.default_rng(seed)
        leaf, plain = (
            draw.standard_normal(shape)
            for shape in (self.rng.choice(SHAPES), self.rng.choice([*SHAPES, (1,)]))
        )
        self.values: dict[Side, list] = {}
        for side in (TORCH, OURS):
            x = side.tensor(leaf, "float64").requires_grad_(True)
            self.values[side] = [x, side.tensor(plain, "float64"), x * 2]
        self.log = [f"seed {seed}: v0 {leaf.shape}, v1 {plain.shape}, v2 = v0 * 2"]

    def run(self) -> None:
        """Make the steps, comparing after each, then compare gradients of two orders."""
        for _ in range(self.rng.randint(2, 7)):
            seen = self.values[TORCH]
            quiet = False
            if self.rng.random() < 0.45:
                i = self.rng.randrange(len(seen))
                name, step = view_step(self.rng, i, seen[i])
            elif self.rng.random() < 0.2:
                i, j = self.rng.randrange(len(seen)), self.rng.randrange(len(seen))
                name, step = f"v{i} * v{j}", lambda side, v, i=i, j=j: v[i] * v[j]
            else:
                name, step = write_step(self.rng, seen)
                quiet = self.rng.random() < 0.15
            self.step(name, step, quiet)
            self.compare()
        self.compare_gradients()

    def step(self, name: str, step: Step, quiet: bool) -> None:
        """Do it on both sides; both return or both raise."""
        self.log.append(f"no_grad: {name}" if quiet else name)
        results = []
        for side in (TORCH, OURS):
            with side.module.set_grad_enabled(not quiet):
                results.append(outcome(side, step, self.values[side]))
        theirs, ours = results
        if isinstance(theirs, Exception):
            kind = RuntimeError if isinstance(theirs, NotImplementedError) else type(theirs)
            self.test.assertIsInstance(ours, kind, f"{self.log} {theirs}")
            self.log[-1] += " raises"
        elif isinstance(ours, Exception):
            raise AssertionError(str(self.log)) from ours
        elif theirs is not None and not any(theirs is value for value in self.values[TORCH]):
            for side, result in zip((TORCH, OURS), results, strict=True):
                self.values[side].append(result)

    def compare(self) -> None:
        for number, (theirs, ours) in enumerate(
            zip(self.values[TORCH], self.values[OURS], strict=True)
        ):
            what = f"v{number} after {self.log}"
            np.testing.assert_allclose(
                OURS.numpy(ours.detach()), TORCH.numpy(theirs), err_msg=what, strict=True
            )
            self.test.assertEqual(ours._version, theirs._version, what)
            if theirs.numel() and theirs._is_view():
                self.test.assertEqual(ours.stride(), theirs.stride(), what)
                self.test.assertEqual(ours.storage_offset(), theirs.storage_offset(), what)
            ask = lambda side, x: (x.requires_grad, x.is_leaf, x.grad_fn)[:2]
            graph = outcome(TORCH, ask, theirs)
            if not isinstance(graph, Exception):  # several views of a base that was written to
                self.test.assertEqual((ours.requires_grad, ours.is_leaf), graph, what)

    def compare_gradients(self) -> None:
        found = {side: outcome(side, self.gradients, self.values[side]) for side in (TORCH, OURS)}
        theirs, ours = found[TORCH], found[OURS]
        if isinstance(theirs, Exception):
            # Of what a write overwrites a copy may have been kept, which PyTorch refuses.
            if "modified by an inplace" not in str(theirs):
                self.test.assertIsInstance(ours, type(theirs), f"{self.log} {theirs}")
            return
        if isinstance(ours, Exception):
            raise AssertionError(str(self.log)) from ours
        for order, (got, wanted) in enumerate(zip(ours, theirs, strict=True), 1):
            what = f"order {order} after {self.log}"
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9, err_msg=what)

    def gradients(self, side: Side, values: list) -> list[np.ndarray]:
        """The first and second gradients of a weighted sum of squares with respect to v0."""
        total: Any = 0
        for number, value in enumerate(values):
            if value.requires_grad:
                weights = np.random.default_rng(number).standard_normal(tuple(value.shape))
                total = total + (value * value * side.tensor(weights, "float64")).sum()
        grad = side.module.autograd.grad
        (first,) = grad(total, values[0], create_graph=True)
        (second,) = grad((first * first).sum(), values[0])
        return [side.numpy(first.detach()), side.numpy(second)]


def outcome(side: Side, function: Any, *args: Any) -> Any:
    """What a call returns, or the exception it raises."""
    try:
        return side.call(function, side, *args)
    except Exception as error:
        return error
