"""Leaves, `requires_grad`, `detach`, `.data`, `.grad` and the version counter."""

from __future__ import annotations

import copy

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same


def vector(lib, *values, dtype=None):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=True)


# -- leaves ----------------------------------------------------------------------------------------


def test_leaves():
    def script(lib):
        x = vector(lib)
        with lib.no_grad():
            y = x * 2
        made = [x, y, x * 2, lib.ones(2), x.detach(), (x * 2).detach(), x.data, x.long()]
        made.append(lib.ones(2).requires_grad_() + 0)
        return [(t.is_leaf, t.requires_grad, t.grad_fn is None, t.output_nr) for t in made]

    same(script)


def test_requires_grad_of_results():
    def script(lib):
        x = vector(lib)
        results = [
            x + 1,
            x > 1,
            x.argmax(),
            x.long(),
            x.sort()[1],
            x.max(0)[1],
            x.isnan(),
            x.sign(),
            x.floor(),
            lib.zeros_like(x),
            lib.full_like(x, 2.0),
            x.new_ones(2),
            x.nonzero(),
            x == x,
            x.numpy(force=True) if False else x.detach(),
            lib.tensor([1]) * x,
            x.shape,
            x.to(lib.complex64),
            x.bool(),
            x[x > 1],
        ]
        return [(t.requires_grad, t.dtype) for t in results if isinstance(t, lib.Tensor)]

    same(script)


@parameterized.expand(
    [
        ("integers", lambda lib: lib.tensor([1]).requires_grad_()),
        ("booleans", lambda lib: lib.tensor([True]).requires_grad_()),
        ("assigned", lambda lib: setattr(lib.tensor([1]), "requires_grad", True)),
        ("constructor", lambda lib: lib.tensor([1], requires_grad=True)),
        ("zeros", lambda lib: lib.zeros(2, dtype=lib.int64, requires_grad=True)),
        ("non-leaf", lambda lib: (vector(lib) * 2).requires_grad_(False)),
        ("non-leaf assigned", lambda lib: setattr(vector(lib) * 2, "requires_grad", False)),
        ("integer parameter", lambda lib: lib.nn.Parameter(lib.tensor([1]))),
    ]
)
def test_requires_grad_is_refused(name, script):
    tlc.nn.Parameter  # noqa: B018  (binds nn)
    raises(script)


def test_requires_grad():
    def script(lib):
        x = lib.ones(3)
        seen = [x.requires_grad_() is x, x.requires_grad]
        x.requires_grad = False
        seen.append(x.requires_grad)
        x.requires_grad_(False)
        x.requires_grad_(requires_grad=True)
        y = x * 2
        y.requires_grad_()
        seen.append(attempt(setattr, y, "requires_grad", True))
        x.requires_grad_(False)
        seen += [y.requires_grad, x.requires_grad, lib.tensor([1]).requires_grad_(False)]
        y.sum().backward()
        return seen, x.grad, lib.tensor([1j]).requires_grad_().requires_grad

    same(script)


def test_frozen_and_thawed():
    def script(lib):
        x, y = vector(lib), vector(lib)
        x.requires_grad_(False)
        z = (x * y).sum()
        x.requires_grad_(True)
        z.backward()
        return x.grad, y.grad

    same(script)


# -- detach ----------------------------------------------------------------------------------------


def test_detach_shares_memory_and_version():
    def script(lib):
        x = vector(lib)
        y = x.detach()
        z = (x * 2).detach()
        y[0] = 100
        return y.requires_grad, y.is_leaf, x.detach(), x._version, y._version, z, y.grad

    same(script)


def test_write_through_detach_is_noticed():
    def script(lib):
        x = vector(lib)
        h = x * 1
        y = h.exp()
        y.detach().add_(1)
        y.sum().backward()

    raises(script, "modified by an inplace operation")


def test_detach_in_place():
    def script(lib):
        x = vector(lib)
        y = x * 2
        same_one = y.detach_() is y
        leaf = vector(lib)
        leaf.detach_()
        z = (x * 1)[:2]
        return same_one, y.requires_grad, y.is_leaf, leaf.requires_grad, attempt(z.detach_)

    same(script)


def test_detached_views():
    def script(lib):
        x = vector(lib)
        y = x[:2].detach()
        y.zero_()
        w = lib.ones(4)
        d = w.view(2, 2).detach()
        d.requires_grad_()
        (d * w.view(2, 2)).sum().backward()
        return x, y, d.grad

    same(script)


