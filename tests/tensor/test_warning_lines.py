"""Warnings name the user's line, however many wrappers lie between it and what warns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tensorflow_lite_clone as torch
from tests.device import DEVICE

nn, F = torch.nn, torch.nn.functional


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(*shape, device=DEVICE)


CALLS: dict[str, Callable[[], Any]] = {
    "softmax": lambda: F.softmax(ones(2, 3)),
    "log_softmax": lambda: F.log_softmax(ones(2, 3)),
    "softmin": lambda: F.softmin(ones(2, 3)),
    "Softmax": lambda: nn.Softmax()(ones(2, 3)),
    "Sequential of LogSoftmax": lambda: nn.Sequential(nn.LogSoftmax())(ones(2, 3)),
    "var": lambda: torch.var(ones(1)),
    "Tensor.std": lambda: ones(1).std(),
    "var_mean": lambda: torch.var_mean(ones(1)),
    "mse_loss": lambda: F.mse_loss(ones(2, 1), ones(2, 3)),
    "l1_loss": lambda: F.l1_loss(ones(2, 1), ones(2, 3)),
    "smooth_l1_loss": lambda: F.smooth_l1_loss(ones(2, 1), ones(2, 3)),
    "huber_loss": lambda: F.huber_loss(ones(2, 1), ones(2, 3)),
    "MSELoss": lambda: nn.MSELoss()(ones(2, 1), ones(2, 3)),
    "size_average": lambda: F.mse_loss(ones(2), ones(2), size_average=True),
    "MSELoss of size_average": lambda: nn.MSELoss(size_average=False),
    "upsample": lambda: F.upsample(ones(1, 1, 2, 2), 4),
    "upsample_nearest": lambda: F.upsample_nearest(ones(1, 1, 2, 2), 4),
    "affine_grid": lambda: F.affine_grid(ones(1, 2, 3), (1, 1, 2, 2)),
    "grid_sample": lambda: F.grid_sample(ones(1, 1, 2, 2), ones(1, 2, 2, 2)),
    "dropout2d": lambda: F.dropout2d(ones(2, 3, 4)),
    "Dropout3d": lambda: nn.Dropout3d()(ones(2, 3, 4)[0]),
    "range": lambda: torch.range(0, 3, device=DEVICE),
    "T": lambda: ones(2, 3, 4).T,
    "resize": lambda: ones(2, 3).resize(3, 2),
    "index of lists": lambda: ones(2, 3)[[[0, 1], [1, 2]]],
    "uint8 index": lambda: ones(2)[torch.ones(2, dtype=torch.uint8, device=DEVICE)],
    "scatter_": lambda: ones(2).scatter_(
        0, torch.tensor([0, 1], device=DEVICE), ones(2), reduce="add"
    ),
    "init of nothing": lambda: nn.init.kaiming_uniform_(ones(0, 3)),
    "uniform": lambda: nn.init.uniform(ones(2)),
    "scheduler's epoch": lambda: torch.optim.lr_scheduler.StepLR(
        torch.optim.SGD([ones(2)], 0.1), 1
    ).step(1),
    "cov": lambda: torch.cov(ones(3, 1)),
    "corrcoef": lambda: torch.corrcoef(ones(3, 1)),
    "where of uint8": lambda: torch.where(ones(2).to(torch.uint8), ones(2), ones(2)),
    "to a real dtype": lambda: ones(2).to(torch.complex64).to(torch.float32),
    "float": lambda: ones(2).to(torch.complex64).float(),
    "even kernels": lambda: F.conv1d(ones(1, 1, 5), ones(1, 1, 2), padding="same"),
    "affine_grid of a line": lambda: F.affine_grid(ones(1, 2, 3), (1, 1, 1, 2), True),
    "masks": lambda: nn.MultiheadAttention(2, 1, device=DEVICE)(
        *[ones(2, 3, 2)] * 3, ones(3, 2) > 2, attn_mask=ones(2, 2)
    ),
    "sample_n": lambda: torch.distributions.Normal(ones(2), ones(2)).sample_n(3),
    "random_split": lambda: torch.utils.data.random_split([1, 2], [0.1, 0.1, 0.8]),
    "reentrant checkpoint": lambda: torch.utils.checkpoint.checkpoint(
        torch.sin, ones(2), use_reentrant=True
    ),
    "an older question of autocast": torch.is_autocast_cpu_enabled,
    "_check_is_size": lambda: torch._check_is_size(3),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_warning_names_the_file_of_the_call(name: str) -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        CALLS[name]()
    assert given
    assert {warning.filename for warning in given} == {__file__}
