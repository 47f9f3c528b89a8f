"""Batch norm with its ReLU as one op: values, running statistics and gradients of both orders."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.ops.batch_norm_relu import batch_norm_relu

F = tlc.nn.functional


def drawn(*shape: int) -> tlc.Tensor:
    return tlc.randn(*shape, dtype=tlc.float64, requires_grad=True)


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("order", [1, 2])
def test_as_the_ops_in_a_row(added: bool, order: int) -> None:
    tlc.manual_seed(0)
    x, w, b = drawn(4, 3, 5, 5), drawn(3), drawn(3)
    residual = drawn(4, 3, 5, 5) if added else None
    leaves = [x, w, b, *([residual] if added else [])]

    def fused(mean: tlc.Tensor, var: tlc.Tensor) -> tlc.Tensor:
        return batch_norm_relu(x, residual, mean, var, w, b, 0.1, 1e-5)

    def in_a_row(mean: tlc.Tensor, var: tlc.Tensor) -> tlc.Tensor:
        y = F.batch_norm(x, mean, var, w, b, True)
        return F.relu(y + residual if added else y)

    results = []
    for function in (fused, in_a_row):
        running = tlc.zeros(3, dtype=tlc.float64), tlc.ones(3, dtype=tlc.float64)
        y = function(*running)
        found = tlc.autograd.grad((y * y).sum(), leaves, create_graph=order == 2)
        if order == 2:
            found = tlc.autograd.grad(sum([(g * g).sum() for g in found]), leaves)
        results.append([t.detach().numpy() for t in (y, *running, *found)])
        assert [statistic._version for statistic in running] == [1, 1]
    for ours, theirs in zip(*results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_only_what_is_wanted() -> None:
    x, w, b, residual = tlc.randn(4, 3), tlc.ones(3), tlc.zeros(3), tlc.randn(4, 3)
    residual.requires_grad_()
    batch_norm_relu(x, residual, None, None, w, b, 0.1, 1e-5).sum().backward()
    normal = (x - x.mean(0)) / (x.var(0, correction=0) + 1e-5).sqrt() + residual.detach()
    assert residual.grad is not None
    assert bool((residual.grad == (normal > 0)).all())
