"""Batch normalisation over processes, compared with the joined batch in one."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.ranks import host

SHAPES = {2: (), 3: (5,), 4: (2, 3), 5: (2, 1, 2)}


def samples(ndim, channels, count):
    values = np.random.default_rng(ndim).standard_normal((count, channels, *SHAPES[ndim]))
    return tlc.tensor(values * 3 + 10, device=HERE)


def normalised(x, layer):
    """Two steps: outputs, gradients of the input, gradients of the members, and the state."""
    if layer.affine:
        with tlc.no_grad():
            layer.weight.copy_(tlc.arange(layer.num_features) + 0.5)
    for _ in range(2):
        x = x.detach().requires_grad_()
        y = layer(x)
        (y.sin() * x.detach().cos()).sum().backward()
    members = [host(parameter.grad) for parameter in layer.parameters()]
    return host(y), host(x.grad), members, [host(value) for value in layer.buffers()]


def own(rank, size, ndim, counts, options):
    start = sum(counts[:rank])
    x = samples(ndim, 3, sum(counts))[start : start + counts[rank]]
    return normalised(x, nn.SyncBatchNorm(3, **options).to(HERE, tlc.float64))


CASES = {
    "2D": (2, (4, 4), {}),
    "unequal": (3, (1, 5), {}),
    "none on one": (4, (0, 6), {}),
    "one value each": (2, (1, 1), {}),
    "5D": (5, (3, 2), {"momentum": 0.3, "eps": 1e-2}),
    "four": (4, (2, 1, 3, 2), {}),
    "not affine": (4, (2, 3), {"affine": False}),
    "without bias": (4, (2, 3), {"bias": False}),
    "cumulative": (3, (2, 3), {"momentum": None}),
    "not tracking": (3, (2, 3), {"track_running_stats": False}),
}
KINDS = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}


@pytest.mark.parametrize("name", CASES)
def test_statistics_are_those_of_the_joined_batch(name):
    ndim, counts, options = CASES[name]
    x = samples(ndim, 3, sum(counts))
    y, gx, members, state = normalised(x, KINDS[ndim](3, **options).to(HERE, tlc.float64))
    found = world_here(len(counts)).run(own, ndim, counts, options)

    def same(one, other):
        np.testing.assert_allclose(one, other, 1e-6, 1e-9)

    same(np.concatenate([each[0] for each in found]), y)
    same(np.concatenate([each[1] for each in found]), gx)
    for index, member in enumerate(members):
        same(sum(each[2][index] for each in found), member)
    for *_, mine in found:
        for one, other in zip(mine, state, strict=True):
            same(one, other)


def half(rank, size):
    layer = nn.SyncBatchNorm(3).to(HERE)
    x = samples(4, 3, 4)[2 * rank : 2 * rank + 2].to(tlc.float16).requires_grad_()
    y = layer(x)
    y.float().square().sum().backward()
    return str(y.dtype), str(x.grad.dtype), host(y), host(layer.running_mean)


def test_half_precision():
    x = samples(4, 3, 4).to(tlc.float16)
    layer = nn.BatchNorm2d(3).to(HERE)
    y = layer(x)
    found = world_here(2).run(half)
    assert [each[:2] for each in found] == [("torch.float16", "torch.float16")] * 2
    np.testing.assert_allclose(np.concatenate([each[2] for each in found]), host(y), 2e-3, 2e-3)
    np.testing.assert_allclose(found[1][3], host(layer.running_mean), 1e-5)


def modes(rank, size):
    model = nn.Sequential(nn.Conv1d(2, 3, 1), nn.Sequential(nn.BatchNorm1d(3)))
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model, dist.new_group([1, 0])).to(HERE)
    layer = model[1][0]
    x = tlc.randn(4, 2, 3, device=HERE) + rank
    model(x)
    mean = host(layer.running_mean)
    model.eval()
    y = model(x)
    plain = nn.functional.batch_norm(
        model[0](x), layer.running_mean, layer.running_var, layer.weight, layer.bias
    )
    unmoved = np.array_equal(mean, host(layer.running_mean))
    layer.train()
    with pytest.raises(ValueError, match=r"expected at least 2D input \(got 1D input\)"):
        layer(tlc.ones(3, device=HERE))
    return type(layer).__name__, bool((y == plain).all()), unmoved, mean


def test_conversion_and_evaluation():
    one, other = world_here(2).run(modes)
    for name, same, unmoved, mean in (one, other):
        assert name == "SyncBatchNorm" and same and unmoved
        np.testing.assert_array_equal(mean, one[3])
