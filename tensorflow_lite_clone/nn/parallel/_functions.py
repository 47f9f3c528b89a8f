"""Traffic between devices that gradients flow back through, as ``torch.nn.parallel._functions``.

PyTorch has autograd functions here, whose `apply` packages call. The moves, sums and cuts of `comm`
are recorded themselves, so that `apply` is all there is.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.parallel import comm
from tensorflow_lite_clone.tensor.tensor import Tensor

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]

_Device = int | str | Device


def _refuse_cpu(name: str, tensors: Sequence[Tensor]) -> None:
    if any([x.device.type == "cpu" for x in tensors]):
        raise AssertionError(f"{name} function not implemented for CPU tensors")


class Broadcast:
    """Tensors on each of the devices, one device's after another's."""

    @staticmethod
    def apply(target_gpus: Sequence[_Device], *inputs: Tensor) -> tuple[Tensor, ...]:
        """The copies, whose gradients are summed. AssertionError for tensors on the CPU."""
        _refuse_cpu("Broadcast", inputs)
        return tuple([x for row in comm.broadcast_coalesced(inputs, target_gpus) for x in row])


class ReduceAddCoalesced:
    """Sums over the devices."""

    @staticmethod
    def apply(destination: _Device, num_inputs: int, *grads: Tensor) -> tuple[Tensor, ...]:
        """The `num_inputs` sums of tensors that stand one device's after another's."""
        rows = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(rows, destination)


class Gather:
    """Tensors of several devices joined on one."""

    @staticmethod
    def apply(target_device: _Device, dim: int, *inputs: Tensor) -> Tensor:
        """The tensors joined along `dim`; numbers become a vector. AssertionError on the CPU."""
        _refuse_cpu("Gather", inputs)
        numbers = dim == 0 and all([not x.ndim for x in inputs])
        parts = [x.reshape(1) for x in inputs] if numbers else inputs
        return comm.gather(parts, dim, target_device)


class Scatter:
    """A tensor cut into a part per device."""

    @staticmethod
    def apply(
        target_gpus: Sequence[_Device],
        chunk_sizes: Sequence[int] | None,
        dim: int,
        input: Tensor,
    ) -> tuple[Tensor, ...]:
        """The parts along `dim`, as long as `chunk_sizes` says or about equally long."""
        return comm.scatter(input, target_gpus, chunk_sizes, dim)
