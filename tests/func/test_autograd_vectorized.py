"""autograd.grad of many vectors at once, and functional.jacobian and hessian by vmap."""

from __future__ import annotations

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import Failure, raises, same


def vector(lib, grad=False):
    return lib.tensor([0.3, 0.7], dtype=lib.float64, requires_grad=grad)


def eye(lib):
    return lib.eye(2, dtype=lib.float64)


def detached(lib, value):
    if isinstance(value, lib.Tensor):
        return value.detach()
    return [detached(lib, entry) for entry in value]


def batched(lib, outputs, inputs, vectors, **options):
    return lib.autograd.grad(outputs, inputs, vectors, is_grads_batched=True, **options)


GRADS = [
    ("rows", lambda lib, x, y: batched(lib, y, x, eye(lib))),
    ("two outputs", lambda lib, x, y: batched(lib, (y, y.sum()), x, (eye(lib), eye(lib)[0]))),
    ("scalar", lambda lib, x, y: batched(lib, y.sum(), x, vector(lib))),
    ("unused", lambda lib, x, y: batched(
        lib, y, (x, vector(lib, True)), eye(lib), allow_unused=True)),
    ("zeros", lambda lib, x, y: batched(
        lib, y, (x, vector(lib, True)), eye(lib), materialize_grads=True)),
    ("cast", lambda lib, x, y: batched(lib, y, x, eye(lib).float())),
    ("twice", lambda lib, x, y: [
        batched(lib, y, x, eye(lib), retain_graph=True), batched(lib, y, x, eye(lib))]),
    ("of its gradients", lambda lib, x, y: lib.autograd.grad(
        batched(lib, y, x, eye(lib), create_graph=True)[0].square().sum(), x)),
    ("through a product", lambda lib, x, y: batched(lib, (x[:, None] * x) @ y, x, eye(lib))),
    ("written", lambda lib, x, y: batched(lib, x.clone().mul_(x), x, eye(lib))),
    ("own function", lambda lib, x, y: batched(lib, squared(lib).apply(x), x, eye(lib))),
    ("hook", lambda lib, x, y: [y.register_hook(lambda g: g * 2), batched(lib, y, x, eye(lib))][1]),
    ("nested", lambda lib, x, y: lib.func.vmap(
        lambda v: batched(lib, y, x, v, retain_graph=True)[0])(lib.stack([eye(lib)] * 3))),
]  # fmt: skip


