"""Copies of a module on other devices, whose gradients go to the module itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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

    def copied(members: dict[str, Any]) -> dict[str, Any]:
        for tensor in members.values():
            if tensor is not None and id(tensor) not in moved:
                moved[id(tensor)] = (tensor.detach() if detach else tensor).to(device)
        return {name: None if t is None else moved[id(t)] for name, t in members.items()}

    for module in network.modules():
        attributes = vars(copies[id(module)])
        attributes["_parameters"] = {}  # as copies they are no parameters, but plain attributes
        attributes.update(copied(module._parameters))
        attributes["_buffers"] = copied(module._buffers)
        attributes["_modules"] = {
            name: None if child is None else copies[id(child)]
            for name, child in module._modules.items()
        }
    return copies[id(network)]
