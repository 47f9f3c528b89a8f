"""A model with some of its modules on another device, and copies to and fro around them."""

from collections import OrderedDict

import tensorflow_lite_clone as torch
from examples.cifar.models import Block

nn = torch.nn


class Copy(nn.Module):
    """Gives a tensor on a device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(self.device)

    def extra_repr(self) -> str:
        return f"to {self.device}"


def elsewhere(module: nn.Module, device: str, home: str) -> nn.Sequential:
    """`module` on `device`, for callers whose tensors are on `home`.

    Its three parts are modules, so that a report by layers tells them apart.
    """
    parts = {"copy_in": Copy(device), "there": module.to(device), "copy_out": Copy(home)}
    return nn.Sequential(OrderedDict(parts))


def first_convolutions_on(model: nn.Module, device: str, home: str) -> None:
    """Put the first convolution of every block on `device` and all else on `home`, in place."""
    model.to(home)
    for block in model.modules():
        if isinstance(block, Block):
            block.conv1 = elsewhere(block.conv1, device, home)
