"""Views and in-place writes: values, versions, strides, gradients and refusals as in PyTorch."""

from __future__ import annotations

import gc
import time
import unittest

import numpy as np
import pytest
from parameterized import parameterized

from tests.autograd.programs import Program, outcome
from tests.op_db._device import OURS, TORCH

# name -> program(module, x, w) -> result: x = leaf * 1 of shape (4, 3), w a leaf of shape (3,)
PROGRAMS = {
    "write_through_slice": lambda m, x, w: (x[1:].mul_(2), x)[1],
    "write_through_chain": lambda m, x, w: (x[1:].t()[1:].view(2, 3)[0].mul_(w), x)[1],
    "base_written_after_view": lambda m, x, w: (v := x[1:], x.mul_(w), v * v)[2],
    "view_and_base": lambda m, x, w: (v := x[1:], v.mul_(w), x.mul_(2), v.add_(w), v * x[1:])[4],
    "view_of_view_after_write": lambda m, x, w: (
        v := x[1:], u := v[0], v.mul_(w), u.add_(1), u * v.sum()
    )[4],
    "write_row": lambda m, x, w: (x.__setitem__(1, w * 2), x * x)[1],
    "write_column": lambda m, x, w: (x.__setitem__((slice(None), 1), 3.0), x * x)[1],
    "write_mask": lambda m, x, w: (x.__setitem__(x > 0, 0.5), x * x)[1],
    "write_index": lambda m, x, w: (x.__setitem__([0, 2], w), x * x)[1],
    "write_index_of_view": lambda m, x, w: (x[1:].__setitem__(([0, 1], [2, 2]), w[:2]), x * x)[1],
    "write_into_plain": lambda m, x, w: (
        b := x.detach().clone(), v := b[0], v.copy_(w), b.mul_(2), v * b
    )[4],
    "plus_equals_item": lambda m, x, w: (x.__setitem__(0, x[0] + w), x)[1],
    "fill_view": lambda m, x, w: (x[2:].fill_(w[0]), x * x)[1],
    "zero_diagonal": lambda m, x, w: (x.diagonal().zero_(), x * x)[1],
    "expand_then_write_base": lambda m, x, w: (e := x[0].expand(4, 3), x.mul_(w), e * x)[2],
    "unfold": lambda m, x, w: x.unfold(0, 2, 1) * w[:2],
    "as_strided_overlap": lambda m, x, w: x.as_strided((3, 3), (2, 1), 1) * w,
    "write_as_strided": lambda m, x, w: (x.as_strided((2, 2), (3, 2), 1).mul_(3), x * x)[1],
    "transpose_in_place": lambda m, x, w: (x.t_(), x.unsqueeze_(0), x.squeeze_(), x * 2)[3],
    "reshape_copies": lambda m, x, w: (y := x.t().reshape(-1), y.mul_(2), x * y[0])[2],
    "copy_casts": lambda m, x, w: (x.to(m.float32)[1:].copy_(x[1:]), x)[1],
    "unbind": lambda m, x, w: sum(row * i for i, row in enumerate(x)),
    "split_unused": lambda m, x, w: x.split([1, 2, 1])[1] * w,
    "detach_shares": lambda m, x, w: (y := x.mul(1), y.detach().mul_(2), y)[2],
    "plain_base": lambda m, x, w: (b := x.detach()[0] * 1, v := b[:2], v.add_(w[:2]), b)[3],
    "write_between_uses": lambda m, x, w: (y := x.sum(0), x.mul_(2), y * x[0])[2],
    "index_put_accumulate": lambda m, x, w: x.index_put_(
        (m.tensor([0, 0, 2]),), m.stack([w, w, w]), accumulate=True
    ),
}  # fmt: skip

# what is refused, or noticed in backward
REFUSED = {
    "leaf": lambda m, x, w: w.mul_(2),
    "leaf_fill": lambda m, x, w: w.fill_(2),
    "leaf_zero": lambda m, x, w: w.zero_(),
    "leaf_item": lambda m, x, w: w.__setitem__(0, 1.0),
    "leaf_mask": lambda m, x, w: w.__setitem__(w > 0, 1.0),
    "leaf_view": lambda m, x, w: w[1:].mul_(2),
    "leaf_transposed": lambda m, x, w: w.unsqueeze_(0),
    "unbind": lambda m, x, w: x.unbind(0)[0].mul_(2),
    "split": lambda m, x, w: x.split(2)[1].add_(1),
    "chunk": lambda m, x, w: x.chunk(2)[0].add_(w),
    "view_of_split": lambda m, x, w: x.split(2)[0][0].add_(w),
    "iteration": lambda m, x, w: [row.mul_(2) for row in x],
    "plain_unbind": lambda m, x, w: x.detach().clone().unbind(0)[0].add_(w),
    "unbind_then_base": lambda m, x, w: (rows := x.unbind(0), x.mul_(2), rows[0] * 2)[2],
    "expanded": lambda m, x, w: x[0].expand(2, 3).mul_(2),
    "saved_input": lambda m, x, w: (y := x * x, x.mul_(2), y)[2],
    "saved_through_view": lambda m, x, w: (y := x[0] * x[0], x[1:].mul_(2), y)[2],
    "saved_index": lambda m, x, w: (
        i := m.tensor([0, 1], device=x.device),
        y := x[i],
        i.add_(1),
        y,
    )[3],
    "view_size": lambda m, x, w: x.t().view(-1),
    "as_strided_out": lambda m, x, w: x.as_strided((5, 3), (3, 1)),
    "no_grad_view": lambda m, x, w: (quiet(m, lambda: x[1:])).mul_(2),
    "no_grad_view_of_leaf": lambda m, x, w: (quiet(m, lambda: w[1:])).mul_(2),
}


