"""grad, vjp, jvp and linearize against PyTorch's."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import Failure, attempt, same


def vector(lib, *values, grad=False):
    return lib.tensor(values or (0.3, 0.7, 1.2), dtype=lib.float64, requires_grad=grad)


def whole(lib):
    return lib.tensor([1, 2, 3])


GRADS = [
    ("plain", lambda lib, f, x: f.grad(lambda x: x.sin().sum())(x)),
    ("value", lambda lib, f, x: f.grad_and_value(lambda x: (x * x).sum())(x)),
    ("aux", lambda lib, f, x: f.grad(lambda x: (x.sum(), {"a": x * 2}), has_aux=True)(x)),
    ("aux and value", lambda lib, f, x: f.grad_and_value(
        lambda x: (x.sum(), x), has_aux=True)(x)),
    ("tree", lambda lib, f, x: f.grad(
        lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [x * 2, x]})),
    ("argnums", lambda lib, f, x: f.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x * 2)),
    ("last", lambda lib, f, x: f.grad(lambda a, b: (a * b).sum(), argnums=-1)(x, x * 2)),
    ("pair", lambda lib, f, x: f.grad(
        lambda a, b: (a * a * b).sum(), argnums=(1, 0))(x, x * 2)),
    ("keywords", lambda lib, f, x: f.grad(lambda a, *, k: (a * k).sum())(x, k=x)),
    ("unused", lambda lib, f, x: f.grad(lambda x: lib.ones(()))(x)),
    ("twice", lambda lib, f, x: f.grad(lambda x: f.grad(lambda y: (y**3).sum())(x).sum())(x)),
    ("three times", lambda lib, f, x: f.grad(f.grad(f.grad(lambda y: y**4 + y.sin())))(x[1])),
    ("closed over", lambda lib, f, x: f.grad(
        lambda x: (f.grad(lambda y: (x * y * y).sum())(x) * x).sum())(x)),
    ("constant inside", lambda lib, f, x: f.grad(
        lambda x: x * f.grad(lambda y: x + y)(lib.ones_like(x)))(x[0])),
    ("no_grad inside", lambda lib, f, x: f.grad(
        lambda x: (x**2).sum() - no_grad(lib, lambda: (x**3).sum()))(x)),
    ("no_grad outside", lambda lib, f, x: no_grad(lib, lambda: f.grad(
        lambda x: (x**2).sum())(x))),
    ("detach", lambda lib, f, x: f.grad(lambda x: (x.detach() * x).sum())(x)),
    ("inside", lambda lib, f, x: f.grad(lambda x: lib.autograd.grad(
        (x**3).sum(), x, create_graph=True)[0].sum())(x)),
    ("write", lambda lib, f, x: f.grad(lambda x: x.clone().mul_(x).sum())(x)),
    ("vjp", lambda lib, f, x: vjp(f, lambda x: (x.sin(), x.sum()), x, (x, x[0]))),
    ("vjp of many", lambda lib, f, x: vjp(f, lambda a, b: {"y": a * b}, x, {"y": x}, x * 2)),
    ("vjp aux", lambda lib, f, x: f.vjp(lambda x: (x.sin(), x * 2), x, has_aux=True)[2]),
    ("grad of vjp", lambda lib, f, x: f.grad(
        lambda x: f.vjp(lambda y: y.sin() * x, x)[1](x)[0].sum())(x)),
    ("grad by cotangent", lambda lib, f, x: f.grad(
        lambda v: (f.vjp(lambda y: y.sin(), x)[1](v)[0] ** 2).sum())(x)),
    ("vjp twice", lambda lib, f, x: [pull(x) for pull in [f.vjp(lib.sin, x)[1]] * 2]),
    ("jvp", lambda lib, f, x: f.jvp(lambda x: (x.sin(), x.sum()), (x,), (x * 2,))),
    ("jvp of two", lambda lib, f, x: f.jvp(lambda a, b: {"y": a * b}, (x, x * 2), (x, x + 1))),
    ("jvp unused", lambda lib, f, x: f.jvp(lambda a: lib.ones(2), (x,), (x,))),
    ("jvp input", lambda lib, f, x: f.jvp(lambda a: a, (x,), (x + 1,))),
    ("jvp linear", lambda lib, f, x: f.jvp(lambda a: 2 * a, (x,), (x + 1,))),
    ("jvp aux", lambda lib, f, x: f.jvp(lambda a: (a * 2, a), (x,), (x,), has_aux=True)),
    ("jvp of jvp", lambda lib, f, x: f.jvp(
        lambda y: f.jvp(lib.sin, (y,), (x,))[1], (x,), (x * 3,))),
    ("jvp of grad", lambda lib, f, x: f.jvp(
        f.grad(lambda y: (y**4).sum()), (x,), (x * 3,))),
    ("grad of jvp", lambda lib, f, x: f.grad(
        lambda y: f.jvp(lambda z: (z**3) * y, (y,), (x,))[1].sum())(x)),
    ("grad by tangent", lambda lib, f, x: f.grad(
        lambda t: (f.jvp(lib.sin, (x,), (t,))[1] ** 2).sum())(x)),
    ("linearize", lambda lib, f, x: linear(f.linearize(lambda x: (x.sin(), x * x), x), x)),
]  # fmt: skip


def no_grad(lib, function):
    with lib.no_grad():
        return function()


def vjp(f, function, x, v, *others):
    outputs, pull = f.vjp(function, x, *others)
    return outputs, pull(v)


def linear(pair, x):
    outputs, push = pair
    return outputs, push(x), push(x * 2)


@parameterized.expand(GRADS)
def test_transform(name, f):
    # PyTorch's linearize traces and its jvp compiles, and both warn of it.
    same(lambda lib: f(lib, lib.func, vector(lib)), warned=False)


# PyTorch's linearize takes what it has traced for constant, also where the caller's x is in it.
TRACED = ("linearize",)


@parameterized.expand([row for row in GRADS if row[0] not in TRACED])
def test_transform_of_a_variable_of_the_callers(name, f):
    """Results are in the caller's graph, or not, as in PyTorch; so are their gradients."""

    def script(lib):
        x = vector(lib, grad=True)
        flat = tensors(lib, f(lib, lib.func, x))
        results = [y for y in flat if y.requires_grad]
        if not results:
            return flat
        total = sum([(y * y).sum() for y in results])
        return flat, lib.autograd.grad(total, x, allow_unused=True)

    same(script, warned=False)