# -- data and grad ---------------------------------------------------------------------------------


def test_data():
    def script(lib):
        x = vector(lib)
        y = x * x
        version = x._version
        x.data.mul_(10)
        x.data[0] = 5
        seen = [x._version - version, x.data.requires_grad, x.data.is_leaf]
        y.sum().backward()  # nobody noticed the write
        return seen, x, x.grad

    same(script)


def test_data_assigned():
    def script(lib):
        x = vector(lib)
        other = lib.tensor([7.0, 8.0, 9.0])
        x.data = other
        other[0] = 0
        seen = [x.clone(), x.is_leaf, x.requires_grad]
        (x * 2).sum().backward()
        y = vector(lib)
        y.data = lib.ones(2, 2)
        return seen, (y * 2).sum(), attempt(setattr, y, "data", 3)

    same(script, words=("cannot assign", "Variable data has to be a tensor, but got int"))


def test_swap_of_data_types():
    def script(lib):
        x = vector(lib)
        x.data = x.data.double()
        (x * 2).sum().backward()
        return x, x.grad

    same(script)


@parameterized.expand(
    [
        ("number", lambda lib, x: 3.0),
        ("shape", lambda lib, x: lib.ones(2)),
        ("dtype", lambda lib, x: lib.ones(3, dtype=lib.float64)),
        ("itself", lambda lib, x: x),
        ("list", lambda lib, x: [1.0, 2.0, 3.0]),
        ("good", lambda lib, x: lib.ones(3)),
        ("none", lambda lib, x: None),
        ("expanded", lambda lib, x: lib.ones(1).expand(3)),
        ("with a graph", lambda lib, x: x * 2),
    ]
)
def test_grad_assigned(name, make):
    def script(lib):
        x = vector(lib)
        x.grad = make(lib, x)
        return x.grad

    same(
        script,
        words=(
            "assigned grad expected to be a Tensor or None but got grad of type",
            "attempting to assign a gradient of size '[2]' to a tensor of size '[3]'",
            "attempting to assign a gradient with dtype",
            "can't assign Variable as its own grad",
        ),
    )


def test_assigned_grad_accumulates():
    def script(lib):
        x = vector(lib)
        start = lib.full((3,), 10.0)
        x.grad = start
        (x * 2).sum().backward()
        seen = [start.clone(), x.grad is start]
        del x.grad
        seen.append(x.grad)
        x.grad = None
        return seen, x.grad

    same(script)


def test_grad_of_non_leaves():
    def script(lib):
        x = vector(lib)
        y = x * 2
        y.sum().backward()
        return y.grad

    same(script, words=("The .grad attribute of a Tensor that is not a leaf Tensor",))


def test_grads_can_be_changed():
    def script(lib):
        x = vector(lib)
        (x * 2).sum().backward()
        x.grad.zero_()
        (x * 3).sum().backward()
        x.grad.data.clamp_(max=1)
        (x * 3).sum().backward()
        return x.grad, x.grad.requires_grad, x.grad.is_leaf

    same(script)


def test_copies():
    def script(lib):
        x = vector(lib)
        (x * 2).sum().backward()
        y = copy.deepcopy(x)
        z = copy.copy(x)
        y.grad.zero_()
        return (
            (y, y.grad, y.is_leaf, x.grad, z, z is x, z.is_leaf),
            attempt(copy.deepcopy, x * 2),
            x.clone().requires_grad,
            x.clone().is_leaf,
            lib.clone(x.detach()).requires_grad,
        )

    same(script, warned=False)


def test_set():
    def script(lib):
        x = lib.ones(3)
        y = lib.zeros(2, 2)
        x.set_(y)
        x[0, 0] = 5
        return x, y

    same(script)


def test_version_counter():
    def script(lib):
        x = lib.ones(3)
        seen = [x._version]
        x.add_(1)
        x[0] = 3
        view = x[1:]
        view.mul_(2)
        x.detach().zero_()
        x.zero_()
        lib.add(x, 1, out=x)
        seen += [x._version, view._version, x.detach()._version, x.clone()._version]
        x += 1
        x.data += 1
        seen.append(x._version)
        lib.autograd.graph.increment_version(x)
        return seen, x._version

    same(script)
