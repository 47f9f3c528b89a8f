"""autograd.Function under transforms: setup_context, vmap, generate_vmap_rule, jvp."""

from __future__ import annotations

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import Failure, raises, same


def matrix(lib, grad=False):
    rows = [[0.3, 0.7, 1.2], [-0.5, 0.2, 2.0]]
    return lib.tensor(rows, dtype=lib.float64, requires_grad=grad)


def functions(lib):
    """Functions by name; `told` collects what their own rules are given."""
    told = []

    class Plain(lib.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    class Old(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Generated(Plain):
        generate_vmap_rule = True

    class Ruled(Plain):
        @staticmethod
        def vmap(info, in_dims, x):
            told.append((info.batch_size, info.randomness, x.movedim(in_dims[0], 0).shape))
            return Plain.apply(x), in_dims[0]

    class Both(Ruled):
        generate_vmap_rule = True

    class Last(Plain):
        """Its rule puts the samples last, and leaves one output without."""

        @staticmethod
        def forward(x, y):
            return x * y, y * 2

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y, g * x + 2 * h

        @staticmethod
        def vmap(info, in_dims, x, y):
            told.append((x.movedim(in_dims[0], 0).shape, in_dims[1], y.shape))
            return (x.movedim(in_dims[0], -1) * y[..., None], y * 2), (-1, None)

    class Single(Plain):
        @staticmethod
        def vmap(info, in_dims, x):
            return Plain.apply(x)

    class Uneven(Plain):
        @staticmethod
        def vmap(info, in_dims, x):
            return Plain.apply(x), (0, 0)

    class Pushed(Generated):
        """Its jvp has a factor of three, so that one sees who is asked."""

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs, output)

        @staticmethod
        def jvp(ctx, t):
            x, output = ctx.saved_tensors
            return 3 * x * t + 0 * output

    class Pair(Generated):
        @staticmethod
        def forward(x, factor, y):
            return x * y * factor, x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.factor, y = inputs
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)

        @staticmethod
        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * y * ctx.factor + h, None, g * x * ctx.factor + h

        @staticmethod
        def jvp(ctx, tx, none, ty):
            assert none is None
            x, y = ctx.saved_tensors
            return (tx * y + ty * x) * ctx.factor, tx + ty

    class Forward(Pair):
        """There is no backward."""

        backward = lib.autograd.Function.backward

    kinds = (Plain, Old, Generated, Ruled, Both, Last, Single, Uneven, Pushed, Pair, Forward)
    return {kind.__name__: kind.apply for kind in kinds}, told


def of(name, *more):
    """A case for every named function."""
    return [(f"{name} {kind}", kind, *more) for kind in ("Generated", "Ruled")]


