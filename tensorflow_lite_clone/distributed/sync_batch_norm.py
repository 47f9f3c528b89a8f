"""Batch normalisation over the batches of all processes of a group."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.distributed.collectives import all_gather_into_tensor, all_reduce
from tensorflow_lite_clone.ops.batch_norm import batch_norm
from tensorflow_lite_clone.ops.create import empty
from tensorflow_lite_clone.ops.join import cat
from tensorflow_lite_clone.tensor import Tensor


class SyncBatchNormFunction(Function):
    """y = (x - mean) r w + b with r = 1 / sqrt(var + eps), statistics over all processes.

    x has shape (N, C, ...), where N may be another number in each process, and nothing. Processes
    exchange their means, variances and counts, which are then put together: with n_i of N values,
    mean = sum n_i mean_i / N and var = sum n_i (var_i + (mean_i - mean)^2) / N (Chan et al.,
    "Updating formulae and a pairwise algorithm for computing sample variances", 1979). In the
    gradient they exchange sums of g and of g (x - mean) r:
    gx = w r (g - mean(g) - (x - mean) r mean(g (x - mean) r)), the means over all processes. The
    gradients of w and b are those of this process's batch. Nothing is read on the host.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        w: Tensor | None,
        b: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        momentum: float,
        eps: float,
        group: Any,
    ) -> Tensor:
        mean, variance, count = _statistics(_wide(x), group)
        for running, new in (
            (running_mean, mean),
            (running_var, variance * (count / (count - 1).clamp(min=1))),
        ):
            if running is not None:
                running.lerp_(new.to(running.dtype), momentum)
        ctx.save_for_backward(x, w, mean, (variance + eps).rsqrt(), count)
        ctx.group = group
        statistics = mean.to(_parameter_dtype(x, w)), variance.to(_parameter_dtype(x, w))
        return batch_norm(x, *statistics, w, b, False, 0.0, eps)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, w, mean, r, count = ctx.saved_tensors
        shape = [1, -1] + [1] * (x.ndim - 2)
        dims = [0, *range(2, x.ndim)]
        g = _wide(g)
        normal = (_wide(x) - mean.reshape(shape)) * r.reshape(shape)
        gb, gw = g.sum(dims), (g * normal).sum(dims)
        sums = cat([gb, gw])
        all_reduce(sums, group=ctx.group)
        mean_g, mean_gn = (sums / count).chunk(2)
        gx = None
        if ctx.needs_input_grad[0]:
            scale = r if w is None else r * w
            gx = g - mean_g.reshape(shape) - normal * mean_gn.reshape(shape)
            gx = (gx * scale.reshape(shape)).to(x.dtype)
        return (
            gx,
            gw.to(w.dtype) if ctx.needs_input_grad[1] else None,
            gb.to(w.dtype) if ctx.needs_input_grad[2] else None,
            *[None] * 5,
        )
