"""`ZeroRedundancyOptimizer`: the numbers of its inner optimizer, with a part of its state."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as torch
import tensorflow_lite_clone.distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.optim import (
    DistributedOptimizer,
    PostLocalSGDOptimizer,
    ZeroRedundancyOptimizer,
)
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.sharded_models import batch, model, numbers

STEPS = 6
CLASSES = {"AdamW": torch.optim.AdamW, "SGD": torch.optim.SGD}


def groups_of(net):
    first = [p for block in net.blocks for p in block.parameters()]
    return [{"params": first, "lr": 2e-2}, {"params": list(net.words.parameters())}]


def train(net: Any, optimizer: Any, rank: int = 0, size: int = 1, first: int = 0) -> None:
    """Some steps with averaged gradients, a schedule, and a group that comes later."""
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for step in range(first, first + STEPS):
        if step == 3:
            optimizer.add_param_group({"params": list(net.head.parameters()), "lr": 3e-3})
            schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        x, y = batch(step, rank, size)
        optimizer.zero_grad()
        net.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        if size > 1:
            for p in net.parameters():
                dist.all_reduce(p.grad, dist.ReduceOp.AVG)
        optimizer.step()
        schedule.step()


def shared_out(rank, size, kind, options):
    net = model()
    optimizer = ZeroRedundancyOptimizer(groups_of(net), CLASSES[kind], lr=1e-2, **options)
    train(net, optimizer, rank, size)
    held = sum(p.numel() for p in optimizer.state)
    mine = [p.numel() for group in optimizer.optim.param_groups for p in group["params"]]
    if kind != "SGD":
        assert held == sum(mine)
    return numbers(net.state_dict()), mine


@pytest.mark.parametrize(("kind", "size"), [("AdamW", 2), ("AdamW", 4), ("SGD", 2)])
def test_as_the_inner_optimizer(kind, size):
    net = model()
    train(net, CLASSES[kind](groups_of(net), lr=1e-2))
    options = {"parameters_as_bucket_view": kind == "AdamW"}
    shares = []
    for state, mine in world_here(size).run(shared_out, kind, options):
        shares.append(sum(mine))
        for name, value in numbers(net.state_dict()).items():
            np.testing.assert_allclose(state[name], value, atol=1e-10, err_msg=name)
    total = sum(p.numel() for p in net.parameters())
    assert sum(shares) == total
    assert max(shares) <= total / size + max(p.numel() for p in net.parameters())


def partition(rank, size, shapes):
    params = [nn.Parameter(torch.zeros(n, device=HERE)) for n in shapes]
    optimizer = ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=0.1)
    return [p.numel() for p in optimizer.optim.param_groups[0]["params"]]


def test_the_largest_go_first_to_who_has_least():
    assert world_here(2).run(partition, [1, 9, 4, 5, 3]) == [[9, 3], [1, 4, 5]]
    assert world_here(2).run(partition, [3]) == [[3], []]


def saved(rank, size):
    net = model()
    optimizer = ZeroRedundancyOptimizer(groups_of(net), torch.optim.AdamW, lr=1e-2)
    with pytest.raises(RuntimeError, match="has not been consolidated on this rank"):
        optimizer.state_dict()
    train(net, optimizer, rank, size)
    optimizer.consolidate_state_dict(to=1)
    if rank != 1:
        with pytest.raises(RuntimeError, match="has not been consolidated"):
            optimizer.state_dict()
        return numbers(net.state_dict()), None
    state = optimizer.state_dict()
    state["state"] = {
        number: {key: value.numpy() for key, value in entry.items()}
        for number, entry in state["state"].items()
    }
    return numbers(net.state_dict()), state


def loaded(rank, size, parameters, state):
    net = model(seed=5)
    net.load_state_dict({name: torch.from_numpy(v) for name, v in parameters.items()})
    groups = [*groups_of(net), {"params": list(net.head.parameters())}]
    if size == 1:
        optimizer = torch.optim.AdamW(groups, lr=1.0)
    else:
        optimizer = ZeroRedundancyOptimizer(groups, torch.optim.AdamW, lr=1.0)
    state["state"] = {
        number: {key: torch.from_numpy(np.asarray(value)) for key, value in entry.items()}
        for number, entry in state["state"].items()
    }
    optimizer.load_state_dict(state)
    train(net, optimizer, rank, size, first=10)
    return numbers(net.state_dict()), [group["lr"] for group in optimizer.param_groups]


def test_state_dicts_are_those_of_the_inner_optimizer():
    net = model()
    inner = torch.optim.AdamW(groups_of(net), lr=1e-2)
    train(net, inner)
    outcomes = world_here(2).run(saved)
    parameters, state = outcomes[1]
    expected = inner.state_dict()
    assert list(state["state"]) == list(expected["state"])
    for number, entry in expected["state"].items():
        for key, value in entry.items():
            found = state["state"][number][key]
            np.testing.assert_allclose(found, value.cpu().numpy(), atol=1e-10)
    assert state["param_groups"] == expected["param_groups"]
    alone = loaded(0, 1, parameters, copy.deepcopy(state))
    for found, rates in world_here(4).run(loaded, parameters, state):
        assert rates == alone[1]
        for name, value in alone[0].items():
            np.testing.assert_allclose(found[name], value, atol=1e-10, err_msg=name)


def closures(rank, size):
    parameter = nn.Parameter(torch.ones(3, device=HERE))
    other = nn.Parameter(torch.ones(2, device=HERE))
    optimizer = ZeroRedundancyOptimizer([parameter, other], torch.optim.SGD, lr=0.5)
    assert optimizer.join_process_group.size() == size
    assert optimizer.join_device == parameter.device

    def closure():
        optimizer.zero_grad()
        loss = parameter.square().sum() + other.sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 5
    hook = optimizer.join_hook()
    hook.main_hook()  # steps along
    with pytest.raises(ValueError, match="doesn't match the size"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0]}]})
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        ZeroRedundancyOptimizer([parameter], torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
    return parameter.tolist() + other.tolist()


def test_closures_and_hooks():
    for found in world_here(2).run(closures):
        assert found == [-1.0] * 3 + [0.0] * 2


def test_optimizers_over_averagers_and_calls():
    with pytest.raises(NotImplementedError, match="rpc"):
        DistributedOptimizer(torch.optim.SGD, [])
    parameter = nn.Parameter(torch.ones(1))
    seen = []
    averager = SimpleNamespace(step=3, average_parameters=lambda params: seen.append(params))
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD([parameter], lr=0.5), averager)
    parameter.grad = torch.ones(1)
    optimizer.step()
    assert parameter.item() == 0.5
    assert seen == [optimizer.param_groups]
    state = optimizer.state_dict()
    assert state["step"] == 3
    averager.step = 0
    optimizer.load_state_dict(state)
    assert averager.step == 3
    del state["step"]
    with pytest.warns(UserWarning, match="does not contain a step counter"):
        optimizer.load_state_dict(state)
    assert averager.step == 0
    optimizer.zero_grad()
    assert parameter.grad is None
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert len(optimizer.param_groups) == 2
