"""In-place operations in graphs: values, gradients, version errors, refusals."""

from __future__ import annotations

import pytest
import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same
from tests.device import DEVICE
from tests.nn.against_torch import plain

NOTICED = "one of the variables needed for gradient computation has been modified by an inplace"


def vector(lib, *values, dtype=None):
    return lib.tensor(values or (0.5, 1.0, 2.0), dtype=dtype, requires_grad=True)


@parameterized.expand(
    [
        (name,)
        for name in """exp_ sigmoid_ relu_ tanh_ sqrt_ log_ neg_ abs_ sin_ cos_ square_ reciprocal_
        floor_ zero_ rsqrt_ log1p_ expm1_ erf_ sign_ trunc_ clamp_min_ asin_ cosh_ round_
        detach_""".split()
    ]
)
def test_methods(name):
    def script(lib):
        x = vector(lib, 0.2, 0.5, 0.9)
        h = x * 1
        arguments = (0.4,) if name == "clamp_min_" else ()
        same_one = getattr(h, name)(*arguments) is h
        if h.requires_grad:
            (h * lib.tensor([1.0, 2.0, 3.0])).sum().backward()
        return same_one, h, x.grad

    same(script)


@parameterized.expand(
    [
        ("add_", lambda lib, h, x: h.add_(x)),
        ("add_ with alpha", lambda lib, h, x: h.add_(x, alpha=2)),
        ("sub_", lambda lib, h, x: h.sub_(x)),
        ("mul_", lambda lib, h, x: h.mul_(x)),
        ("div_", lambda lib, h, x: h.div_(x)),
        ("pow_", lambda lib, h, x: h.pow_(2)),
        ("pow_ of tensors", lambda lib, h, x: h.pow_(x)),
        ("addcmul_", lambda lib, h, x: h.addcmul_(x, x, value=3)),
        ("addcdiv_", lambda lib, h, x: h.addcdiv_(x, x + 1)),
        ("lerp_", lambda lib, h, x: h.lerp_(x, 0.25)),
        ("fill_", lambda lib, h, x: h.fill_(2)),
        ("fill_ with a tensor", lambda lib, h, x: h.fill_(x.sum())),
        ("copy_", lambda lib, h, x: h.copy_(x * x)),
        ("copy_ another dtype", lambda lib, h, x: h.copy_((x * x).double())),
        ("copy_ broadcast", lambda lib, h, x: h.copy_(x[0])),
        ("masked_fill_", lambda lib, h, x: h.masked_fill_(x > 0.7, 5.0)),
        ("index_fill_", lambda lib, h, x: h.index_fill_(0, lib.tensor([1]), 5.0)),
        ("index_add_", lambda lib, h, x: h.index_add_(0, lib.tensor([1, 1]), x[:2])),
        ("index_copy_", lambda lib, h, x: h.index_copy_(0, lib.tensor([2, 0]), x[:2])),
        ("scatter_", lambda lib, h, x: h.scatter_(0, lib.tensor([1]), x[:1])),
        ("scatter_add_", lambda lib, h, x: h.scatter_add_(0, lib.tensor([1, 1]), x[:2])),
        ("clamp_", lambda lib, h, x: h.clamp_(0.6, 1.5)),
        ("item", lambda lib, h, x: h.__setitem__(1, 5.0)),
        ("item of the graph", lambda lib, h, x: h.__setitem__(1, x[0] * x[2])),
        ("slice", lambda lib, h, x: h.__setitem__(slice(1, None), x[:2])),
        ("mask", lambda lib, h, x: h.__setitem__(x > 0.7, 3.0)),
        ("mask and tensor", lambda lib, h, x: h.__setitem__(x > 0.7, x[:2])),
        ("list", lambda lib, h, x: h.__setitem__([0, 2], x[1:])),
        ("ellipsis", lambda lib, h, x: h.__setitem__(Ellipsis, x)),
        ("cumsum_", lambda lib, h, x: h.cumsum_(0)),
        ("part", lambda lib, h, x: h[1:].mul_(x[1:])),
        ("part of a part", lambda lib, h, x: h[1:][0].mul_(x[0])),
        ("reshaped", lambda lib, h, x: h.view(3, 1).add_(x[:, None])),
        ("random", lambda lib, h, x: h.uniform_(1, 1)),
        ("put_", lambda lib, h, x: h.put_(lib.tensor([0]), x[1:2])),
        ("masked_scatter_", lambda lib, h, x: h.masked_scatter_(x > 0.7, x)),
        ("zero_ a part", lambda lib, h, x: h[:2].zero_()),
        ("t_", lambda lib, h, x: h.unsqueeze_(0).t_()),
        ("itself", lambda lib, h, x: h.add_(h)),
        ("sigmoid of a part", lambda lib, h, x: h[:2].sigmoid_()),
        ("normal_", lambda lib, h, x: h.normal_(3, 0)),
    ]
)
def test_operations(name, write):
    def script(lib):
        x = vector(lib)
        h = x * 3
        write(lib, h, x)
        weights = lib.arange(1.0, 4.0).reshape(h.shape)
        version = h._version > 0
        (h * h * weights).sum().backward()
        return h, x.grad, version

    same(script)


