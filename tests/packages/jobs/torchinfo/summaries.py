"""Summaries of models: parameters, sizes, operations, printed tables."""

import torch
import torchvision
from steps import step
from torch import nn
from torchinfo import summary


def told(found):
    return str(found).splitlines()


@step("a ResNet: the whole table")
def _():
    found = summary(
        torchvision.models.resnet18(),
        (1, 3, 64, 64),
        depth=3,
        verbose=0,
        col_names=(
            "input_size",
            "output_size",
            "num_params",
            "kernel_size",
            "mult_adds",
            "trainable",
        ),
    )
    return told(found), found.total_params, found.total_mult_adds


@step("recurrent layers, attention, an embedding")
def _():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.rnn = nn.Embedding(20, 8), nn.LSTM(8, 6, 2, batch_first=True)
            self.attend, self.out = nn.MultiheadAttention(6, 2, batch_first=True), nn.Linear(6, 3)

        def forward(self, x, scale=1.0):
            x = self.rnn(self.embed(x))[0]
            return self.out(self.attend(x, x, x)[0]) * scale

    return told(summary(Net(), input_data=torch.zeros(2, 5).long(), scale=2.0, verbose=0))


@step("frozen, shared and unused layers; lists; a batch dimension")
def _():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
            self.unused = nn.Linear(2, 2)
            self.layers[0].requires_grad_(False)

        def forward(self, x):
            return self.layers[1](self.layers[0](self.layers[0](x)))

    return told(summary(Net(), (4,), batch_dim=0, verbose=0, row_settings=("var_names", "depth")))


@step("several inputs, of several dtypes; without a forward pass")
def _():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(3, 4), nn.Embedding(9, 4)

        def forward(self, x, index):
            return self.one(x) + self.two(index)

    return (
        told(summary(Net(), [(2, 3), (2,)], dtypes=[torch.float, torch.long], verbose=0)),
        told(summary(Net(), verbose=0)),
    )


@step("an input of another size is refused", refused=True)
def _():
    summary(nn.Linear(3, 2), (1, 4), verbose=0)


@step("an unknown column is refused", refused=True)
def _():
    summary(nn.Linear(3, 2), (1, 3), col_names=("nonsense",), verbose=0)
