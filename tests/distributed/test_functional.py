"""Collectives with gradients: values by the definition, gradients by finite differences."""

from __future__ import annotations

import numpy as np
import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone.distributed import _functional_collectives as collectives
from tensorflow_lite_clone.distributed import nn
from tensorflow_lite_clone.distributed.nn import functional
from tests.distributed.process_groups import HERE, world_here

EVEN, MORE = [2, 2], [1, 3]


def new(*shape):
    return torch.empty(*shape, dtype=torch.float64, device=HERE)


#: Functions of a tensor (4,) in a world of two, and the values by the inputs x[rank, element].
CASES = {
    "all_reduce": (lambda x, r: functional.all_reduce(x), lambda x, r: x[0] + x[1]),
    "all_reduce_avg": (
        lambda x, r: functional.all_reduce(x, dist.ReduceOp.AVG),
        lambda x, r: (x[0] + x[1]) / 2,
    ),
    "broadcast": (lambda x, r: functional.broadcast(x, 1), lambda x, r: x[1]),
    "reduce": (
        lambda x, r: functional.reduce(x, 1) if r == 1 else functional.reduce(x, 1) * 0,
        lambda x, r: (x[0] + x[1]) * r,
    ),
    "gather": (
        lambda x, r: torch.cat(functional.gather(x, 1)),
        lambda x, r: np.concatenate([x[0], x[1]]) * r,
    ),
    "scatter": (
        lambda x, r: functional.scatter([x[:2], 3 * x[2:]], 1),
        lambda x, r: (x[1][:2], 3 * x[1][2:])[r],
    ),
    "reduce_scatter": (
        lambda x, r: functional.reduce_scatter(new(2), [x[:2], 3 * x[2:]]),
        lambda x, r: ((x[0] + x[1])[:2], 3 * (x[0] + x[1])[2:])[r],
    ),
    "all_gather": (
        lambda x, r: torch.cat(functional.all_gather(x)),
        lambda x, r: np.concatenate([x[0], x[1]]),
    ),
    "_all_gather_base": (
        lambda x, r: functional._all_gather_base(new(8), x),
        lambda x, r: np.concatenate([x[0], x[1]]),
    ),
    "all_to_all": (
        lambda x, r: torch.cat(
            functional.all_to_all([new((1, 3)[r]), new((1, 3)[r])], list(x.split(MORE)))
        ),
        lambda x, r: np.concatenate([x[k][:1] if r == 0 else x[k][1:] for k in (0, 1)]),
    ),
    "all_to_all_single": (
        lambda x, r: functional.all_to_all_single(new(4), x),
        lambda x, r: np.concatenate([x[k][2 * r : 2 * r + 2] for k in (0, 1)]),
    ),
    "all_to_all_single_sizes": (
        lambda x, r: functional.all_to_all_single(new((2, 6)[r]), x, [(1, 3)[r]] * 2, MORE),
        lambda x, r: np.concatenate([x[k][:1] if r == 0 else x[k][1:] for k in (0, 1)]),
    ),
    "c_all_reduce": (
        lambda x, r: collectives.all_reduce(x, "sum", dist.group.WORLD),
        lambda x, r: x[0] + x[1],
    ),
    "c_all_reduce_ranks": (
        lambda x, r: collectives.all_reduce(x, "SUM", [0, 1]),
        lambda x, r: x[0] + x[1],
    ),
    "c_all_reduce_coalesced": (
        lambda x, r: torch.cat(collectives.all_reduce_coalesced([x, 2 * x], "sum", None)),
        lambda x, r: np.concatenate([x[0] + x[1], 2 * (x[0] + x[1])]),
    ),
    "c_broadcast": (lambda x, r: collectives.broadcast(x, 0, None), lambda x, r: x[0]),
    "c_all_gather_tensor": (
        lambda x, r: collectives.all_gather_tensor(x.view(2, 2), 1, None),
        lambda x, r: np.concatenate([x[0].reshape(2, 2), x[1].reshape(2, 2)], 1),
    ),
    "c_all_gather_tensor_autograd": (
        lambda x, r: collectives.all_gather_tensor_autograd(x.view(2, 2), 0, None),
        lambda x, r: np.concatenate([x[0].reshape(2, 2), x[1].reshape(2, 2)]),
    ),
    "c_reduce_scatter_tensor": (
        lambda x, r: collectives.reduce_scatter_tensor(x.view(2, 2), "sum", 1, None),
        lambda x, r: (x[0] + x[1]).reshape(2, 2)[:, r : r + 1],
    ),
    "c_all_to_all_single_autograd": (
        lambda x, r: collectives.all_to_all_single_autograd(x, [(1, 3)[r]] * 2, MORE, None),
        lambda x, r: np.concatenate([x[k][:1] if r == 0 else x[k][1:] for k in (0, 1)]),
    ),
    "c_permute_tensor": (
        lambda x, r: collectives.permute_tensor(x, [1, 0], None),
        lambda x, r: x[1 - r],
    ),
    "c_wait_tensor": (
        lambda x, r: collectives.wait_tensor(collectives.all_reduce(x, "sum", None)),
        lambda x, r: x[0] + x[1],
    ),
}


