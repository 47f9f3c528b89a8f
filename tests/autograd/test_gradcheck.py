"""`gradcheck` and `gradgradcheck` accept right gradients and refuse wrong ones."""

from __future__ import annotations

import pytest
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.autograd import gradcheck, gradgradcheck
from tensorflow_lite_clone.autograd.gradcheck import GradcheckError
from tests.autograd.against_torch import same


class Cube(tlc.autograd.Function):
    """x^3 with a gradient that is right in its value but not as a function of x."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x.detach() ** 2


def point() -> tlc.Tensor:
    return tlc.tensor([0.5, -1.5], dtype=tlc.float64, requires_grad=True)


def test_right_gradients() -> None:
    x, y = point(), point()
    assert gradcheck(lambda x, y: (x * y.sin(), x.exp()), (x, y))
    assert gradgradcheck(lambda x, y: (x * y.sin(), x.exp()), (x, y))


def test_a_gradient_that_hides_its_own_is_noticed() -> None:
    assert gradcheck(Cube.apply, point())
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(Cube.apply, point())
    assert not gradgradcheck(Cube.apply, point(), raise_exception=False)


def test_a_wrong_gradient_is_noticed() -> None:
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(lambda x: x * x.detach(), point())


# -- against PyTorch's -----------------------------------------------------------------------------


def values(lib, *numbers, dtype="float64", grad=True):
    return lib.tensor(numbers or (0.5, -1.5), dtype=getattr(lib, dtype), requires_grad=grad)


def wrong(lib, factor=3.0):
    """x^2 with a gradient that is wrong unless `factor` is 2."""

    class Wrong(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * factor * ctx.saved_tensors[0]

    return Wrong.apply


def check(lib, *args, **kwargs):
    """What gradcheck returns, or the type of its error and its first words."""
    try:
        return lib.autograd.gradcheck(*args, **kwargs)
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__[:2]], str(error).split(" for ")[0]


@parameterized.expand(
    [
        ("one", lambda lib: (lambda x: x.sin(), values(lib))),
        ("list", lambda lib: (lambda x: x.sin(), [values(lib)])),
        ("two", lambda lib: (lambda x, y: x * y.exp(), (values(lib), values(lib)))),
        ("fixed", lambda lib: (lambda x, y: x * y, (values(lib), values(lib, grad=False)))),
        ("number", lambda lib: (lambda x, n: x * n, (values(lib), 3))),
        ("outputs", lambda lib: (lambda x: (x * 2, x.sum(), x.detach()), values(lib))),
        (
            "zero-dim",
            lambda lib: (lambda x: x**3, lib.tensor(2.0, dtype=lib.float64).requires_grad_()),
        ),
        ("integers", lambda lib: (lambda x: (x * 2, x.argmax()), values(lib))),
        ("constant", lambda lib: (lambda x: values(lib, grad=False), values(lib))),
        ("wrong", lambda lib: (wrong(lib), values(lib))),
        ("nearly right", lambda lib: (wrong(lib, 2.00001), values(lib))),
        ("wrong in one place", lambda lib: (lambda x: (x * 2, wrong(lib)(x)), values(lib))),
        ("complex", lambda lib: (lambda z: z * z, values(lib, 1 + 2j, -1j, dtype="complex128"))),
        (
            "modulus",
            lambda lib: (lambda z: z.abs(), values(lib, 1 + 2j, 3 - 1j, dtype="complex128")),
        ),
        ("to complex", lambda lib: (lambda x: x * (1 + 2j), values(lib))),
        ("conjugate", lambda lib: (lambda z: z.conj(), values(lib, 1 + 2j, dtype="complex128"))),
        ("wrong complex", lambda lib: (wrong(lib), values(lib, 1 + 2j, -1j, dtype="complex128"))),
        (
            "matrices",
            lambda lib: (lambda a: a @ a.t(), lib.eye(2, dtype=lib.float64).requires_grad_()),
        ),
        ("in place", lambda lib: (lambda x: (x * 1).mul_(x).exp_(), values(lib))),
        ("nothing required", lambda lib: (lambda x: x, values(lib, grad=False))),
        (
            "transposed",
            lambda lib: (lambda a: a.sin(), lib.rand(2, 3, dtype=lib.float64).t().requires_grad_()),
        ),
        (
            "empty",
            lambda lib: (lambda a: a.sin(), lib.rand(0, 3, dtype=lib.float64).requires_grad_()),
        ),
    ]
)
def test_gradcheck(name, arguments):
    def script(lib):
        function, inputs = arguments(lib)
        quiet = check(lib, function, inputs, raise_exception=False)
        return check(lib, function, inputs), quiet

    same(script, warned=False)


def test_single_precision_warns():
    def script(lib):
        return check(lib, lambda x: x * 2, values(lib, dtype="float32"), atol=1e-1, eps=1e-2)

    same(script, words=("is not a double precision floating point or complex",))


def test_fast_mode():
    def script(lib):
        return (
            check(lib, lambda x: x * x.sin(), values(lib), fast_mode=True),
            check(lib, wrong(lib), values(lib), fast_mode=True, raise_exception=False),
        )

    same(script)


def test_gradcheck_of_random_backwards():
    def script(lib):
        class Shaky(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 2 + lib.rand(g.shape, dtype=g.dtype) * 1e-6

        tolerant = check(lib, Shaky.apply, values(lib), nondet_tol=1e-5)
        return check(lib, Shaky.apply, values(lib))[0], tolerant

    same(script, words=("Backward is not reentrant", "backward not multiplied by grad_output"))


def test_gradgradcheck():
    def script(lib):
        second = lib.autograd.gradgradcheck
        return (
            second(lambda x, y: (x * y).sin(), (values(lib), values(lib))),
            second(lambda x: x * 2, values(lib)),
            second(lambda x: x.exp(), values(lib), values(lib, 2.0, 3.0)),
            second(lambda z: z * z, values(lib, 1 + 2j, dtype="complex128")),
            second(wrong(lib, 2.0), values(lib)),
        )

    same(script)
