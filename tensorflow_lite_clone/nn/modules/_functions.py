"""Functions with a gradient of their own."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.nn import functional as F
from tensorflow_lite_clone.tensor import Tensor


class CrossMapLRN2d(Function):
    """PyTorch's old local response normalisation of (N, C, H, W), with its sums as they are.

    ``y = x / s^beta`` for ``s = k + alpha / size * sum of squares``, over a window around the
    channel. PyTorch updates the sum from channel to channel, and never takes the first channel
    out of it; and the sum in its gradient is over a window that lies before the channel. Scripts
    that use this layer get the numbers they are used to; `functional.local_response_norm` is the
    exact formula.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> Tensor:
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        reach = (size - 1) // 2
        squares = input * input
        sums = _window_sums(squares, -reach, 2 * reach + 1)
        sums[:, reach + 1 :] += squares[:, :1]
        scale = sums * (alpha / size) + k
        output = input * scale**-beta
        ctx.save_for_backward(input, output, scale)
        ctx.size, ctx.alpha, ctx.beta = size, alpha, beta
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> Any:
        x, y, scale = ctx.saved_tensors
        ratios = _window_sums(
            grad_output * y / scale, -int(ctx.size - (ctx.size - 1) / 2), ctx.size
        )
        factor = 2 * ctx.alpha * ctx.beta / ctx.size
        return grad_output * scale**-ctx.beta - factor * ratios * x, None, None, None, None


def _window_sums(x: Tensor, start: int, length: int) -> Tensor:
    """For every channel c the sum over the channels from c + start on, `length` of them."""
    channels = x.shape[1]
    padded = F.pad(x, (0, 0, 0, 0, -start, max(0, length - 1 + start)))
    total = padded[:, :channels]
    for offset in range(1, length):
        total = total + padded[:, offset : offset + channels]
    return total.clone() if length == 1 else total
