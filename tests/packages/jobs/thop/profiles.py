"""Counts of operations and parameters."""

import torch
import torchvision
from steps import step
from thop import clever_format, profile
from torch import nn


@step("ResNet and MobileNet")
def _():
    x = torch.rand(1, 3, 64, 64)
    found = [
        profile(make(), inputs=(x,), verbose=False)
        for make in (torchvision.models.resnet18, torchvision.models.mobilenet_v2)
    ]
    return found, clever_format(list(found[0]), "%.3f")


@step("recurrent layers, by layer")
def _():
    net = nn.LSTM(4, 6, 2)
    return profile(net, inputs=(torch.rand(5, 1, 4),), verbose=False, ret_layer_info=True)


@step("a rule of one's own; the model afterwards works as before")
def _():
    class Own(nn.Module):
        def forward(self, x):
            return x * 2

    def count(module, inputs, output):
        module.total_ops += torch.DoubleTensor([output.numel()])

    net, x = nn.Sequential(nn.Conv2d(3, 4, 3), Own(), nn.ReLU()), torch.rand(1, 3, 8, 8)
    before = net(x)
    found = profile(net, inputs=(x,), custom_ops={Own: count}, verbose=False)
    return found, (net(x) - before).abs().max(), sorted(net.state_dict())


@step("an input of another size is refused", refused=True)
def _():
    profile(nn.Linear(3, 2), inputs=(torch.rand(1, 4),), verbose=False)