def quiet(module, function):
    with module.no_grad():
        return function()


def graph(side, program):
    """The program's result, its leaves' gradients of orders one and two."""
    draw = np.random.default_rng(0)
    leaf = side.tensor(draw.standard_normal((4, 3)), "float64").requires_grad_(True)
    w = side.tensor(draw.standard_normal(3), "float64").requires_grad_(True)
    y = program(side.module, leaf * 1, w)
    weights = side.tensor(draw.standard_normal(tuple(y.shape)), "float64")
    total = (y * y * weights).sum()
    grad = side.module.autograd.grad
    first = grad(total, (leaf, w), create_graph=True, materialize_grads=True)
    squares = sum((g * g).sum() for g in first)
    second = grad(squares, (leaf, w), materialize_grads=True) if squares.requires_grad else ()
    return [side.numpy(t.detach()) for t in (y, *first, *second)]


class TestPrograms(unittest.TestCase):
    @parameterized.expand(PROGRAMS)
    def test(self, name):
        wanted = TORCH.call(graph, TORCH, PROGRAMS[name])
        got = OURS.call(graph, OURS, PROGRAMS[name])
        for left, right in zip(got, wanted, strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-10, atol=1e-12)

    @parameterized.expand(REFUSED)
    def test_refused(self, name):
        theirs = outcome(TORCH, graph, REFUSED[name])
        ours = outcome(OURS, graph, REFUSED[name])
        self.assertIsInstance(theirs, Exception)
        self.assertIsInstance(ours, RuntimeError)
        if name != "plain_unbind":  # PyTorch takes it for a view made in no_grad
            self.assertEqual(str(ours)[:24], str(theirs)[:24])

    @parameterized.expand([(start,) for start in range(0, 400, 50)])
    def test_random(self, start):
        for seed in range(start, start + 50):
            Program(self, seed).run()


class TestAliases(unittest.TestCase):
    """A write with an operand in the same memory; PyTorch notices in backward, here it works."""

    @parameterized.expand(
        [
            ("itself", lambda x: x.mul_(x), lambda x: x * x),
            ("another_row", lambda x: (x[0].mul_(x[1]), x)[1], lambda x: x * x[1:2]),
        ]
    )
    def test(self, _, program, formula):
        values = np.random.default_rng(0).standard_normal((2, 3))
        x, y = (OURS.tensor(values, "float64").requires_grad_(True) for _ in range(2))
        weights = OURS.tensor(np.array([[1.0], [0.0]]), "float64")
        (program(x * 1) * weights).sum().backward()
        (formula(y) * weights).sum().backward()
        np.testing.assert_allclose(OURS.numpy(x.grad), OURS.numpy(y.grad))


class TestSharing(unittest.TestCase):
    def test_versions(self):
        """Every view counts the writes of its memory; `detach` shares the counter."""
        for side in (TORCH, OURS):
            x = side.tensor(np.zeros((3, 4)), "float64")
            v, d = x[1:].t(), x.detach()
            v.add_(1)
            x.zero_()
            d[0] = 3
            x[x > 1] = 2
            x.t_()
            self.assertEqual([t._version for t in (x, v, d)], [5, 5, 5])

    def test_copies_share_nothing(self):
        x = OURS.tensor(np.arange(6.0).reshape(2, 3), "float64")
        index = OURS.module.tensor([0, 1], device=x.device)
        cat, stack, pad = OURS.module.cat, OURS.module.stack, OURS.module.nn.functional.pad
        for copy in (
            x.clone(), x[index], x[x >= 0], x.flip(0), x[:1].flip(0), x.t().reshape(-1), x.tile(1),
            x.repeat(1, 1), x.roll(0), x.contiguous().clone(), x.tril(9), x.index_select(0, index),
            cat([x]), stack([x]), pad(x, (0, 0)),
        ):  # fmt: skip
            copy.fill_(-1)
            self.assertEqual(OURS.numpy(x).tolist(), [[0, 1, 2], [3, 4, 5]])


if __name__ == "__main__":
    unittest.main()


@pytest.mark.parametrize("way", ["kept", "no_grad", "recorded", "backward", "written"])
def test_views_of_views_cost_what_one_view_costs(way):
    """Twice as many take about twice as long: a view does not copy how its base was reached."""

    lib = OURS.module

    def seconds(count):
        base = lib.zeros(2, 3, requires_grad=True)
        view = base if way in ("kept", "no_grad") else base * 1
        whole, kept = view, []
        begin = time.process_time()
        with lib.set_grad_enabled(way in ("recorded", "backward", "written")):
            for _ in range(count):
                view = view.unsqueeze(0).squeeze(0)
                if way == "kept":
                    kept.append(view)
            if way == "backward":
                view.sum().backward()
            if way == "written":
                view.add_(1)
                whole.sum().backward()
        return time.process_time() - begin

    gc.disable()  # what a collection takes depends on what other tests keep
    try:
        few, many = (min(seconds(count) for _ in range(3)) for count in (1000, 16_000))
    finally:
        gc.enable()
    assert many < 16 * 8 * few  # copied paths would take 16 * 16 times as long, and more
