"""`DataParallel`: a batch over the devices of one process; over one of them, so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorflow_lite_clone.accelerator import device_count
from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """`module`, which it calls with its inputs as they are.

    `device_ids` may name one device, where the module is; several are NotImplementedError. With
    None all devices are meant; where there is none, the module runs on the CPU.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | Device] | None = None,
        output_device: int | Device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        ids = range(device_count()) if device_ids is None else device_ids
        devices = [Device("cuda", each) if isinstance(each, int) else Device(each) for each in ids]
        if len(devices) > 1:
            raise NotImplementedError(
                f"a module on {len(devices)} devices (planned: several devices and processes): "
                "give the device_ids of one"
            )
        self.dim = dim
        self.module = module
        self.device_ids = [device.index for device in devices]
        self.output_device = self.device_ids[0] if devices else None
        if devices:
            self.module.to(devices[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | Device] | None = None,
    output_device: int | Device | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """What `DataParallel` of a module returns for `inputs`, a tuple or one."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    wrapped = DataParallel(module, device_ids, output_device, dim)
    return wrapped(*inputs, **(module_kwargs or {}))