def test_augmented_assignment():
    def script(lib):
        x = vector(lib)
        y = x * 2
        kept = y
        y += x
        y *= 3
        y -= 1
        y /= 2
        y **= 2
        y.sum().backward()
        z = lib.ones(3)
        z += x  # a tensor without a graph enters one
        z.sum().backward()
        return y is kept, x.grad, z.requires_grad, z.grad_fn.name()

    same(script)


def test_running_sum():
    def script(lib):
        x = vector(lib)
        total = 0
        for i in range(4):
            total += (x * i).sum()
        other = lib.zeros(())
        for i in range(4):
            other += (x * x * i).sum()
        (total * other).backward()
        return total, other, x.grad

    same(script)


# -- what backward needed was written --------------------------------------------------------------


@parameterized.expand(
    [
        ("input", lambda x: (lambda h: (h * h, h))(x * 1)),
        ("output", lambda x: (lambda y: (y, y))(x.exp())),
        ("output of sigmoid", lambda x: (lambda y: (y, y))(x.sigmoid())),
        ("output of tanh", lambda x: (lambda y: (y, y))(x.tanh())),
        ("output of softmax", lambda x: (lambda y: (y, y))(x.softmax(0))),
        ("output of relu", lambda x: (lambda y: (y, y))(x.relu())),
        ("output of sqrt", lambda x: (lambda y: (y, y))(x.sqrt())),
        ("matmul", lambda x: (lambda h: (h @ h, h))(x * 1)),
        ("a view of the input", lambda x: (lambda h: (h * h, h[:1]))(x * 1)),
        ("the base of the input", lambda x: (lambda h: (h[1:] * h[1:], h))(x * 1)),
        ("not needed", lambda x: (lambda h: (h + h, h))(x * 1)),
        ("not needed either", lambda x: (lambda h: (h * 2, h))(x * 1)),
        ("shape only", lambda x: (lambda h: (h.sum(), h))(x * 1)),
        ("the sign", lambda x: (lambda h: (h.abs(), h))(x * 1)),
        ("numerator", lambda x: (lambda h: (h / 2, h))(x * 1)),
        ("max", lambda x: (lambda h: (h.max(), h))(x * 1)),
        ("norm", lambda x: (lambda h: (h.norm(), h))(x * 1)),
        ("pow", lambda x: (lambda h: (h**2, h))(x * 1)),
        ("clone", lambda x: (lambda h: (h.clone(), h))(x * 1)),
    ]
)
def test_modified(name, make):
    def script(lib):
        x = vector(lib)
        y, target = make(x)
        target.detach().mul_(2)
        return attempt(y.sum().backward), x.grad

    same(script, words=(NOTICED,))


def test_the_message():
    def script(lib):
        x = vector(lib)
        h = x * 1
        y = h.exp() * h
        h += 1
        y.sum().backward()

    message = raises(script, NOTICED)
    for word in ("FloatTensor [3]", "version 1; expected version 0", "set_detect_anomaly(True"):
        assert word in message


def test_the_message_names_the_maker():
    def script(lib):
        y = vector(lib).exp()
        y += 1
        y.sum().backward()

    raises(script, "which is output 0 of ")


def test_leaf_written_after_use():
    def script(lib):
        x, w = vector(lib), vector(lib)
        y = (x * w).sum()
        with lib.no_grad():
            w -= 0.1
        return attempt(y.backward)

    same(script, words=(NOTICED,))


