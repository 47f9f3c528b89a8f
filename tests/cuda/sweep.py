"""Common functions over two 8 x 8 matrices, to be run on any device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tensorflow_lite_clone as tlc

F = tlc.nn.functional


def data(*shape: int, seed: int = 0) -> tlc.Tensor:
    """Normal numbers on the CPU."""
    return tlc.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


SWEEP: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y * 2 - 1,
    "reflected": lambda x, y: 2 / (3 - x),
    "remainder": lambda x, y: x % 0.7 + y // 0.3,
    "compare": lambda x, y: (x > y) & (x != 0) | ~(y <= 1),
    "pow": lambda x, y: x.abs() ** 1.5 + x**2 + 2**y,
    "exp_log": lambda x, y: x.exp().log1p() + y.abs().sqrt() + x.tanh() + y.sigmoid(),
    "special": lambda x, y: tlc.erf(x) + tlc.lgamma(y.abs() + 1) + tlc.digamma(x.abs() + 1),
    "clamp": lambda x, y: x.clamp(-1, 1).maximum(y).round(),
    "where": lambda x, y: tlc.where(x > 0, x, y) + tlc.where(x > 0, x, 0.5),
    "sum": lambda x, y: x.sum() + x.sum(0) + x.mean() + y.mean(0),
    "var": lambda x, y: x.var(1) + x.std(dim=1) + x.norm(dim=1),
    "prod": lambda x, y: x.prod(1) + x.amax(1) + x.min(1).values + x.argmax(1),
    "any": lambda x, y: (x > 2).any(1) | (x > -9).all(),
    "cumsum": lambda x, y: x.cumsum(1) + x.cummax(1).values + x.cumprod(0) + x.logcumsumexp(1),
    "sort": lambda x, y: x.sort(1, descending=True).values + x.argsort(1),
    "topk": lambda x, y: tlc.cat([*x.topk(3, 1)], 1) + x.median() + x.kthvalue(2, 0).values[:6],
    "matmul": lambda x, y: x @ y.T,
    "batched": lambda x, y: tlc.bmm(x.reshape(2, 4, 8), y.reshape(2, 8, 4)),
    "large_product": lambda x, y: x.repeat(16, 16) @ y.repeat(16, 16).T,
    "einsum": lambda x, y: tlc.einsum("ij,kj->ik", x, y),
    "addmm": lambda x, y: tlc.addmm(x[:, :8], x, y.T, beta=0.5, alpha=2),
    "linear": lambda x, y: F.linear(x, y, y[:, 0]).relu(),
    "linalg": lambda x, y: tlc.linalg.inv(x @ x.T + 9 * tlc.eye(8, device=x.device)) + x.det(),
    "complex": lambda x, y: tlc.abs(tlc.complex(x, y)),
    "softmax": lambda x, y: x.softmax(1) + y.log_softmax(0),
    "layer_norm": lambda x, y: F.layer_norm(x, (8,), y[0], y[1]),
    "group_norm": lambda x, y: F.group_norm(x.reshape(2, 4, 2, 4), 2),
    "batch_norm": lambda x, y: F.batch_norm(x, None, None, y[0], y[1], True),
    "gelu": lambda x, y: F.gelu(x) + F.silu(y) + F.softplus(x) + F.leaky_relu(y),
    "conv": lambda x, y: F.conv2d(x.reshape(1, 1, 8, 8), y[:3, :3].reshape(1, 1, 3, 3), padding=1),
    "conv_transpose": lambda x, y: F.conv_transpose2d(
        x.reshape(1, 1, 8, 8), y[:3, :3].reshape(1, 1, 3, 3), stride=2
    ),
    "pool": lambda x, y: F.max_pool2d(x.reshape(1, 1, 8, 8), 2)
    + F.avg_pool2d(y.reshape(1, 1, 8, 8), 2),
    "interpolate": lambda x, y: F.interpolate(
        x.reshape(1, 1, 8, 8), scale_factor=2, mode="bilinear"
    ),
    "attention": lambda x, y: F.scaled_dot_product_attention(
        *[t.reshape(1, 2, 4, 8) for t in (x, y, x)]
    ),
    "long_attention": lambda x, y: F.scaled_dot_product_attention(
        *[t.repeat(16, 16).reshape(1, 2, 128, 64) for t in (x, y, y)], is_causal=True
    ),
    "cross_entropy": lambda x, y: F.cross_entropy(x, tlc.arange(8, device=x.device) % 8),
    "losses": lambda x, y: F.mse_loss(x, y) + F.l1_loss(x, y) + F.smooth_l1_loss(x, y),
    "embedding": lambda x, y: F.embedding(tlc.tensor([[1, 2], [7, 1]], device=x.device), x),
    "index": lambda x, y: x[tlc.tensor([3, 1], device=x.device)] + y[2] + x[1:3, ::1],
    "host_index": lambda x, y: x[tlc.tensor([3, 1])] + x[[0, 1]],
    "mask": lambda x, y: tlc.cat([x[x > 100], y[y > -100]]),
    "gather": lambda x, y: x.gather(1, x.argsort(1)) + x.take_along_dim(y.argsort(1), 1),
    "scatter": lambda x, y: x.scatter(1, y.argsort(1), y) + x.scatter_add(0, y.argsort(0), y),
    "scatter_reduce": lambda x, y: x.scatter_reduce(0, y.argsort(0), y, "mean"),
    "index_add": lambda x, y: x.index_add(0, tlc.tensor([1, -8, 1], device=x.device) % 8, y[:3]),
    "index_fill": lambda x, y: x.clone().index_fill_(0, tlc.tensor([-1, 2], device=x.device), 7.0),
    "put": lambda x, y: x.put(tlc.tensor([-1, 5], device=x.device), y[0, :2]),
    "masked_fill": lambda x, y: x.masked_fill(y > 0, -1.0),
    "repeat_interleave": lambda x, y: x.repeat_interleave(
        tlc.arange(8, device=x.device) % 3, dim=0
    ),
    "shapes": lambda x, y: tlc.stack([x, y.T]).permute(2, 0, 1).flip(1).roll(1, 0).contiguous(),
    "pad": lambda x, y: F.pad(x[None], (1, 2), mode="reflect"),
    "tril": lambda x, y: x.tril() + y.triu(1) + tlc.diag(x[0]),
    "nonzero": lambda x, y: (x > 0).nonzero(),
    "unique": lambda x, y: x.round().unique(),
    "searchsorted": lambda x, y: tlc.searchsorted(x[0].sort().values, y[0].contiguous()),
    "bincount": lambda x, y: (x.abs() * 2).long().flatten().bincount(),
    "ranges": lambda x, y: x[0] + tlc.arange(8, device=x.device) + tlc.linspace(
        0, 1, 8, device=x.device
    ),
    "windows": lambda x, y: x[0] * tlc.hann_window(8, device=x.device),
    "triangle": lambda x, y: x[tuple(tlc.tril_indices(8, 8, device=x.device))],
    "like": lambda x, y: tlc.zeros_like(x) + tlc.full_like(y, 2) + x.new_ones(8),
    "cast": lambda x, y: x.long().float() + y.half().float() + x.bool() + x.double().float(),
    "quantile": lambda x, y: x.quantile(0.3, dim=1) + x.histc(8, -3, 3),
    "logsumexp": lambda x, y: x.logsumexp(1) + tlc.cdist(x, y).mean(1),
    "in_place": lambda x, y: x.clone().add_(1).mul_(y).sub_(y).div_(2).exp_().clamp_(0, 5).sqrt_(),
    "writes": lambda x, y: _written(x.clone(), y),
}


def _written(x: tlc.Tensor, y: tlc.Tensor) -> tlc.Tensor:
    x += 1
    x *= y
    x[0] = 3.0
    x[:, 1] = y[:, 0]
    x[tlc.tensor([2, 3], device=x.device)] = y[:2]
    x[x > 2] = 0.0
    x[4:6].copy_(y[4:6]).neg_()
    x[7].fill_(2.0)
    x.T[6] -= 5
    return x


#: Those with gradients.
SMOOTH = (
    "add reflected pow exp_log clamp where sum var prod cumsum matmul einsum linear softmax "
    "layer_norm group_norm batch_norm gelu conv conv_transpose pool attention cross_entropy losses "
    "embedding index gather scatter index_add masked_fill shapes pad interpolate"
).split()
#: Those to run in bfloat16 too.
NARROW = "add matmul sum softmax layer_norm where in_place".split()
