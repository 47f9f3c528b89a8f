"""Lines of models that people write, at other batch sizes than the example's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.nn import functional as F
from tests.device import DEVICE
from tests.onnx.run import check, export


def shifted_windows(x):
    B, H, W, C = x.shape
    x = torch.roll(x, (-1, -1), (1, 2))
    x = x.view(B, H // 2, 2, W // 2, 2, C).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 4, C)
    y = F.layer_norm(x, (C,))
    y = y.view(B, H // 2, W // 2, 2, 2, C).permute(0, 1, 3, 2, 4, 5).reshape(B, H, W, C)
    return torch.roll(y, (1, 1), (1, 2))


def turned_attention(x):
    B, T, C = x.shape
    q = x.view(B, T, 2, C // 2).transpose(1, 2)
    k = q[:, :1].repeat_interleave(2, dim=1)
    rates = torch.tensor([1.0], device=x.device)
    angles = torch.outer(torch.arange(T, dtype=torch.float32, device=x.device), rates)
    q1, q2 = q.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    q = torch.cat([q1 * cos - q2 * sin, q1 * sin + q2 * cos], -1)
    mask = torch.full((T, T), float("-inf"), device=x.device).triu(1)
    weights = F.softmax(q @ k.transpose(-1, -2) + mask, -1)
    return weights, F.scaled_dot_product_attention(q, k, k, is_causal=True)


def sampled(x):
    theta = torch.eye(2, 3, device=x.device)[None].expand(x.shape[0], -1, -1)
    return F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)


def coordinates(x):
    axes = [torch.arange(size, device=x.device) for size in x.shape[2:]]
    return torch.stack(torch.meshgrid(*axes, indexing="ij")) + x.sum((1, 2, 3))[:, None, None, None]


def padded(x):
    around = [F.pad(x, (1, 1, 2, 1), mode=mode) for mode in ("reflect", "replicate", "circular")]
    return F.pad(x, (1, 2), value=-1.0), F.pad(x, (-1, 0)), *around


def pooled(x):
    return (
        F.adaptive_avg_pool2d(x, (2, 3)), F.adaptive_max_pool2d(x, 2), F.lp_pool2d(x, 2, 2),
        F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), F.max_pool2d(x, 3, 2, 1, return_indices=True)[1],
        F.max_pool2d(x, 2, 2, ceil_mode=True), F.avg_pool2d(x, 2, divisor_override=3),
    )  # fmt: skip


def resized(x):
    return (
        F.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
        F.interpolate(x, size=3, mode="bicubic"),
        F.interpolate(x, size=3, mode="area"),
        F.pixel_shuffle(x, 2),
        F.pixel_unshuffle(x, 2),
    )


def normalised(x):
    return (
        F.instance_norm(x),
        F.group_norm(x, 2),
        F.local_response_norm(x, 2),
        F.normalize(x, dim=1),
    )


def counted(x):
    positive = x > 0
    rows = torch.arange(x.shape[0], device=x.device)
    places = torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0], device=x.device))
    return (
        (x * positive).sum(1) / positive.sum(1).clamp(min=1), x[rows, positive.long().sum(1) - 1],
        F.one_hot(positive.long().sum(1), 6), x[positive].sum() + x.masked_select(x < 0).sum(),
        places, *x.topk(2, -1), x.sort(-1, descending=True).values, x.cumsum(1),
    )  # fmt: skip


def statistics(x):
    return x.var(1), x.std(1, unbiased=False), x.norm(dim=1), x.logsumexp(0), torch.linalg.norm(x)


def reshaped(x):
    return (
        x.flatten(), x.unflatten(1, (2, 2)), x.reshape(1, -1), x.T, x.tile(2, 1), x.diff(dim=1),
        x[:, None].expand(-1, 3, -1).reshape(-1, 4) * x.new_ones(x.shape[0] * 3, 1),
    )  # fmt: skip


def products(x):
    return (
        torch.einsum("bij,bkj->bik", x, x), torch.einsum("bij->ji", x), torch.cdist(x, x + 1),
        torch.baddbmm(x, x, x.transpose(1, 2) @ x, beta=0.5, alpha=2), x @ x[0].T,
        F.cosine_similarity(x, x + 1, dim=-1),
    )  # fmt: skip


FUNCTIONS: dict[Callable, tuple[int, ...]] = {
    shifted_windows: (4, 4, 3), turned_attention: (3, 4), sampled: (2, 4, 4),
    coordinates: (1, 3, 4), padded: (2, 4, 5), pooled: (2, 7, 7), resized: (4, 4, 4),
    normalised: (4, 3, 3), counted: (5,), statistics: (4,), reshaped: (4,), products: (3, 3),
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_function(function: Callable) -> None:
    x, *more = [torch.randn(n, *FUNCTIONS[function], device=DEVICE) for n in (2, 5, 1)]
    check(function, x, more=[(other,) for other in more], dynamic_axes={"x": {0: "batch"}})
    check(function, x)


MODULES: list[tuple[Callable[[], nn.Module], tuple[int, ...]]] = [
    (lambda: nn.Sequential(nn.Conv1d(2, 3, 3, padding="same"), nn.ConvTranspose1d(3, 2, 2, 2),
                           nn.BatchNorm1d(2), nn.MaxPool1d(2)), (2, 6)),
    (lambda: nn.Sequential(nn.Conv3d(1, 2, 2), nn.AvgPool3d(2), nn.Upsample(scale_factor=2)),
     (1, 5, 5, 5)),
    (lambda: nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), nn.Dropout2d(),
                           nn.AlphaDropout(), nn.Softmax2d()), (2, 4, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("make", "shape"), MODULES)
def test_modules(make: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    x, other = [torch.randn(n, *shape, device=DEVICE) for n in (2, 3)]
    check(make(), x, more=[(other,)], dynamic_axes={"input": [0]}, input_names=["input"])


def test_a_size_that_is_not_known() -> None:
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="a dynamic size in a way"):
        export(lambda x: x / x.numel() ** 0.5, torch.ones(2, 3, device=DEVICE),
               dynamic_axes={"x": [0]})  # fmt: skip
    with pytest.raises(torch.onnx.OnnxExporterError, match="no expression of the dynamic"):
        export(
            lambda x: x[: x.shape[0] // 2], torch.ones(4, device=DEVICE), dynamic_axes={"x": [0]}
        )