def test_leaf_written_after_backward():
    def script(lib):
        w = vector(lib)
        for _ in range(3):
            loss = (w * w).sum()
            loss.backward()
            with lib.no_grad():
                w -= 0.1 * w.grad
                w.grad.zero_()
        return w, w.requires_grad, w.is_leaf, w._version

    same(script)


def test_shifts_written_values_in_both_orders():
    def script(lib):
        x = vector(lib)
        h = x * 1
        y = h.sin()
        h.mul_(2)
        z = h.cos()
        seen = attempt(z.sum().backward, retain_graph=True), x.grad.clone()
        return seen, attempt(y.sum().backward)

    same(script, words=(NOTICED,))


# -- refusals --------------------------------------------------------------------------------------


@parameterized.expand(
    [
        ("leaf", lambda lib, x: x.add_(1)),
        ("leaf item", lambda lib, x: x.__setitem__(0, 1)),
        ("view of a leaf", lambda lib, x: x[:2].add_(1)),
        ("view of a view of a leaf", lambda lib, x: x[:2].view(2, 1).add_(1)),
        ("detached leaf", lambda lib, x: x.detach().add_(1)),
        ("leaf's data", lambda lib, x: x.data.add_(1)),
        ("leaf fill", lambda lib, x: x.fill_(1)),
        ("leaf uniform", lambda lib, x: x.uniform_()),
        ("leaf zero", lambda lib, x: x.zero_()),
        ("leaf copy", lambda lib, x: x.copy_(lib.ones(3))),
        ("leaf random", lambda lib, x: x.normal_()),
        ("leaf resize", lambda lib, x: x.resize_(2)),
        ("leaf squeeze", lambda lib, x: x.unsqueeze_(0)),
        ("out", lambda lib, x: lib.add(x, 1, out=x)),
        ("out of the graph", lambda lib, x: lib.add(x, 1, out=lib.ones(3))),
        ("expanded", lambda lib, x: (x * 1)[:1].expand(3).add_(1)),
        ("shape", lambda lib, x: (x * 1).add_(lib.ones(2, 3))),
        ("dtype", lambda lib, x: lib.ones(3, dtype=lib.int64).add_(x)),
        ("complex", lambda lib, x: (x * 1).add_(1j)),
        ("unbind", lambda lib, x: (x * 1).unbind(0)[0].add_(1)),
        ("split", lambda lib, x: (x * 1).split(1)[0].add_(1)),
        ("iteration", lambda lib, x: [row.add_(1) for row in x * 1]),
        ("bool of div", lambda lib, x: lib.tensor([1, 2]).div_(2)),
    ]
)
def test_refused(name, write):
    def script(lib):
        return write(lib, vector(lib))

    same(
        script,
        words=(
            "a leaf Variable that requires grad is being used in an in-place operation",
            "a view of a leaf Variable that requires grad is being used in an in-place operation",
            "don't support automatic differentiation",
            "single memory location",
            "doesn't match the broadcast shape",
            "can't be cast to the desired output type",
            "cannot resize variables that require grad",
            "is a view and is being modified inplace",
            "a leaf Variable that requires grad",
        ),
    )


@parameterized.expand(
    [
        ("leaf", lambda lib, x: x.add_(1)),
        ("leaf item", lambda lib, x: x.__setitem__(0, 1)),
        ("view", lambda lib, x: x[:2].add_(1)),
        ("out", lambda lib, x: lib.add(x, 1, out=x)),
        ("uniform", lambda lib, x: x.uniform_(2, 2)),
        ("unbind", lambda lib, x: x.unbind(0)[0].add_(1)),
    ]
)
def test_allowed_without_grad(name, write):
    def script(lib):
        x = vector(lib)
        with lib.no_grad():
            write(lib, x)
        (x * x).sum().backward()
        return x, x.is_leaf, x.requires_grad, x.grad, x._version

    same(script)


def test_expanded_without_a_graph():
    def script(lib):
        x = lib.ones(1).expand(3)
        y = lib.ones(3, 1).expand(3, 4)
        return (
            attempt(x.add_, 1),
            attempt(x.zero_),
            attempt(x.copy_, lib.ones(3)),
            attempt(y.__setitem__, (0, 0), 5),
            attempt(y.mul_, 2),
        )

    same(script, words=("single memory location",))


