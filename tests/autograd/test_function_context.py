"""What a Function saves and marks; Functions inside others and differentiated again."""

from __future__ import annotations

import gc
import weakref

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import attempt, raises, same


def vector(lib, *values, dtype=None):
    return lib.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=True)


def define(lib, forward, backward=None, **members):
    """A Function with these static methods."""
    body = {"forward": staticmethod(forward)}
    if backward is not None:
        body["backward"] = staticmethod(backward)
    body |= {
        name: staticmethod(value) if callable(value) else value for name, value in members.items()
    }
    return type("Mine", (lib.autograd.Function,), body)


def cube(lib):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g

    return define(lib, forward, backward)


# -- saving ----------------------------------------------------------------------------------------


def test_saved_twice_and_none():
    def script(lib):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_backward(None, x, x * 2)
            return x * 1

        def backward(ctx, g):
            nothing, x, double = ctx.saved_tensors
            return g * x * double if nothing is None else None

        x = vector(lib)
        define(lib, forward, backward).apply(x).sum().backward()
        return x.grad

    same(script)


def test_saving_what_is_no_tensor():
    def script(lib):
        def forward(ctx, x):
            ctx.save_for_backward(x, 5)
            return x * 1

        return define(lib, forward).apply(vector(lib))

    raises(script, "save_for_backward can only save variables")


def test_saved_outputs():
    def script(lib):
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

        x = vector(lib)
        Exp = define(lib, forward, backward)
        values = [Exp.apply(x)]
        for _ in range(3):
            values += lib.autograd.grad(values[-1].sum(), x, create_graph=True)
        return [v.detach() for v in values]

    same(script)


def test_saved_inputs_are_the_inputs():
    def script(lib):
        seen = []

        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            seen.append((x.requires_grad, x.is_leaf, x.grad_fn))
            return g

        x = vector(lib)
        Mine = define(lib, forward, backward)
        Mine.apply(x).sum().backward()
        Mine.apply(x * 2).sum().backward()
        return seen

    same(script)


def test_saved_values_are_freed():
    def script(lib):
        x = vector(lib)
        y = cube(lib).apply(x)
        y.sum().backward()
        return attempt(y.sum().backward), attempt(lambda: y.grad_fn.saved_tensors)

    same(script)