def tensors(lib, value):
    if isinstance(value, lib.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in tensors(lib, item)]


ERRORS = [
    ("vector", lambda lib, f, x: f.grad(lambda x: x)(x)),
    ("number", lambda lib, f, x: f.grad(lambda x: 3)(x)),
    ("tuple", lambda lib, f, x: f.grad(lambda x: (x.sum(), x))(x)),
    ("integers", lambda lib, f, x: f.grad(lambda x: x.sum())(whole(lib))),
    ("float", lambda lib, f, x: f.grad(lambda x: x)(3.0)),
    ("no such argument", lambda lib, f, x: f.grad(lambda x: x.sum(), argnums=1)(x)),
    ("argument twice", lambda lib, f, x: f.grad(lambda x, y: x, argnums=(0, 0))(x, x)),
    ("no argument", lambda lib, f, x: f.grad(lambda x, y: x, argnums=())(x, x)),
    ("named argument", lambda lib, f, x: f.grad(lambda x, y: x, argnums="x")(x, x)),
    ("no pair", lambda lib, f, x: f.grad(lambda x: (x.sum(),), has_aux=True)(x)),
    ("aux number", lambda lib, f, x: f.grad(lambda x: (x.sum(), 3), has_aux=True)(x)),
    ("leaf", lambda lib, f, x: f.grad(lambda x: x.mul_(2).sum())(x)),
    ("cotangents", lambda lib, f, x: f.vjp(lambda x: (x, x), x)[1](x)),
    ("vjp number", lambda lib, f, x: f.vjp(lambda x: 3, x)),
    ("vjp of a number", lambda lib, f, x: f.vjp(lambda x: x, 3.0)),
    ("jvp primals", lambda lib, f, x: f.jvp(lambda x: x, x, x)),
    ("jvp structure", lambda lib, f, x: f.jvp(lambda x: x, (x,), (x, x))),
    ("jvp shape", lambda lib, f, x: f.jvp(lambda x: x, (x,), (x[:2],))),
    ("jvp nothing", lambda lib, f, x: f.jvp(lambda: 3, (), ())),
    ("jvp number", lambda lib, f, x: f.jvp(lambda x: 3, (x,), (x,))),
    ("jvp strict", lambda lib, f, x: f.jvp(lambda x: lib.ones(3), (x,), (x,), strict=True)),
    ("linearize shape", lambda lib, f, x: f.linearize(lib.sin, x)[1](x[:2])),
    ("linearize structure", lambda lib, f, x: f.linearize(lib.sin, x)[1](x, x)),
]  # fmt: skip


@parameterized.expand(ERRORS)
def test_error(name, f):
    result = same(lambda lib: f(lib, lib.func, vector(lib)), warned=False)
    assert isinstance(result, Failure)


def test_cotangent_of_another_shape():
    def script(lib):
        x = vector(lib)
        return isinstance(attempt(lib.func.vjp(lib.sin, x)[1], x[:2]), RuntimeError)

    assert same(script)
