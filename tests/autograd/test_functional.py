"""`autograd.functional` against PyTorch's."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import raises, same


def vector(lib, *values, grad=False):
    return lib.tensor(values or (0.3, 0.7, 1.2), dtype=lib.float64, requires_grad=grad)


ONE = [
    ("elementwise", lambda lib, x: x.exp() * x),
    ("matrix", lambda lib, x: x.outer(x)),
    ("scalar", lambda lib, x: (x**3).sum()),
    ("constant", lambda lib, x: lib.ones(2, dtype=lib.float64)),
    ("part", lambda lib, x: x[1:] * 2),
    ("identity", lambda lib, x: x),
    ("complex", lambda lib, x: lib.complex(x, x * x)),
]
SCALAR = [
    ("cubes", lambda lib, x: (x**3).sum()),
    ("product", lambda lib, x: x.prod() * x.sin().sum()),
    ("linear", lambda lib, x: (2 * x).sum()),
    ("one element", lambda lib, x: (x * x).sum().reshape(1)),
]


@parameterized.expand(ONE)
def test_jacobian(name, f):
    same(lambda lib: lib.autograd.functional.jacobian(lambda x: f(lib, x), vector(lib)))


def pair(lib):
    return vector(lib), lib.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=lib.float64)


def test_jacobian_of_tuples():
    def script(lib):
        def f(x, y):
            return x.sum() * y, (x[:2] @ y).sum(), x * 2

        return lib.autograd.functional.jacobian(f, pair(lib))

    same(script)


def test_jacobian_of_one_tuples():
    def script(lib):
        jacobian = lib.autograd.functional.jacobian
        return jacobian(lambda x: (x * 2,), vector(lib)), jacobian(lambda x: x * 2, (vector(lib),))

    same(script)


@parameterized.expand([(False,), (True,)])
def test_create_graph(create_graph):
    def script(lib):
        functional = lib.autograd.functional
        x, v = vector(lib, grad=True), vector(lib, 1.0, -2.0, 3.0)
        results = [functional.jacobian(lambda x: x**3, x, create_graph=create_graph)]
        results.append(functional.hessian(lambda x: (x**4).sum(), x, create_graph=create_graph))
        results += functional.vjp(lambda x: x**3, x, v, create_graph=create_graph)
        results += functional.jvp(lambda x: x**3, x, v, create_graph=create_graph)
        results += functional.vhp(lambda x: (x**4).sum(), x, v, create_graph=create_graph)
        results += functional.hvp(lambda x: (x**4).sum(), x, v, create_graph=create_graph)
        seen = [r.detach() for r in results]
        for result in results:
            seen.append(result.requires_grad)
            if result.requires_grad:
                seen.append(lib.autograd.grad(result.sum(), x, retain_graph=True))
        return seen, x.grad

    same(script, rtol=1e-8)


def test_inputs_are_left_alone():
    def script(lib):
        functional = lib.autograd.functional
        x = vector(lib)
        for name in ("jacobian", "vjp", "jvp"):
            arguments = () if name == "jacobian" else (vector(lib),)
            getattr(functional, name)(lambda x: x * x, x, *arguments)
        functional.hessian(lambda x: (x * x).sum(), x)
        return x.requires_grad, x.grad

    same(script)


@parameterized.expand(SCALAR)
def test_hessian(name, f):
    same(lambda lib: lib.autograd.functional.hessian(lambda x: f(lib, x), vector(lib)), rtol=1e-8)


def test_hessian_of_tuples():
    def script(lib):
        def f(x, y):
            return (x.sum() * y * y).sum() + (x**3).sum()

        return lib.autograd.functional.hessian(f, pair(lib))

    same(script)


@parameterized.expand([("vjp",), ("jvp",)])
def test_products(name):
    def script(lib):
        product = getattr(lib.autograd.functional, name)
        v = vector(lib, 1.0, -2.0, 3.0)
        weights = (v, lib.ones(2, 2, dtype=lib.float64))
        return (
            product(lambda x: x**3, vector(lib), v),
            product(lambda x: (x**3).sum(), vector(lib, 2.0), None),
            product(lambda x: x.sum() * 2, vector(lib, 2.0)),
            product(lambda x, y: (x * 2, y * x.sum()), pair(lib), weights),
            product(lambda x: lib.ones(3, dtype=lib.float64), vector(lib), v),
        )

    same(script)


@parameterized.expand([("vhp",), ("hvp",)])
def test_hessian_products(name):
    def script(lib):
        product = getattr(lib.autograd.functional, name)
        v = vector(lib, 1.0, -2.0, 3.0)
        weights = (v, lib.ones(2, 2, dtype=lib.float64))
        return (
            product(lambda x: (x**3).sum(), vector(lib), v),
            product(lambda x: (2 * x).sum(), vector(lib), v),
            product(lambda x: x**3, vector(lib, 2.0)),
            product(lambda x, y: (x.sum() * y * y).sum() * x[0], pair(lib), weights),
        )

    same(script)


STRICT = ("strict mode",)


@parameterized.expand(
    [
        ("constant", lambda lib, x: lib.ones(3, dtype=lib.float64)),
        ("independent", lambda lib, x: lib.ones(3, dtype=lib.float64, requires_grad=True) * 2),
        ("linear", lambda lib, x: x * 2),
        ("good", lambda lib, x: x**3),
    ]
)
def test_strict(name, f):
    def script(lib, function):
        functional = lib.autograd.functional
        arguments = () if function in ("jacobian", "hessian") else (vector(lib),)
        scalar = function in ("hessian", "vhp", "hvp")
        return getattr(functional, function)(
            lambda x: f(lib, x).sum() if scalar else f(lib, x), vector(lib), *arguments, strict=True
        )

    for function in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"):
        same(lambda lib, function=function: script(lib, function), words=STRICT)


def test_strict_with_an_unused_input():
    def script(lib):
        x, y = pair(lib)
        return lib.autograd.functional.jacobian(lambda x, y: x * 2, (x, y), strict=True)

    raises(script, *STRICT)


def test_unused_inputs():
    def script(lib):
        functional = lib.autograd.functional
        f = lambda x, y: (x * 2).sum()  # noqa: E731
        return (
            functional.jacobian(f, pair(lib)),
            functional.hessian(f, pair(lib)),
            functional.vjp(f, pair(lib), lib.tensor(1.0, dtype=lib.float64)),
        )

    same(script)


@parameterized.expand(
    [
        ("inputs", lambda lib, f: f.jacobian(lambda x: x, 3.0)),
        ("inputs in a tuple", lambda lib, f: f.jacobian(lambda x, y: x, (vector(lib), 3.0))),
        ("outputs", lambda lib, f: f.jacobian(lambda x: 3.0, vector(lib))),
        ("outputs in a tuple", lambda lib, f: f.jacobian(lambda x: (x, 3.0), vector(lib))),
        ("hessian of a vector", lambda lib, f: f.hessian(lambda x: x, vector(lib))),
        ("hessian of a tuple", lambda lib, f: f.hessian(lambda x: (x.sum(),) * 2, vector(lib))),
        ("vhp of a vector", lambda lib, f: f.vhp(lambda x: x, vector(lib), vector(lib))),
        ("missing v", lambda lib, f: f.vjp(lambda x: x * 2, vector(lib))),
        ("missing v of jvp", lambda lib, f: f.jvp(lambda x: x.sum(), vector(lib))),
        ("v's shape", lambda lib, f: f.vjp(lambda x: x * 2, vector(lib), vector(lib, 1.0))),
        ("v's number", lambda lib, f: f.vjp(lambda x: x * 2, vector(lib), (vector(lib),) * 2)),
        ("v's type", lambda lib, f: f.vjp(lambda x: x * 2, vector(lib), 3.0)),
        ("list of inputs", lambda lib, f: f.jacobian(lambda x, y: x * y, list(pair(lib)))),
    ]
)
def test_refused(name, script):
    raises(
        lambda lib: script(lib, lib.autograd.functional),
        "must be either a Tensor or a tuple of Tensors",
        "should contain a single element",
        "should return a single Tensor",
        "v can only be None",
        "has invalid size",
        "invalid length",
        "should be a single Tensor",
        "should contain a single Tensor",
    )


def test_vectorized():
    def script(lib):
        functional = lib.autograd.functional
        x, y = pair(lib)
        f = lambda x, y: (x.sum() * y * y).sum() + (x**3).sum()  # noqa: E731
        return (
            functional.jacobian(lambda x: x**3, x, vectorize=True),
            functional.hessian(f, (x, y), vectorize=True),
        )

    same(script)


def test_batched_gradients():
    def script(lib):
        x, y = vector(lib, grad=True), vector(lib, grad=True)
        z = x * x * y
        vectors = lib.eye(3, dtype=lib.float64)
        return lib.autograd.grad(z, [x, y], vectors, is_grads_batched=True)

    same(script)