def derivatives(rank, size, name):
    """The values, the gradient of the sum of all processes' losses, and what it should be."""
    function = CASES[name][0]
    inputs = np.random.default_rng(0).normal(size=(size, 4))

    def loss(x):
        y = function(x, rank)
        weights = torch.arange(1, y.numel() + 1, dtype=y.dtype, device=HERE) * (rank + 1)
        return y, (y * weights.view(y.shape)).sum()

    x = torch.tensor(inputs[rank], device=HERE).requires_grad_()
    y, own = loss(x)
    own.backward()
    expected = np.zeros(4)
    for process in range(size):
        for element in range(4):
            ends = []
            for step in (0.5, -0.5):  # the maps are linear: any step is exact
                nudged = inputs[rank].copy()
                nudged[element] += step * (rank == process)
                total = loss(torch.tensor(nudged, device=HERE).requires_grad_())[1].detach()
                dist.all_reduce(total)
                ends.append(total.item())
            if rank == process:
                expected[element] = ends[0] - ends[1]
    return inputs, y.detach().cpu().numpy(), x.grad.cpu().numpy(), expected


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    for rank, (x, y, gradient, expected) in enumerate(world_here(2).run(derivatives, name)):
        np.testing.assert_allclose(y, CASES[name][1](x, rank), rtol=1e-12)
        np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)


def second_derivative(rank, size):
    x = torch.full((2,), rank + 1.0, dtype=torch.float64, device=HERE).requires_grad_()
    y = functional.all_reduce(x) ** 2
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    return g.tolist(), gg.tolist()


def test_second_derivatives():
    # The loss of two processes is 2 (x_0 + x_1)^2: first 4 (x_0 + x_1), then its sum over both.
    assert world_here(2).run(second_derivative) == [([12.0, 12.0], [8.0, 8.0])] * 2


def refused(rank, size):
    x = torch.ones(4, device=HERE).requires_grad_()
    errors = []
    for call in (
        lambda: collectives.all_reduce(x, "max", None).sum().backward(),
        lambda: collectives.reduce_scatter_tensor(x, "avg", 0, None).sum().backward(),
        lambda: collectives.reduce_scatter_tensor(x[:3], "sum", 0, None),
        lambda: collectives.all_reduce(x, "foo", None),
        lambda: collectives.permute_tensor(x, [0, 0], None),
        lambda: collectives.all_reduce(x, "sum", [0]),
    ):
        try:
            call()
        except Exception as error:
            errors.append((type(error).__name__, str(error)))
    return errors


def test_functional_collectives_invalid_arguments_raise():
    # The first four are PyTorch's messages.
    for errors in world_here(2).run(refused):
        assert errors == [
            ("RuntimeError", "all_reduce backward only supports 'sum' reduction, got 'max'"),
            (
                "RuntimeError",
                "reduce_scatter_tensor backward only supports 'sum' reduction, got 'avg'",
            ),
            ("AssertionError", "input dimension 0 (3 must be a multiple of group_size 2)"),
            ("RuntimeError", "Unrecognized reduce_op: foo"),
            ("ValueError", "src_dst must be a permutation of 2 processes: [0, 0]"),
            ("ValueError", "ranks [0] are not all ranks: make their group with new_group"),
        ]


def test_the_package_has_the_functions():
    assert nn.all_reduce is functional.all_reduce
