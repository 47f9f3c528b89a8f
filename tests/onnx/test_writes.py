"""In-place writes and views: the exported program has neither, and gives the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.autograd.inplace import write
from tests.device import DEVICE
from tests.onnx.run import check


def into_zeros(x):
    y = torch.zeros(x.shape[0], 4, 3, device=x.device)
    y[:, 0] = x[:, 0] * 2
    y[:, 1:3] += x[:, 2:]
    y[:, -1].copy_(x[:, 1])
    return y


def through_views(x):
    y = x * 1
    row = y[:, 1]
    both = y.view(y.shape[0], -1)
    row.mul_(3)
    first = both + 0
    y.add_(1)
    return first, row, both, y


def strided(x):
    y = x.clone()
    y[:, ::2, 1:] = x[:, 1::2, :2].neg()
    y.transpose(1, 2)[:, 0] *= 2
    return y


def filled(x):
    y = x + 0
    y[:, 2].fill_(7)
    y[:, 3, :2].zero_()
    y[y > 1] = -1.0
    return y.clamp_(max=3).masked_fill_(x < 0, 0.5)


def reversed_and_named(x):
    y = x.clone()
    index = torch.tensor([0, 2], device=x.device)
    y[:, index] = x[:, :2] + 1
    y[:, [1, 3], [0, 2]] = 0.25
    y[..., -1] -= y[..., 0]
    return y.flip(1), y[:, index, :], y[:, None, 1:, ..., -1]


def of_input(x):
    x += 1
    x.unsqueeze_(0)
    return x, x.squeeze(0).relu_()


@pytest.mark.parametrize(
    "model", [into_zeros, through_views, strided, filled, reversed_and_named, of_input]
)
def test_of_any_batch(model: Callable) -> None:
    for size in (2, 1):
        x, other = [torch.randn(n, 4, 3, device=DEVICE) for n in (size, 5)]
        check(lambda x: model(x.clone()), x, more=[(other,)], dynamic_axes={"x": [0]})


def diagonals(x):
    y = x.clone()
    y.diagonal().fill_(3)
    y.view(-1)[::5] += 1
    return y, torch.diag_embed(x.diagonal(1)), y.as_strided((0,), (1,)).sum()


def test_of_a_fixed_size() -> None:
    check(lambda x: diagonals(x)[:2], torch.randn(4, 4, device=DEVICE))


def accumulated(x, index):
    y = torch.zeros(5, 3, device=x.device)
    y.index_add_(0, index, x)
    y.index_put_((index, index % 3), x[:, 0], accumulate=True)
    y.scatter_(0, index[:, None].expand(-1, 3), x * 2)
    return y, torch.gather(x, 1, (index % 3)[:, None]), x.take_along_dim(index[:, None] % 3, 1)


def test_at_indices() -> None:
    index = torch.tensor([0, 4, 2, 1], device=DEVICE)
    check(accumulated, torch.randn(4, 3, device=DEVICE), index)


def test_a_parameter_that_is_written() -> None:
    model = torch.nn.Linear(3, 3).to(DEVICE)

    def shifted(x):
        weight = model.weight.clone()
        weight[0] = x[0]
        return x @ weight

    check(shifted, torch.randn(2, 3, device=DEVICE))


def test_numbers_that_are_written() -> None:
    def model(x):
        y = x.clone()
        write(y, 2.5)
        return y + x

    check(model, torch.randn(2, 3, device=DEVICE))