def squared(lib):
    class Squared(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    return Squared


@parameterized.expand(GRADS)
def test_many_vectors(name, f):
    def script(lib):
        x = vector(lib, True)
        return f(lib, x, x * x)

    # PyTorch says of its older vmap that it is slow where the two meet.
    assert not isinstance(same(script, warned=False), Failure)


GRAD_ERRORS = [
    ("shape", lambda lib, x, y: batched(lib, y, x, eye(lib)[:, :1]), "are expected to match"),
    ("no batch", lambda lib, x, y: batched(lib, y, x, eye(lib)[0]), "are expected to match"),
    ("none", lambda lib, x, y: batched(lib, y, x, None), "only for scalar outputs"),
    ("sizes", lambda lib, x, y: batched(lib, (y, y), x, (eye(lib), eye(lib)[:1])), "[2, 1]"),
    ("unused", lambda lib, x, y: batched(lib, y, (x, vector(lib, True)), eye(lib)), "at index 1"),
    ("freed", lambda lib, x, y: [batched(lib, y, x, eye(lib)), batched(lib, y, x, eye(lib))],
     "a second time"),
    ("values read", lambda lib, x, y: batched(lib, reading(lib).apply(x), x, eye(lib)),
     ""),  # PyTorch's older vmap has other words for it
]  # fmt: skip


def reading(lib):
    class Reading(squared(lib)):
        @staticmethod
        def backward(ctx, g):
            return g * g.sum().item()

    return Reading


@parameterized.expand(GRAD_ERRORS)
def test_wrong_vectors(name, f, word):
    raises(lambda lib: f(lib, x := vector(lib, True), x * x), word)


def test_all_vectors_are_one_pass():
    """Each gradient of the graph is computed once, whatever the number of rows."""
    x = tlc.tensor([0.3, 0.7], requires_grad=True)
    y = x.sin()
    shapes = []
    y.register_hook(lambda g: shapes.append(g.shape))
    tlc.autograd.grad(y, x, tlc.ones(5, 2), is_grads_batched=True)
    tlc.autograd.functional.jacobian(lambda x: told(x.sin(), shapes), x, vectorize=True)
    assert shapes == [(2,), (2,)]


def told(y, shapes):
    y.register_hook(lambda g: shapes.append(g.shape))
    return y


FUNCTIONS = [
    ("vector", 1, lambda lib, x: x * x.sum()),
    ("scalar", 1, lambda lib, x: (x**3).prod()),
    ("matrix", 1, lambda lib, x: x.outer(x)),
    ("several", 1, lambda lib, x: (x * x, x.sum())),
    ("constant", 1, lambda lib, x: lib.ones(2, dtype=x.dtype)),
    ("partly constant", 1, lambda lib, x: (x * 2, lib.ones(2, dtype=x.dtype))),
    ("two inputs", 2, lambda lib, x, y: x * y.sum()),
    ("one unused", 2, lambda lib, x, y: (x * x, x.sum())),
    ("complex", 1, lambda lib, x: x * (1 + 2j)),
]


@parameterized.expand([
    (f"{name} {strategy}", count, f, strategy)
    for name, count, f in FUNCTIONS
    for strategy in ("reverse-mode", "forward-mode")
])  # fmt: skip
def test_jacobian(name, count, f, strategy):
    def script(lib):
        inputs = tuple([vector(lib) + number for number in range(count)])
        return lib.autograd.functional.jacobian(
            lambda *xs: f(lib, *xs), inputs if count > 1 else inputs[0], vectorize=True,
            strategy=strategy,
        )  # fmt: skip

    assert not isinstance(same(script, warned=False), Failure)


SCALARS = [
    ("cubes", 1, lambda lib, x: (x**3).sum() * x.sin().sum()),
    ("linear", 1, lambda lib, x: (x * 2).sum()),
    ("two", 2, lambda lib, x, y: (x**3 * y).sum()),
    ("softmax", 1, lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor(1))),
]


@parameterized.expand([
    (f"{name} {strategy}", count, f, strategy)
    for name, count, f in SCALARS
    for strategy in ("reverse-mode", "forward-mode")
])  # fmt: skip
def test_hessian(name, count, f, strategy):
    def script(lib):
        inputs = tuple([vector(lib) + number for number in range(count)])
        found = lib.autograd.functional.hessian(
            lambda *xs: f(lib, *xs), inputs if count > 1 else inputs[0], vectorize=True,
            outer_jacobian_strategy=strategy,
        )  # fmt: skip
        return detached(lib, found)

    assert not isinstance(same(script, warned=False), Failure)


def test_gradient_of_a_jacobian():
    def script(lib):
        x = vector(lib, True)
        found = lib.autograd.functional.jacobian(
            lambda x: x.outer(x).sin(), x, create_graph=True, vectorize=True
        )
        return found.detach(), lib.autograd.grad(found.square().sum(), x)

    assert not isinstance(same(script), Failure)


ERRORS = [
    ("strict", {"strict": True, "vectorize": True}),
    ("strategy", {"strategy": "sideways"}),
    ("not vectorized", {"strategy": "forward-mode"}),
    ("graph", {"strategy": "forward-mode", "vectorize": True, "create_graph": True}),
    ("strict forward", {"strategy": "forward-mode", "vectorize": True, "strict": True}),
]


@parameterized.expand(ERRORS)
def test_wrong_options(name, options):
    raises(lambda lib: lib.autograd.functional.jacobian(lib.sin, vector(lib), **options))
    options = {
        key.replace("strategy", "outer_jacobian_strategy"): value for key, value in options.items()
    }
    raises(lambda lib: lib.autograd.functional.hessian(
        lambda x: (x**3).sum(), vector(lib), **options))  # fmt: skip
