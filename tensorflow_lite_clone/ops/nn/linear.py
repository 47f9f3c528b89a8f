"""``linear``: a product with a transposed matrix, and a bias."""

from __future__ import annotations

from math import prod

from tensorflow_lite_clone.autograd.apply import apply_ternary
from tensorflow_lite_clone.core.errors import NotStrided
from tensorflow_lite_clone.core.public import public
from tensorflow_lite_clone.dispatch import costs
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops._formulas import conj
from tensorflow_lite_clone.ops.decorators.autocast import active as autocast
from tensorflow_lite_clone.ops.decorators.autocast import calls_cast_operands, cast_operands
from tensorflow_lite_clone.ops.decorators.out import write_out
from tensorflow_lite_clone.ops.linalg._products import as_rows, overridden, product
from tensorflow_lite_clone.ops.linalg.matmul import expect_expandable, matmul, misfit
from tensorflow_lite_clone.tensor import Tensor


class Linear(Op):
    """``x @ w.T + b``; b has one axis at most, or is missing."""

    cost = costs.product(costs.product_flops, 0, 1)
    label = "Addmm"

    def forward(F, x, w, b):
        y = F.matmul(x, F.matrix_transpose(w))
        if b is not None:
            y += b
        return y

    def backward_x(F, g, w):
        return F.linear_backward_input(g, w)

    def backward_w(F, g, x):
        if x.ndim == 1:
            return g[:, None] * conj(F, x)
        return F.matmul(F.matrix_transpose(as_rows(F, g)), conj(F, as_rows(F, x)))

    def backward_b(F, g):
        return g

    def backward_w_and_b(F, g, x):
        return F.linear_backward_weight(g, x)

    def backward_x_and_w_and_b(F, g, x, w):
        return F.linear_backward(g, x, w)


@composite
def linear_backward_input(F, g, w):
    """gx = g w."""
    return F.matmul(g, conj(F, w))


@composite
def linear_backward_weight(F, g, x):
    """gw = g^T x and gb, the sum of g's rows."""
    rows = as_rows(F, g)
    gw = F.matmul(F.matrix_transpose(rows), conj(F, as_rows(F, x)))
    return gw, F.sum(rows, axis=0)


@composite
def linear_backward(F, g, x, w):
    """gx, gw and gb."""
    return F.linear_backward_input(g, w), *F.linear_backward_weight(g, x)


@public("functional", flat=True)
@calls_cast_operands("linear")
def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """``input @ weight.T + bias``: (..., in), (out, in), (out,) give (..., out).

    A one-dimensional weight gives (...). Raises RuntimeError when sizes or dtypes do not fit.
    """
    if out is not None:
        return write_out("linear", out, linear(input, weight, bias), (input, weight, bias))
    if autocast:
        input, weight, bias = cast_operands(linear, input, weight, bias)
    try:
        w, x = weight._storage.physical, input._storage.physical
        if w.ndim == 2 and x.ndim:
            if bias is None:
                return product("linear", Linear, input, weight, bias)
            b = bias._storage.physical
            if b.ndim > 1:
                return _linear_with_matrix(input, weight, bias)
            if x.dtype is w.dtype is b.dtype:
                return apply_ternary(Linear, input, weight, bias)
            return product("linear", Linear, input, weight, bias)
    except ValueError:
        raise _linear_misfit(input, weight, bias) from None
    except NotStrided as reason:
        return reason.answer("linear", input, weight, bias)
    except AttributeError as error:
        return overridden(error, linear, input, weight, bias)
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if not input.ndim:
        raise misfit(input.shape, weight.shape)
    result = matmul(input, weight)
    return result if bias is None else result + bias


def _linear_with_matrix(input: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`linear` with a bias of several axes."""
    result = product("linear", Linear, input, weight, None)
    expect_expandable(bias, result.shape)
    if bias.dtype is not result.dtype:
        product("linear", Linear, input, weight, bias)  # complains
    return result + bias


def _linear_misfit(input: Tensor, weight: Tensor, bias: Tensor | None) -> RuntimeError:
    x, w = input.shape, weight.shape
    if x[-1] == w[1] and bias is not None:
        try:
            expect_expandable(bias, (prod(x[:-1]), w[0]))
        except RuntimeError as error:
            return error
        return RuntimeError(f"linear: bias of size {list(bias.shape)} does not fit")
    return misfit(x, w[::-1])
