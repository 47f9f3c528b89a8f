"""What the tests of modules in several processes share."""

from __future__ import annotations

import numpy as np

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn
from tests.distributed.process_groups import HERE


def host(tensor: tlc.Tensor | None) -> object:
    """A tensor's values as they travel between processes."""
    return None if tensor is None else tensor.detach().cpu().clone().numpy()


def part(batch: tlc.Tensor, rank: int, size: int) -> tlc.Tensor:
    """A process's part of a batch that all know."""
    return batch.chunk(size)[rank]


def layers(seed: int = 0, dtype: tlc.dtype = tlc.float64) -> nn.Module:
    """A small model."""
    tlc.manual_seed(seed)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 6), nn.Tanh(), nn.Linear(6, 3))
    return model.to(HERE, dtype)


def samples(count: int, features: int = 5, dtype: tlc.dtype = tlc.float64) -> tlc.Tensor:
    """A batch that all processes know."""
    values = np.random.default_rng(3).standard_normal((count, features))
    return tlc.tensor(values, dtype=dtype, device=HERE)


def gradients(model: nn.Module) -> list:
    """The gradients of a model's parameters."""
    return [host(parameter.grad) for parameter in model.parameters()]


def close(found: list, expected: list, tolerance: float = 1e-10) -> None:
    """Assert that two lists of arrays, or None, are equal up to rounding."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, tolerance, tolerance)
