"""`DataParallel`: a batch over the devices of one process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from tensorflow_lite_clone.accelerator import device_count
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parallel.parallel_apply import parallel_apply
from tensorflow_lite_clone.nn.parallel.replicate import replicate
from tensorflow_lite_clone.nn.parallel.scatter_gather import device_of, gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

Place = int | str | Device


class DataParallel(Module):
    """`module`, copied to several devices at each call, each of which gets a part of the batch.

    Inputs are cut along `dim` and outputs joined along it on `output_device`, by default the first
    one of `device_ids`; there the module must be (RuntimeError), and there its gradients and the
    updates of its buffers arrive. With None all devices are meant; where there is none, the module
    runs on the CPU. `DistributedDataParallel` with a process per device is faster.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Place] | None = None,
        output_device: Place | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        ids = range(device_count()) if device_ids is None else device_ids
        devices = [device_of(each) for each in ids]
        self.dim = dim
        self.module = module
        self.device_ids = [_number(device) for device in devices]
        self.output_device: Any = None
        if devices:
            output = devices[0] if output_device is None else device_of(output_device)
            self.output_device = _number(output)
        if len(devices) == 1:
            self.module.to(devices[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        home = device_of(self.device_ids[0])
        for tensor in chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != home:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {home} "
                    f"(device_ids[0]) but found one of them on device: {tensor.device}"
                )
        parts, named = self.scatter(inputs, kwargs, self.device_ids)
        if not parts:  # there is nothing to cut
            parts, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*parts[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(parts)])
        outputs = self.parallel_apply(replicas, parts, named)
        return self.gather(outputs, self.output_device)

    def replicate(self, module: Module, device_ids: Sequence[Place]) -> list[Module]:
        """A copy of the module per device."""
        return replicate(module, device_ids)

    def scatter(
        self, inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, device_ids: Sequence[Place]
    ) -> Any:
        """The arguments of each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(
        self, replicas: Sequence[Module], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """What the copies return."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Place) -> Any:
        """The outputs as one."""
        return gather(outputs, output_device, dim=self.dim)


def _number(device: Device) -> int | Device:
    """The number of a CUDA device, another device as it is."""
    return device if device.type != "cuda" or device.index is None else device.index


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Place] | None = None,
    output_device: Place | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """What `DataParallel` of a module returns for `inputs`, a tuple or one."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    wrapped = DataParallel(module, device_ids, output_device, dim)
    return wrapped(*inputs, **(module_kwargs or {}))