def test_backward_without_saved_values_runs_twice():
    def script(lib):
        x = vector(lib)
        y = define(lib, lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(x)
        z = y.sum()
        z.backward()
        z.backward()
        return x.grad

    same(script)


def test_saved_and_modified():
    def script(lib):
        x = vector(lib)
        h = x * 1
        y = cube(lib).apply(h)
        h.add_(1)
        y.sum().backward()

    raises(script, "has been modified by an inplace operation")


def test_saved_output_modified():
    def script(lib):
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        y = define(lib, forward, backward).apply(vector(lib))
        y.mul_(2)
        y.sum().backward()

    raises(script, "has been modified by an inplace operation")


def test_attributes_of_the_context():
    def script(lib):
        def forward(ctx, x, n):
            ctx.n = n
            ctx.shape = x.shape
            return x.sum() * n

        def backward(ctx, g):
            return (g * ctx.n).expand(ctx.shape), None

        x = vector(lib)
        y = define(lib, forward, backward).apply(x, 4)
        y.backward()
        return x.grad, y.grad_fn.n, y.grad_fn.needs_input_grad

    same(script)


def test_functions_make_no_cycles():
    gc.collect()
    gc.disable()
    try:
        x = vector(tlc)
        y = cube(tlc).apply(x)
        alive = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [reference() for reference in alive] == [None, None]
    finally:
        gc.enable()


# -- marks -----------------------------------------------------------------------------------------


def test_non_differentiable():
    def script(lib):
        seen = []

        def forward(ctx, x):
            values, places = x.sort()
            count = x.sum()
            ctx.mark_non_differentiable(places, count)
            ctx.save_for_backward(places)
            return values, places, count

        def backward(ctx, g, h, k):
            seen.append((h, k))
            return lib.zeros_like(g).index_add(0, ctx.saved_tensors[0], g)

        x = vector(lib, 3.0, 1.0, 2.0)
        values, places, count = define(lib, forward, backward).apply(x)
        (values * lib.tensor([1.0, 2.0, 3.0]) * count).sum().backward()
        return x.grad, places, count, seen

    same(script)


def test_materialized_gradients():
    def script(lib, materialize):
        seen = []

        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x.sum(), x.double()

        def backward(ctx, g, h, k):
            seen.append((g, h, k))
            return g

        x = vector(lib)
        define(lib, forward, backward).apply(x)[0].sum().backward()
        return seen, x.grad

    same(lambda lib: script(lib, True))
    same(lambda lib: script(lib, False))


def test_mark_dirty():
    def script(lib):
        def forward(ctx, x, y):
            x.mul_(y)
            ctx.mark_dirty(x)
            ctx.save_for_backward(y)
            return x

        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

        Mine = define(lib, forward, backward)
        leaf = vector(lib)
        x = leaf * 1
        version = x._version
        out = Mine.apply(x, lib.full((3,), 5.0))
        (out * 2).sum().backward()
        return out is x, x, leaf.grad, x._version - version, x.grad_fn.name()

    same(script)


def test_mark_dirty_on_a_leaf():
    def script(lib):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        return define(lib, forward, lambda ctx, g: g * 2).apply(vector(lib))

    raises(script, "a leaf Variable that requires grad")


def test_mark_dirty_without_a_graph():
    def script(lib):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        x = lib.ones(3)
        out = define(lib, forward, lambda ctx, g: g * 2).apply(x)
        return out is x, x

    same(script)


def test_mark_dirty_and_not_returned():
    def script(lib):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x.clone()

        return define(lib, forward, lambda ctx, g: g * 2).apply(vector(lib) * 1)

    same(script, words=("must be returned", "marked as dirty"))


def test_mark_dirty_a_view():
    def script(lib):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        leaf = vector(lib)
        x = leaf * 1
        out = define(lib, forward, lambda ctx, g: g * 3).apply(x[:2])
        (x * 2).sum().backward()
        return out, x, leaf.grad

    same(script)


# -- higher orders ---------------------------------------------------------------------------------


def test_double_backward():
    def script(lib):
        x = vector(lib)
        value = cube(lib).apply(x)
        seen = []
        for _ in range(3):
            (g,) = lib.autograd.grad(value.sum(), x, create_graph=True)
            seen.append(g.detach())
            value = g
        return seen

    same(script)


def test_double_backward_by_another_function():
    def script(lib):
        Inner = define(lib, lambda ctx, g, x: g * x.cos(), lambda ctx, h: (h * 100, h * 1000))

        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.sin()

        def backward(ctx, g):
            return Inner.apply(g, *ctx.saved_tensors)

        x = vector(lib)
        (g,) = lib.autograd.grad(
            define(lib, forward, backward).apply(x).sum(), x, create_graph=True
        )
        return g, lib.autograd.grad(g.sum(), x)

    same(script)


def test_once_differentiable():
    def script(lib):
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

        once = lib.autograd.function.once_differentiable(backward)
        Mine = define(lib, forward, once)
        x = vector(lib)
        Mine.apply(x).sum().backward()
        (g,) = lib.autograd.grad(Mine.apply(x).sum(), x, create_graph=True)
        first = g.detach(), g.requires_grad
        (h,) = lib.autograd.grad((Mine.apply(x) * x).sum(), x, create_graph=True)
        return x.grad, first, attempt(lambda: lib.autograd.grad(h.sum(), x))

    same(script)


def test_gradcheck_of_functions():
    def script(lib):
        x = vector(lib, 0.3, -0.7, dtype=lib.float64)
        Mine = cube(lib)
        return lib.autograd.gradcheck(Mine.apply, x), lib.autograd.gradgradcheck(Mine.apply, x)

    same(script)


def test_context_class_and_legacy_names():
    def script(lib):
        function = lib.autograd.function
        names = ("Function", "FunctionCtx", "once_differentiable", "InplaceFunction")
        return [hasattr(function, name) for name in names[:3]]

    same(script)


def test_subclasses_inherit():
    def script(lib):
        class Child(cube(lib)):
            @staticmethod
            def backward(ctx, g):
                return g * 7

        x = vector(lib)
        y = Child.apply(x)
        y.sum().backward()
        return x.grad, y.grad_fn.name()

    same(script)


def test_call_inside_forward():
    def script(lib):
        Inner = cube(lib)

        def forward(ctx, x):
            ctx.save_for_backward(x)
            return Inner.apply(x) + 1

        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with lib.enable_grad():
                y = x.detach().requires_grad_()
                (inner,) = lib.autograd.grad(Inner.apply(y).sum(), y)
            return g * inner

        x = vector(lib)
        define(lib, forward, backward).apply(x).sum().backward()
        return x.grad

    same(script)


def test_complex_and_casts():
    def script(lib):
        def forward(ctx, x):
            return x.to(lib.complex64) * 1j

        def backward(ctx, g):
            return (g * -1j).real

        x = vector(lib)
        define(lib, forward, backward).apply(x).abs().sum().backward()
        return x.grad

    same(script)
