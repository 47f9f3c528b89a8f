"""Copies of a module on other devices, whose gradients go to the module itself."""

from __future__ import annotations

from collections.abc import Sequence

from tensorflow_lite_clone.core.device import Device
from tensorflow_lite_clone.nn.modules.module import Module
from tensorflow_lite_clone.nn.parallel.scatter_gather import device_of
from tensorflow_lite_clone.tensor import Tensor

__all__ = ["replicate"]


def replicate(
    network: Module, devices: Sequence[int | str | Device], detach: bool = False
) -> list[Module]:
    """One copy of `network` per device, for one forward pass.

    What a copy has in place of parameters are copies of them, through which gradients flow back
    (not with `detach`); on the device where a tensor is it is that tensor.
    """
    return [_replica(network, device_of(device), detach) for device in devices]


def _replica(network: Module, device: Device, detach: bool) -> Module:
    copies: dict[int, Module] = {}
    for module in network.modules():
        copy = copies[id(module)] = object.__new__(type(module))
        vars(copy).update(vars(module))
    moved: dict[int, Tensor] = {}  # members may be shared
    for module in network.modules():
        attributes = vars(copies[id(module)])
        for name in (*module._parameter_names, *module._buffer_names):
            tensor = attributes[name]
            if tensor is not None:
                if id(tensor) not in moved:
                    moved[id(tensor)] = (tensor.detach() if detach else tensor).to(device)
                attributes[name] = moved[id(tensor)]
        for name in module._module_names:
            if attributes[name] is not None:
                attributes[name] = copies[id(attributes[name])]
        attributes["_parameter_names"] = {}  # as copies they are no parameters
        attributes["_buffer_names"] = dict(module._buffer_names)
        attributes["_module_names"] = dict(module._module_names)
    return copies[id(network)]
