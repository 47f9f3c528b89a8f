"""`autograd.Function` in all its forms."""

from __future__ import annotations

from parameterized import parameterized

from tests.autograd.against_torch import raises, same


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


# -- forms of forward ------------------------------------------------------------------------------


def test_function_apply_and_backward():
    def script(lib):
        x = vector(lib)
        y = cube(lib).apply(x)
        y.sum().backward()
        return y, y.grad_fn.name(), x.grad, y.is_leaf

    same(script)


def test_setup_context():
    def script(lib):
        seen = []

        def forward(x, factor, shift=1):
            return x * factor, x + factor + shift - 1

        def setup_context(ctx, inputs, output):
            seen.append((inputs, output))
            x, ctx.factor, _ = inputs
            ctx.save_for_backward(x, output[0])

        def backward(ctx, g, h):
            x, y = ctx.saved_tensors
            return g * ctx.factor + h * x * y, None, None

        Mine = define(lib, forward, backward, setup_context=setup_context)
        x = vector(lib)
        y, z = Mine.apply(x, 3)
        (y * z).sum().backward()
        return y, z, x.grad, len(seen)

    same(script)


def test_arguments_that_are_no_tensors():
    def script(lib):
        seen = []

        def forward(ctx, a, x, b, y, c):
            seen.append((a, b, c, ctx.needs_input_grad))
            ctx.save_for_backward(x, y)
            return x * y

        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return None, g * y, None, g * x if ctx.needs_input_grad[3] else None, None

        Mine = define(lib, forward, backward)
        x, y = vector(lib), vector(lib)
        Mine.apply("a", x, [1, 2], y, None).sum().backward()
        Mine.apply(1.5, x, {}, y.detach(), True).sum().backward()
        return seen, x.grad, y.grad

    same(script)


def test_keywords_and_defaults():
    def script(lib):
        def forward(ctx, x, y=None, n=2):
            return x * n

        def backward(ctx, *gs):
            return gs[0] * 5, None, None

        x = vector(lib)
        Mine = define(lib, forward, backward)
        Mine.apply(x, n=3, y=x).sum().backward()
        return x.grad

    same(script)


@parameterized.expand(
    [
        ("number", lambda x: (x * 2, 5)),
        ("none", lambda x: (x * 2, None)),
        ("string", lambda x: (x * 2, "a")),
        ("integers", lambda x: (x * 2, x.long())),
        ("list", lambda x: [x * 2, x]),
        ("one tuple", lambda x: (x * 2,)),
        ("only a number", lambda x: 5),
        ("nothing", lambda x: None),
        ("same twice", lambda x: (lambda y: (y, y))(x * 2)),
        ("view", lambda x: x[:2]),
        ("input", lambda x: x),
        ("input and more", lambda x: (x, x * 2)),
    ]
)
def test_outputs(name, make):
    def script(lib):
        def forward(ctx, x):
            return make(x)

        def backward(ctx, *gs):
            return sum(
                [lib.ones(3) * g.sum() for g in gs if g is not None and g.is_floating_point()]
            )

        x = vector(lib)
        out = define(lib, forward, backward).apply(x)
        values = out if isinstance(out, tuple) else (out,)
        tensors = [v for v in values if isinstance(v, lib.Tensor) and v.requires_grad]
        if tensors:
            lib.autograd.backward([t.sum() for t in tensors])
        return type(out).__name__, out, x.grad, [t is x for t in tensors]

    same(script)


def test_nothing_requires_a_gradient():
    def script(lib):
        y = cube(lib).apply(lib.ones(3))
        with lib.no_grad():
            z = cube(lib).apply(vector(lib))
        return y, y.grad_fn, z, z.is_leaf

    same(script)


def test_the_forward_is_not_recorded():
    def script(lib):
        seen = []

        def forward(ctx, x):
            seen.append((lib.is_grad_enabled(), x.requires_grad, (x * 2).requires_grad, x.grad_fn))
            return x * 2

        def backward(ctx, g):
            seen.append((lib.is_grad_enabled(), g.requires_grad))
            return g * 2

        Mine = define(lib, forward, backward)
        x = vector(lib)
        Mine.apply(x).sum().backward()
        lib.autograd.grad(Mine.apply(x).sum(), x, create_graph=True)
        return seen

    same(script)


def test_forward_keeps_the_caller_s_mode():
    def script(lib):
        def forward(ctx, x):
            with lib.enable_grad():
                y = x.detach().requires_grad_()
                ctx.inner = (y * y).sum()
                ctx.leaf = y
            return ctx.inner.detach()

        def backward(ctx, g):
            return g * lib.autograd.grad(ctx.inner, ctx.leaf)[0]

        x = vector(lib)
        define(lib, forward, backward).apply(x).backward()
        return x.grad

    same(script)


