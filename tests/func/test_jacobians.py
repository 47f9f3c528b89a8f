"""jacrev, jacfwd, hessian and transforms of transforms against PyTorch's."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import Failure, same
from tests.func.numbers import filled, normal


def vector(lib, grad=False):
    return lib.tensor([0.3, 0.7, 1.2], dtype=lib.float64, requires_grad=grad)


def tree(x):
    return {"a": x, "b": [x * 2]}


CALLS = [
    ("rev", lambda lib, f, x: f.jacrev(lambda x: x.outer(x))(x)),
    ("fwd", lambda lib, f, x: f.jacfwd(lambda x: x.outer(x))(x)),
    ("rev scalar", lambda lib, f, x: f.jacrev(lambda x: x.prod())(x)),
    ("fwd scalar", lambda lib, f, x: f.jacfwd(lambda x: x.prod())(x)),
    ("rev by a scalar", lambda lib, f, x: f.jacrev(lambda s: s * x)(x[0])),
    ("fwd by a scalar", lambda lib, f, x: f.jacfwd(lambda s: s * x)(x[0])),
    ("rev outputs", lambda lib, f, x: f.jacrev(lambda x: {"y": x * x, "z": (x.sum(),)})(x)),
    ("fwd outputs", lambda lib, f, x: f.jacfwd(lambda x: {"y": x * x, "z": (x.sum(),)})(x)),
    ("rev inputs", lambda lib, f, x: f.jacrev(lambda d: d["a"] * d["b"][0])(tree(x))),
    ("fwd inputs", lambda lib, f, x: f.jacfwd(lambda d: d["a"] * d["b"][0])(tree(x))),
    ("rev argnums", lambda lib, f, x: f.jacrev(
        lambda a, b: a * b, argnums=(1, 0))(x, x * 2)),
    ("fwd argnums", lambda lib, f, x: f.jacfwd(
        lambda a, b: (a * b, a), argnums=(1, 0))(x, x * 2)),
    ("rev last", lambda lib, f, x: f.jacrev(lambda a, b: a * b, argnums=-1)(x, x * 2)),
    ("rev aux", lambda lib, f, x: f.jacrev(lambda x: (x * x, {"k": x + 1}), has_aux=True)(x)),
    ("fwd aux", lambda lib, f, x: f.jacfwd(lambda x: (x * x, {"k": x + 1}), has_aux=True)(x)),
    ("rev chunks", lambda lib, f, x: f.jacrev(lambda x: x.outer(x), chunk_size=2)(x)),
    ("rev constant", lambda lib, f, x: f.jacrev(lambda x: lib.ones(2))(x)),
    ("fwd constant", lambda lib, f, x: f.jacfwd(lambda x: lib.ones(2))(x)),
    ("hessian", lambda lib, f, x: f.hessian(lambda x: (x**3).sum() * x.sin().sum())(x)),
    ("hessian of two", lambda lib, f, x: f.hessian(
        lambda a, b: (a**3 * b).sum(), argnums=(0, 1))(x, x * 2)),
    ("rev of rev", lambda lib, f, x: f.jacrev(f.jacrev(lambda x: x**3))(x)),
    ("fwd of fwd", lambda lib, f, x: f.jacfwd(f.jacfwd(lambda x: x**3))(x)),
    ("rev of fwd", lambda lib, f, x: f.jacrev(f.jacfwd(lambda x: x.outer(x).sin()))(x)),
    ("third", lambda lib, f, x: f.jacfwd(f.hessian(lambda x: (x**4).prod()))(x)),
    ("rev of vmap", lambda lib, f, x: f.jacrev(
        lambda x: f.vmap(lambda y: y * x)(x))(x)),
    ("fwd of vmap", lambda lib, f, x: f.jacfwd(
        lambda x: f.vmap(lambda y: y * x)(x))(x)),
    ("hessian of vmap", lambda lib, f, x: f.hessian(
        lambda x: (f.vmap(lambda y: (y * x).sin())(x) ** 2).sum())(x)),
    ("vmap of rev", lambda lib, f, x: f.vmap(f.jacrev(lambda x: x.outer(x)))(x.outer(x))),
    ("vmap of fwd", lambda lib, f, x: f.vmap(f.jacfwd(lambda x: x.outer(x)))(x.outer(x))),
    ("vmap of hessian", lambda lib, f, x: f.vmap(f.hessian(lambda x: (x**3).prod()))(x.outer(x))),
    ("vmap of grad", lambda lib, f, x: f.vmap(f.grad(lambda x: (x**3).prod()))(x.outer(x))),
    ("vmap of grad of shared", lambda lib, f, x: f.vmap(
        f.grad(lambda w, x: ((w * x) ** 2).sum()), in_dims=(None, 0))(x, x.outer(x))),
    ("vmap of vjp", lambda lib, f, x: f.vmap(
        lambda v: f.vjp(lambda x: x * x.sum(), x)[1](v)[0])(x.outer(x))),
    ("vmap of pull", lambda lib, f, x: f.vmap(f.vjp(lambda x: x * x.sum(), x)[1])(x.outer(x))),
    ("vmap of jvp", lambda lib, f, x: f.vmap(
        lambda t: f.jvp(lambda x: x * x.sum(), (x,), (t,))[1])(x.outer(x))),
    ("vmap of push", lambda lib, f, x: f.vmap(f.linearize(lambda x: x.sin(), x)[1])(x.outer(x))),
    ("grad of vmap of grad", lambda lib, f, x: f.grad(
        lambda w: (f.vmap(f.grad(lambda y: (y**3 * w).sum()))(x.outer(x)) ** 2).sum())(x)),
    ("grad of rev", lambda lib, f, x: f.grad(
        lambda x: (f.jacrev(lambda x: x.outer(x))(x) ** 2).sum())(x)),
    ("grad of fwd", lambda lib, f, x: f.grad(
        lambda x: (f.jacfwd(lambda x: x.outer(x))(x) ** 2).sum())(x)),
    ("grad in two levels", lambda lib, f, x: f.vmap(f.vmap(
        f.grad(lambda a, b: a * a * b), in_dims=(None, 0)), in_dims=(0, None))(x, x * 2)),
]  # fmt: skip


@parameterized.expand(CALLS)
def test_call(name, f):
    # PyTorch's forward mode warns of what it compiles.
    same(lambda lib: f(lib, lib.func, vector(lib)), warned=False)


# PyTorch's linearize takes what it has traced for constant.
@parameterized.expand([row for row in CALLS if row[0] != "vmap of push"])
def test_call_on_a_variable_of_the_callers(name, f):
    def script(lib):
        x = vector(lib, True)
        results = tensors(lib, f(lib, lib.func, x))
        total = sum([(y * y).sum() for y in results if y.requires_grad])
        if not isinstance(total, lib.Tensor):
            return results
        return results, lib.autograd.grad(total, x, allow_unused=True)

    same(script, warned=False)


def tensors(lib, value):
    if isinstance(value, lib.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for item in value for leaf in tensors(lib, item)]


ERRORS = [
    ("rev number", lambda lib, f, x: f.jacrev(lambda x: 3)(x)),
    ("fwd number", lambda lib, f, x: f.jacfwd(lambda x: 3)(x)),
    ("rev argnums", lambda lib, f, x: f.jacrev(lambda x: x, argnums=3)(x)),
    ("fwd argnums", lambda lib, f, x: f.jacfwd(lambda x: x, argnums=())(x)),
    ("chunk_size", lambda lib, f, x: f.jacrev(lambda x: x, chunk_size=0)(x)),
    ("rev of a number", lambda lib, f, x: f.jacrev(lambda x: x)(3.0)),
]


@parameterized.expand(ERRORS)
def test_error(name, f):
    result = same(lambda lib: f(lib, lib.func, vector(lib)), warned=False)
    assert isinstance(result, Failure)


def network(lib, kind):
    nn = lib.nn
    if kind == "mlp":
        mlp = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 3))
        return filled(lib, mlp), (6,)
    layers = (
        nn.Conv2d(2, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 4, 2, stride=2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 3),
    )  # fmt: skip
    return filled(lib, nn.Sequential(*layers)), (2, 8, 8)


@parameterized.expand([("mlp",), ("cnn",)])
def test_gradients_of_samples(kind):
    """One per sample, as from a loop over the samples."""

    def script(lib):
        model, shape = network(lib, kind)
        state = {name: p.detach() for name, p in model.named_parameters()}
        xs, ys = normal(lib, 4, *shape), lib.tensor([0, 2, 1, 1])

        def loss(state, x, y):
            out = lib.func.functional_call(model, state, x[None])
            return lib.nn.functional.cross_entropy(out, y[None])

        per_sample = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))(state, xs, ys)
        one_by_one = [lib.func.grad(loss)(state, x, y) for x, y in zip(xs, ys)]
        for name in state:
            stacked = lib.stack([gradients[name] for gradients in one_by_one])
            assert lib.allclose(per_sample[name], stacked, atol=1e-6)
        return per_sample

    same(script, rtol=1e-4, atol=1e-6)


def test_ensemble():
    def script(lib):
        models = []
        for seed in range(3):
            nn = lib.nn
            model = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2))
            models.append(filled(lib, model, seed))
        parameters, buffers = lib.func.stack_module_state(models)
        x = normal(lib, 6, 4)

        def call(parameters, buffers, x):
            return lib.func.functional_call(models[0], (parameters, buffers), (x,))

        together = lib.func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
        apart = lib.func.vmap(call)(parameters, buffers, x.reshape(3, 2, 4))
        (together**2).sum().backward()
        return together, apart, [p.grad for p in parameters.values()]

    same(script, rtol=1e-4, atol=1e-6)


def test_batch_norm_without_statistics():
    def script(lib):
        norm = lib.func.replace_all_batch_norm_modules_(lib.nn.BatchNorm2d(3))
        return lib.func.vmap(norm)(normal(lib, 2, 4, 3, 5, 5))

    same(script, rtol=1e-4, atol=1e-6)