CALLS = [
    *of("vmap", lambda lib, f, x: lib.func.vmap(f)(x)),
    *of("columns", lambda lib, f, x: lib.func.vmap(f, in_dims=1, out_dims=1)(x)),
    ("nested", "Generated", lambda lib, f, x: lib.func.vmap(lib.func.vmap(f))(x)),
    *of("not mapped", lambda lib, f, x: lib.func.vmap(lambda a: f(x) * a[0])(x)),
    *of("grad of vmap", lambda lib, f, x: lib.func.grad(lambda x: lib.func.vmap(f)(x).sum())(x)),
    *of("vmap of grad", lambda lib, f, x: lib.func.vmap(lib.func.grad(lambda a: f(a).sum()))(x)),
    *of("grad of grad", lambda lib, f, x: lib.func.grad(
        lambda x: lib.func.grad(lambda y: (f(y) ** 2).sum())(x).sum())(x)),
    *of("jacrev", lambda lib, f, x: lib.func.jacrev(f)(x[0])),
    *of("vjp", lambda lib, f, x: lib.func.vjp(f, x)[1](x)),
    *of("vmap of jacrev", lambda lib, f, x: lib.func.vmap(lib.func.jacrev(f))(x)),
    ("grad", "Plain", lambda lib, f, x: lib.func.grad(lambda x: f(x).sum())(x)),
    ("last", "Last", lambda lib, f, x: lib.func.vmap(f, (0, None), (0, None))(x, x[0])),
    ("last of columns", "Last", lambda lib, f, x: lib.func.vmap(
        f, (1, None), (0, None))(x, x[:, 0])),
    ("jvp", "Pushed", lambda lib, f, x: lib.func.jvp(f, (x,), (x + 1,))),
    ("jacfwd", "Pushed", lambda lib, f, x: lib.func.jacfwd(f)(x[0])),
    ("vmap of jvp", "Pushed", lambda lib, f, x: lib.func.vmap(
        lambda a: lib.func.jvp(f, (a,), (a + 1,))[1])(x)),
    ("jvp of vmap", "Pushed", lambda lib, f, x: lib.func.jvp(lib.func.vmap(f), (x,), (x + 1,))),
    ("jvp of more", "Pushed", lambda lib, f, x: lib.func.jvp(
        lambda x: f(x.sin()).exp(), (x,), (x + 1,))),
    ("grad of jvp", "Pushed", lambda lib, f, x: lib.func.grad(
        lambda x: lib.func.jvp(f, (x,), (x,))[1].sum())(x)),
    ("jvp of a pair", "Pair", lambda lib, f, x: lib.func.jvp(
        lambda x, y: f(x, 2.5, y), (x, x + 1), (x, x * x))),
    ("jvp by one of a pair", "Pair", lambda lib, f, x: lib.func.jvp(
        lambda x: f(x, 2.5, matrix(lib)), (x,), (x * x,))),
    ("jvp without backward", "Forward", lambda lib, f, x: lib.func.jvp(
        lambda x: f(x, 2.5, x.sin()), (x,), (x * x,))),
    ("vmap of a pair", "Pair", lambda lib, f, x: lib.func.vmap(lambda a: f(a, 2.0, x[0]))(x)),
    ("jacobian of a pair", "Pair", lambda lib, f, x: lib.func.jacrev(
        lambda x: f(x, 2.0, x.exp()))(x[0])),
]  # fmt: skip


@parameterized.expand(CALLS)
def test_transform(name, kind, f):
    def script(lib):
        known, told = functions(lib)
        return f(lib, known[kind], matrix(lib)), told

    # PyTorch's jvp compiles, and warns of it.
    assert not isinstance(same(script, warned=False), Failure)


def test_gradient_by_a_leaf():
    def script(lib):
        x = matrix(lib, True)
        y = lib.func.vmap(functions(lib)[0]["Ruled"])(x)
        return lib.autograd.grad(y.sum(), x)

    assert not isinstance(same(script), Failure)


ERRORS = [
    ("no context", "Old", lambda lib, f, x: lib.func.vmap(f)(x), "override the setup_context"),
    ("no context in grad", "Old", lambda lib, f, x: lib.func.grad(lambda x: f(x).sum())(x),
     "override the setup_context"),
    ("no rule", "Plain", lambda lib, f, x: lib.func.vmap(f)(x), "does not have vmap support"),
    ("no rule around grad", "Plain", lambda lib, f, x: lib.func.vmap(
        lib.func.grad(lambda a: f(a).sum()))(x), "does not have vmap support"),
    ("no rule for a constant", "Plain", lambda lib, f, x: lib.func.vmap(lambda a: f(x))(x),
     "does not have vmap support"),
    ("both rules", "Both", lambda lib, f, x: lib.func.vmap(f)(x), "to avoid ambiguity"),
    ("one return", "Single", lambda lib, f, x: lib.func.vmap(f)(x), "to have two returns"),
    ("out_dims", "Uneven", lambda lib, f, x: lib.func.vmap(f)(x), "an incompatible (output"),
]  # fmt: skip


@parameterized.expand(ERRORS)
def test_error(name, kind, f, word):
    raises(lambda lib: f(lib, functions(lib)[0][kind], matrix(lib)), word)


def test_a_derivative_without_jvp_follows_from_backward():
    """PyTorch refuses it."""
    x = matrix(tlc)
    plain = functions(tlc)[0]["Generated"]
    _, tangent = tlc.func.jvp(plain, (x,), (x + 1,))
    assert tlc.allclose(tangent, 2 * x * (x + 1))
    assert tlc.allclose(
        tlc.func.hessian(lambda x: plain(x).sum())(x[0]), 2 * tlc.eye(3, dtype=tlc.float64)
    )