def test_integer_and_boolean_writes():
    def script(lib):
        x = lib.tensor([1, 2, 3])
        x += 2.9 if False else 2
        x.mul_(3)
        b = lib.tensor([True, False])
        b |= lib.tensor([False, True])
        f = lib.tensor([1.5])
        f += lib.tensor([2])
        return x, b, f, attempt(x.__iadd__, 0.5), attempt(b.__iadd__, 2), attempt(x.__itruediv__, 2)

    same(script, words=("can't be cast to the desired output type",))


# -- views -----------------------------------------------------------------------------------------


def test_writes_through_views_reach_the_base():
    def script(lib):
        x = vector(lib)
        base = x * 1
        view = base[1:]
        view.mul_(10)
        base.add_(1)
        view.sub_(x[:2])
        view.t().sum().backward(retain_graph=True)
        first = x.grad.clone()
        base.sum().backward()
        return base, view, first, x.grad, view.grad_fn is not None

    same(script)


def test_base_that_enters_a_graph_by_its_view():
    def script(lib):
        x = vector(lib)
        buffer = lib.zeros(2, 3)
        buffer[0] = x
        buffer[1].copy_(x * x)
        column = buffer[:, 0]
        column.mul_(2)
        (buffer * lib.arange(6.0).reshape(2, 3)).sum().backward()
        return buffer, x.grad, buffer.grad_fn.name(), column.requires_grad, buffer.is_leaf

    same(script)


def test_detached_views_stay_out():
    def script(lib):
        x = vector(lib)
        buffer = lib.zeros(3)
        view = buffer.detach()
        view.add_(x)
        return buffer, buffer.requires_grad, view.requires_grad

    same(script)


def test_view_made_without_grad():
    def script(lib):
        x = vector(lib)
        base = x * 1
        with lib.no_grad():
            view = base[:2]
        return attempt(view.mul_, 2)

    same(script, words=("A view was created in no_grad mode",))


def test_second_order_through_writes():
    def script(lib):
        x = vector(lib, dtype=lib.float64)
        h = x * 1
        h[1:].mul_(x[:2]).exp_()
        h.pow_(2)
        (g,) = lib.autograd.grad(h.sum(), x, create_graph=True)
        return g, lib.autograd.grad(g.sum(), x)

    same(script)


def test_saved_output_of_an_in_place_function():
    def script(lib):
        x = vector(lib)
        y = (x * 1).exp_()
        z = y.sigmoid_().relu_()
        z.sum().backward()
        w = (x * 1).exp_()
        (w * w).sum().backward()
        return x.grad, y is z

    same(script)


def test_functional_inplace():
    def script(lib):
        F = lib.nn.functional
        x = vector(lib, -1.0, 0.5, 2.0)
        seen = []
        for name in ("relu", "leaky_relu", "elu", "silu", "hardtanh", "relu6", "celu", "mish"):
            h = x * 1
            out = getattr(F, name)(h, inplace=True)
            (out * out).sum().backward()
            seen.append((out is h, h, x.grad.clone()))
        return seen

    same(script)


POOLS = {
    "max_pool1d": lambda F, x: F.max_pool1d(x[0], 3, 2, 1),
    "max_pool2d": lambda F, x: F.max_pool2d(x, 3, 2, 1),
    "max_pool3d": lambda F, x: F.max_pool3d(x, 2),
    "adaptive": lambda F, x: F.adaptive_max_pool2d(x, (3, 4)),
    "adaptive_uneven": lambda F, x: F.adaptive_max_pool2d(x, (4, 5)),
}


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("order", [1, 2])
def test_writes_into_pooled_values(name, order):
    """The maxima that the backward looks for are gone: they are found again in the input."""

    def script(lib):
        values = lib.arange(1 * 2 * 6 * 8).reshape(1, 2, 6, 8).mul(37).remainder(53).sub(26.0)
        x = (values.to(DEVICE) if lib is tlc else values).requires_grad_()
        y = lib.relu_(POOLS[name](lib.nn.functional, x))
        (g,) = lib.autograd.grad((y * y * y).sum(), x, create_graph=order == 2)
        return g if order == 1 else lib.autograd.grad((g * g).sum(), x)[0]

    assert plain(script(tlc).detach()) == plain(script(torch).detach())


def test_writes_into_the_input_of_a_pooling_are_noticed():
    x = tlc.ones(1, 1, 4, 4, requires_grad=True) * 1
    y = tlc.nn.functional.max_pool2d(x, 2).relu_()
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*\[1, 1, 4, 4\]"):
        y.sum().backward()
