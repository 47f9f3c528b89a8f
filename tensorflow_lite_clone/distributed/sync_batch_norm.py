"""Batch normalisation over the batches of all processes of a group."""

from __future__ import annotations

from typing import Any

from tensorflow_lite_clone.autograd.function import Function
from tensorflow_lite_clone.core import late_bound
from tensorflow_lite_clone.core.dtypes import float32
from tensorflow_lite_clone.distributed.collectives import all_gather_into_tensor, all_reduce
from tensorflow_lite_clone.distributed.distributed_c10d import group_of, is_initialized
from tensorflow_lite_clone.ops.create.constructors import empty, zeros
from tensorflow_lite_clone.ops.nn.batch_norm import batch_norm
from tensorflow_lite_clone.ops.reduce.statistics import var_mean
from tensorflow_lite_clone.ops.shape.join import cat
from tensorflow_lite_clone.tensor import Tensor


@late_bound.group_of_several.provide
def group_of_several(process_group: Any) -> Any:
    """The group, by default of all processes; None if there is none, or this is alone in it."""
    group = group_of(process_group) if is_initialized() else None
    return None if group is None or group.size() == 1 else group


def wide(x: Tensor) -> Tensor:
    """`x` in float32 if it is of half precision."""
    return x.to(float32) if x.element_size() == 2 else x


def _statistics(x: Tensor, group: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and biased variance per channel over all processes, and the number of values."""
    channels = x.shape[1]
    count = x.numel() // channels
    own = zeros(2 * channels + 1, dtype=x.dtype, device=x.device)
    if count:
        dims = [0, *range(2, x.ndim)]
        variance, mean = var_mean(x, dims, correction=0)
        own = cat([mean, variance, own[-1:] + count])
    gathered = empty((group.size(), own.numel()), dtype=x.dtype, device=x.device)
    all_gather_into_tensor(gathered, own, group)
    means, variances, counts = gathered.split([channels, channels, 1], 1)
    total = counts.sum()
    shares = counts / total
    mean = (shares * means).sum(0)
    return mean, (shares * (variances + (means - mean) ** 2)).sum(0), total


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
        mean, variance, count = _statistics(wide(x), group)
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            unbiased = variance * (count / (count - 1))
            running_var.lerp_(unbiased.to(running_var.dtype), momentum)
        ctx.save_for_backward(x, w, mean, (variance + eps).rsqrt(), count)
        ctx.group = group
        return batch_norm(x, mean, variance, w, b, False, 0.0, eps)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        x, w, mean, r, count = ctx.saved_tensors
        shape = [1, -1] + [1] * (x.ndim - 2)
        dims = [0, *range(2, x.ndim)]
        g = wide(g)
        normal = (wide(x) - mean.reshape(shape)) * r.reshape(shape)
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


late_bound.sync_batch_norm.provide(SyncBatchNormFunction.apply)
