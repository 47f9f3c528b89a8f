"""Batch normalisation in training with the ReLU that follows it, and what is added in between.

They are one op each, so that a device may do it in the passes over memory that the normalisation
takes anyway. Gradients are those of the ops in a row.
"""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.apply import apply
from tensorflow_lite_clone.dispatch.op import Op, composite
from tensorflow_lite_clone.ops.batch_norm import BatchNorm, move_statistics
from tensorflow_lite_clone.tensor import Tensor


class BatchNormRelu(Op):
    """y = max(0, batch norm of x); the other outputs are `BatchNorm`'s."""

    nondifferentiable = (1, 2, 3, 4)
    hints = (1, 2, 3, 4)

    def forward(F, x, w, b, running_mean, running_var, *, momentum, eps):
        y, *rest = BatchNorm.forward(
            F, x, w, b, running_mean, running_var, momentum=momentum, eps=eps
        )
        return (_rectified(F, y), *rest)

    def backward(F, g, x, w, b, out1, out2, *, eps, needs):
        gradients = F.batch_norm_relu_backward(g, x, w, b, out1, out2, eps=eps, needs=needs[:3])
        return (*gradients, None, None)


@composite
def batch_norm_relu_backward(F, g, x, w, b, mean, variance, *, eps, needs):
    """The gradients of batch norm for g where its output, made again, is positive."""
    y = BatchNorm.forward(F, x, w, b, None, None, momentum=0.0, eps=eps)[0]
    g = F.threshold_backward(g, y, threshold=0)
    return F.batch_norm_backward(g, x, w, mean, variance, eps=eps, needs=needs)


class BatchNormAddRelu(Op):
    """y = max(0, batch norm of x + residual); the other outputs are `BatchNorm`'s."""

    nondifferentiable = (1, 2, 3, 4)
    hints = (1, 2, 3, 4)

    def forward(F, x, residual, w, b, running_mean, running_var, *, momentum, eps):
        y, *rest = BatchNorm.forward(
            F, x, w, b, running_mean, running_var, momentum=momentum, eps=eps
        )
        return (_rectified(F, y + residual), *rest)

    def backward(F, g, x, w, out0, out1, out2, *, eps, needs):
        gradients = F.batch_norm_add_relu_backward(
            g, x, w, out0, out1, out2, eps=eps, needs=needs[:4]
        )
        return (*gradients, None, None)


@composite
def batch_norm_add_relu_backward(F, g, x, w, y, mean, variance, *, eps, needs):
    """The gradients of x, residual, w and b for g where y is positive."""
    g = F.threshold_backward(g, y, threshold=0)
    own = (needs[0], *needs[2:])
    gx, gw, gb = F.batch_norm_backward(g, x, w, mean, variance, eps=eps, needs=own)
    return gx, g if needs[1] else None, gw, gb


def _rectified(F: Any, x: Any) -> Any:
    return F.maximum(x, F.backend.constant(0, x.dtype))


def batch_norm_relu(
    input: Tensor,
    residual: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float,
    eps: float,
) -> Tensor:
    """``relu(batch_norm(input, ..., training=True) + residual)`` of checked (N, C, ...) tensors.

    `residual`, of input's shape and dtype, may be None. The running statistics are moved.
    """
    running = running_mean, running_var
    if residual is None:
        results = apply(BatchNormRelu, input, weight, bias, *running, momentum=momentum, eps=eps)
    else:
        results = apply(
            BatchNormAddRelu, input, residual, weight, bias, *running, momentum=momentum, eps=eps
        )
    output, _, _, *moved = results
    move_statistics(*running, moved)
    return output
