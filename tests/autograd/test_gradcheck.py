"""`gradcheck` and `gradgradcheck` accept right gradients and refuse wrong ones."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.autograd import gradcheck, gradgradcheck
from tensorflow_lite_clone.autograd.gradcheck import GradcheckError


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