# -- gradients -------------------------------------------------------------------------------------


@parameterized.expand(
    [
        ("too few", lambda lib, g: g),
        ("too many", lambda lib, g: (g, g, g)),
        ("too many, None", lambda lib, g: (g, g, None, None)),
        ("none", lambda lib, g: (None, None)),
        ("only none", lambda lib, g: None),
        ("number", lambda lib, g: (g, 1.0)),
        ("wrong shape", lambda lib, g: (g, lib.ones(2))),
        ("reducible", lambda lib, g: (g, lib.ones(4, 3))),
        ("expandable", lambda lib, g: (g, lib.ones(1))),
        ("zero-dim", lambda lib, g: (g, lib.tensor(2.0))),
        ("dtype", lambda lib, g: (g, g.double())),
        ("list", lambda lib, g: [g, g]),
        ("complex", lambda lib, g: (g, g * 1j)),
    ]
)
def test_function_backward_results_are_checked(name, make):
    def script(lib):
        def forward(ctx, x, y):
            return x + y

        def backward(ctx, g):
            return make(lib, g)

        x, y = vector(lib), vector(lib)
        define(lib, forward, backward).apply(x, y).sum().backward()
        return x.grad, y.grad

    same(
        script,
        words=(
            "incorrect number of gradients (expected 2, got",
            "expected Variable or None",
            "invalid gradient at index 1 - got [2]",
            "expected shape compatible with [3]",
            "xpected",
        ),
    )


def test_gradient_for_no_tensor():
    def script(lib):
        def forward(ctx, x, n):
            return x * n

        def backward(ctx, g):
            return g, g

        define(lib, forward, backward).apply(vector(lib), 2).sum().backward()

    raises(script)


def test_gradient_for_an_input_without():
    def script(lib):
        def forward(ctx, x, y):
            return x * y

        def backward(ctx, g):
            return g, g

        x, y = vector(lib), lib.ones(3)
        define(lib, forward, backward).apply(x, y).sum().backward()
        return x.grad, y.grad

    same(script)


def test_missing_methods():
    def no_backward(lib):
        y = define(lib, lambda ctx, x: x * 2).apply(vector(lib))
        y.sum().backward()

    def no_forward(lib):
        return type("Mine", (lib.autograd.Function,), {}).apply(vector(lib))

    raises(no_backward, "must implement either the backward or vjp method")
    raises(no_forward, "You must implement the forward function")


def test_instances():
    def script(lib):
        Mine = cube(lib)
        return isinstance(Mine(), Mine)

    same(script)


def test_backward_raises():
    def script(lib):
        def backward(ctx, g):
            raise KeyError("mine")

        define(lib, lambda ctx, x: x * 2, backward).apply(vector(lib)).sum().backward()

    raises(script)


def test_alias_of_the_gradient():
    def script(lib):
        def backward(ctx, g):
            return g, g

        x, y, v = vector(lib), vector(lib), lib.ones(3)
        define(lib, lambda ctx, x, y: x + y, backward).apply(x, y).backward(v)
        x.grad += 1
        return x.grad, y.grad, v

    same(script)


def test_vjp_is_another_name():
    def script(lib):
        def forward(ctx, x):
            return x * 2

        x = vector(lib)
        define(lib, forward, None, vjp=lambda ctx, g: g * 5).apply(x).sum().backward()
        return x.grad

    same(script)


def test_an_input_returned_unchanged_refuses_recorded_writes():
    """The custom backward would be lost, and the gradient with it be wrong."""

    def identity(lib):
        return define(lib, lambda ctx, x: x, lambda ctx, g: g * 3)

    def written(lib):
        out = identity(lib).apply(vector(lib) * 1)
        out.mul_(2)

    def written_under_a_module_hook(lib):
        module = lib.nn.ReLU(inplace=True)
        module.register_full_backward_hook(lambda module, gx, g: None)
        module(vector(lib) * 1)

    def base_written(lib):
        base = vector(lib) * 1
        out = identity(lib).apply(base)
        base.mul_(2)
        return out + 1

    raises(written)
    raises(written_under_a_module_hook, "is being modified inplace")  # the node has another name
    raises(base_written)

    def read(lib):
        x = vector(lib)
        out = identity(lib).apply(x * 1)
        (out * out).sum().backward()
        return x.grad

    same(read)
