"""Traffic between devices under autograd, as ``torch.nn.parallel._functions``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.autograd import Function
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.parallel import comm
from tensorflow_lite_clone.nn.parallel.scatter_gather import device_of
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]

_Device = int | str | Device


def _refuse_cpu(name: str, tensors: Sequence[Tensor]) -> None:
    if any([x.device.type == "cpu" for x in tensors]):
        raise AssertionError(f"{name} function not implemented for CPU tensors")


class Broadcast(Function):
    """Tensors on each of the devices, one device's after another's; gradients are summed."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Sequence[_Device], *inputs: Tensor) -> tuple[Tensor, ...]:
        _refuse_cpu("Broadcast", inputs)
        ctx.num_inputs = len(inputs)
        if not inputs:
            return ()
        ctx.input_device = inputs[0].device
        copies = comm.broadcast_coalesced(inputs, target_gpus)
        still = [not needed for needed in ctx.needs_input_grad[1:]]
        ctx.mark_non_differentiable(
            *[x for row in copies for x, constant in zip(row, still) if constant]
        )
        return tuple([x.view_as(x) for row in copies for x in row])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Any, ...]:
        return (None, *ReduceAddCoalesced.apply(ctx.input_device, ctx.num_inputs, *grad_outputs))


class ReduceAddCoalesced(Function):
    """The sums over devices of `num_inputs` tensors each, on `destination`."""

    @staticmethod
    def forward(
        ctx: Any, destination: _Device, num_inputs: int, *grads: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.target_gpus = [x.device for x in grads[::num_inputs]]
        rows = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(rows, destination)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Any, ...]:
        return (None, None, *Broadcast.apply(ctx.target_gpus, *grad_outputs))


class Gather(Function):
    """Tensors of several devices joined along `dim` on one; numbers become a vector."""

    @staticmethod
    def forward(ctx: Any, target_device: _Device, dim: int, *inputs: Tensor) -> Tensor:
        _refuse_cpu("Gather", inputs)
        ctx.dim = dim
        ctx.input_gpus = [x.device for x in inputs]
        ctx.numbers = dim == 0 and all([not x.ndim for x in inputs])
        parts = [x.reshape(1) for x in inputs] if ctx.numbers else inputs
        ctx.input_sizes = [x.shape[dim] for x in parts]
        return comm.gather(parts, dim, device_of(target_device))

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Any, ...]:
        grads = Scatter.apply(ctx.input_gpus, ctx.input_sizes, ctx.dim, *grad_outputs)
        return (None, None, *([g[0] for g in grads] if ctx.numbers else grads))


class Scatter(Function):
    """A tensor cut along `dim`, a part per device; the gradients are joined where it is."""

    @staticmethod
    def forward(
        ctx: Any,
        target_gpus: Sequence[_Device],
        chunk_sizes: Sequence[int] | None,
        dim: int,
        input: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.dim, ctx.input_device = dim, input.device
        return comm.scatter(input, target_gpus, chunk_sizes, dim)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Any, ...]:
        return None, None, None, Gather.apply(ctx.input_device, ctx.dim, *grad_outputs)
