"""`fully_shard`: the numbers of one process on the joined batch, with less memory in each."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tensorflow_lite_clone as torch
import tensorflow_lite_clone.distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    Sharded,
    ShardedParameter,
    fully_shard,
    register_fsdp_forward_method,
    whole_state_dict,
)
from tensorflow_lite_clone.utils.checkpoint import checkpoint
from tests.distributed.process_groups import HERE, world, world_here
from tests.distributed.sharded_models import Block, batch, cut, model, numbers, train

SIZES = (2, 4)


@cache
def alone(**options):
    """Losses and final state of a single process on the joined batches."""
    net = model()
    losses = train(net, **options)
    return losses, numbers(net.state_dict())


def same(outcomes, expected, tolerance=1e-10):
    losses, state = expected
    np.testing.assert_allclose(np.mean([o[0] for o in outcomes], axis=0), losses, atol=tolerance)
    for _, found in outcomes:
        assert list(found) == list(state)
        for name, value in state.items():
            np.testing.assert_allclose(found[name], value, atol=tolerance, err_msg=name)


# -- the numbers ----------------------------------------------------------------------------------


def plain(rank, size, options, clip):
    net = cut(model(), **options)
    losses = train(net, rank, size, clip=clip)
    return losses, numbers(whole_state_dict(net))


OPTIONS = {
    "default": {},
    "kept": {"reshard_after_forward": False},
    "dropped": {"reshard_after_forward": True},
    "offloaded": {"offload_policy": CPUOffloadPolicy()},
}


@pytest.mark.parametrize(("name", "size"), [*((name, 2) for name in OPTIONS), ("default", 4)])
def test_losses_and_parameters_are_those_of_one_process(name, size):
    same(world_here(size).run(plain, OPTIONS[name], None), alone())


def test_gradients_are_clipped_by_the_norm_of_all():
    same(world_here(2).run(plain, {}, 0.1), alone(clip=0.1))


def norms(rank, size):
    net = cut(model())
    x, y = batch(0, rank, size)
    nn.functional.cross_entropy(net(x), y).backward()
    grads = [p.grad for p in net.parameters()]
    return [nn.utils.get_total_norm(grads, p).item() for p in (2.0, 1.0, 3.0, float("inf"))]


def test_norms():
    net = model()
    x, y = batch(0)
    nn.functional.cross_entropy(net(x), y).backward()
    grads = [p.grad for p in net.parameters()]
    expected = [nn.utils.get_total_norm(grads, p).item() for p in (2.0, 1.0, 3.0, float("inf"))]
    for found in world_here(2).run(norms):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def mixed(rank, size, reduce_dtype):
    net = model(dtype=torch.float32)
    for block in net.blocks:
        fully_shard(block, mp_policy=MixedPrecisionPolicy(torch.bfloat16, reduce_dtype))
    policy = MixedPrecisionPolicy(torch.bfloat16, reduce_dtype, output_dtype=torch.float32)
    fully_shard(net, mp_policy=policy)
    seen = []
    net.blocks[0].register_forward_pre_hook(
        lambda module, args: seen.append((args[0].dtype, module.outer.dtype))
    )
    losses = train(net, rank, size)
    with torch.no_grad():
        assert net(batch(0)[0]).dtype is torch.float32
    assert seen[0] == (torch.bfloat16, torch.bfloat16)
    assert {p.dtype for p in net.parameters()} == {torch.float32}
    return losses


@pytest.mark.parametrize("reduce_dtype", [None, torch.float32])
def test_mixed_precision_is_within_its_rounding(reduce_dtype):
    losses = np.mean(world_here(2).run(mixed, reduce_dtype), axis=0)
    expected = alone()[0]
    # bfloat16 has 8 bits: a loss near 2, after 20 steps that follow rounded gradients
    np.testing.assert_allclose(losses, expected, atol=0.05)
    assert np.abs(losses - expected).max() > 1e-6  # it was not float64


def hybrid(rank, size):
    rows = [dist.new_group(r) for r in ([0, 1], [2, 3])]
    columns = [dist.new_group(r) for r in ([0, 2], [1, 3])]

    class Mesh:
        ndim, device_type = 2, HERE

        def get_group(self, dim):
            return (columns[rank % 2], rows[rank // 2])[dim]

    net = cut(model(), mesh=Mesh())
    assert net.head.weight.shape == (4 if rank % 2 == 0 else 3, 12)
    losses = train(net, rank, size)
    return losses, numbers(whole_state_dict(net))


def test_groups_within_which_parameters_are_cut_and_over_which_gradients_are_averaged():
    same(world_here(4).run(hybrid), alone())


def accumulated(rank, size):
    net = cut(model())
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    for step in range(4):
        for part in range(2):
            net.set_requires_gradient_sync(part == 1)
            x, y = batch(2 * step + part, rank, size)
            (nn.functional.cross_entropy(net(x), y) / 2).backward()
            if part == 0:
                assert all(p.grad is None for p in net.parameters())
        optimizer.step()
        optimizer.zero_grad()
    return numbers(whole_state_dict(net))


def test_gradients_add_up_until_they_are_reduced():
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    for step in range(4):
        for part in range(2):
            x, y = batch(2 * step + part)
            (nn.functional.cross_entropy(net(x), y) / 2).backward()
        optimizer.step()
        optimizer.zero_grad()
    for found in world_here(2).run(accumulated):
        for name, value in numbers(net.state_dict()).items():
            np.testing.assert_allclose(found[name], value, atol=1e-10, err_msg=name)


class Checkpointed(nn.Module):
    """A block that is run again in backward."""

    def __init__(self, block: Any, reentrant: bool) -> None:
        super().__init__()
        self.block, self.reentrant = block, reentrant

    def forward(self, x: Any) -> Any:
        return checkpoint(self.block, x, use_reentrant=self.reentrant)


def checkpointed(rank, size, reentrant, inside):
    net = model()
    for index, block in enumerate(net.blocks):
        if inside:  # the checkpoint is inside of what is cut
            net.blocks[index] = fully_shard(Checkpointed(block, reentrant))
        else:
            net.blocks[index] = Checkpointed(fully_shard(block), reentrant)
    fully_shard(net)
    losses = train(net, rank, size)
    left = [block.block if not inside else block for block in net.blocks]
    assert all(isinstance(p, ShardedParameter) for part in left for p in part.parameters())
    state = numbers(whole_state_dict(net))
    return losses, {name.replace(".block.", "."): value for name, value in state.items()}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_activation_checkpoints(reentrant, inside):
    same(world_here(2).run(checkpointed, reentrant, inside), alone())


class Twice(nn.Module):
    """One cut layer in two places, a frozen one, one that the loss does not need."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.frozen = nn.Linear(6, 6).requires_grad_(False)
        self.unused = nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        self.unused(x)
        y = torch.tanh(self.first(torch.tanh(self.first(x))))
        return self.first(self.frozen(y)) * x.detach()


def twice_model():
    torch.manual_seed(3)
    return Twice().double().to(HERE)


def twice(rank, size):
    net = twice_model()
    for layer in (net.first, net.frozen, net.unused):
        fully_shard(layer)
    fully_shard(net)
    x = torch.arange(24.0, dtype=torch.float64, device=HERE).view(4, 6).sin()
    net(x[rank * 2 : rank * 2 + 2]).square().mean().backward()
    assert net.unused.weight.grad is None
    assert net.frozen.weight.grad is None
    assert not net.frozen.weight.requires_grad
    assert all(isinstance(p, ShardedParameter) for p in net.parameters())
    return net.first.weight.grad.full_tensor().cpu().numpy()


def test_modules_that_run_twice_are_frozen_or_unused():
    net = twice_model()
    x = torch.arange(24.0, dtype=torch.float64, device=HERE).view(4, 6).sin()
    net(x).square().mean().backward()
    for found in world_here(2).run(twice):
        np.testing.assert_allclose(found, net.first.weight.grad.cpu().numpy(), atol=1e-14)


# -- state ----------------------------------------------------------------------------------------


def saved_and_loaded(rank, size, state):
    net = cut(model(seed=7))
    if state is None:
        train(net, rank, size, steps=3)
        mine = net.state_dict()
        assert all(isinstance(v, Sharded) for name, v in mine.items() if name != "scale")
        other = cut(model(seed=8))
        other.load_state_dict(mine)  # rows
        assert not any(
            (a.to_local() != b.to_local()).any()
            for a, b in zip(net.parameters(), other.parameters(), strict=True)
        )
        return numbers(whole_state_dict(net))
    net.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    for name, value in numbers(whole_state_dict(net)).items():
        np.testing.assert_array_equal(value, state[name])
    wrong = {**net.state_dict(), "head.bias": torch.zeros(9)}
    with pytest.raises(RuntimeError, match=r"head.bias: expected a whole tensor of shape \(7,\)"):
        net.load_state_dict(wrong)
    assigned = {name: torch.from_numpy(value).to(HERE) for name, value in state.items()}
    net.load_state_dict(assigned, assign=True)
    return train(net, rank, size, steps=2)


def test_whole_state_dicts_go_to_other_numbers_of_processes():
    states = world_here(2).run(saved_and_loaded, None)
    for name, value in states[0].items():
        np.testing.assert_array_equal(states[1][name], value)
    whole = model()
    whole.load_state_dict({name: torch.from_numpy(v).to(HERE) for name, v in states[0].items()})
    expected = train(whole, steps=2)
    for size in SIZES:
        losses = world_here(size).run(saved_and_loaded, states[0])
        np.testing.assert_allclose(np.mean(losses, axis=0), expected, atol=1e-12)


# -- the interface --------------------------------------------------------------------------------


def interface(rank, size):
    net = model()
    kept = net.head.weight
    cut(net, ignored_params={kept})
    assert net.head.weight is kept
    assert isinstance(net, FSDPModule)
    assert type(net).__name__ == "FSDPModel"
    assert isinstance(type(net.blocks[0])(), Block)
    block = net.blocks[0]
    shard = block.outer
    shape, [(begin, rows)] = shard.__shards__()
    assert (shape, begin) == ((12, 24), (6 * rank, 0))
    assert rows._storage is shard._storage
    assert shard.shape == (6, 12 * 2)
    assert shard.full_tensor().shape == (12, 24)
    assert "rows" in repr(shard)
    block.unshard()
    whole = block.outer
    assert whole.shape == (12, 24)
    assert whole is not shard
    block.reshard()
    assert block.outer is shard
    with pytest.raises(RuntimeError, match="outer is cut over processes"):
        whole + 1
    handle = block.unshard(async_op=True)
    handle.wait()
    assert block.outer is whole
    block.reshard()
    net.set_reshard_after_forward(False)
    net.set_reshard_after_backward(False)
    net.blocks[0].set_modules_to_forward_prefetch([net.blocks[1]])
    net.blocks[2].set_modules_to_backward_prefetch([net.blocks[1], net.blocks[0]])
    x, y = batch(0, rank, size)
    loss = nn.functional.cross_entropy(net(x), y)
    assert net.blocks[2].outer.shape == (12, 24)
    loss.backward()
    assert net.blocks[2].outer.shape == (12, 24)
    first = [p.grad for p in net.parameters() if p.grad is not None]
    assert len(first) == 1  # the one that was ignored: the others are whole
    net.set_reshard_after_backward(True)
    with torch.no_grad():
        net(x)
    assert net.blocks[2].outer.shape == (6, 24)
    for part in net.modules():
        if isinstance(part, FSDPModule):
            part.set_gradient_divide_factor(1.0)
    mean = net.blocks[0].outer.grad.clone()
    net.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    torch.testing.assert_close(net.blocks[0].outer.grad.to_local(), mean * size)
    with pytest.raises(ValueError, match="should be a bool"):
        net.set_reshard_after_forward(1)


def test_interface():
    world_here(2).run(interface)


def methods(rank, size):
    net = cut(model())
    net.blocks[0].twice = lambda x: net.blocks[0].outer.sum() * x
    register_fsdp_forward_method(net.blocks[0], "twice")
    x = torch.ones(1, dtype=torch.float64, device=HERE, requires_grad=True)
    net.blocks[0].twice(x).sum().backward()
    with pytest.raises(AttributeError, match="none"):
        register_fsdp_forward_method(net, "none")
    return net.blocks[0].outer.grad.to_local().cpu().numpy()


def test_methods_beside_forward():
    for grad in world_here(2).run(methods):
        np.testing.assert_array_equal(grad, np.ones((6, 24)))


def moved(rank, size):
    net = cut(model())
    fresh = model()
    fully_shard(fresh.words)
    fully_shard(fresh)
    fresh.words.set_unshard_in_backward(False)  # rows are looked up: no gradient needs them
    x, y = batch(0, rank, size)
    for each in (net, fresh):
        nn.functional.cross_entropy(each(x), y).backward()
    a, b = net.words.weight.grad.to_local(), fresh.words.weight.grad.to_local()
    torch.testing.assert_close(a, b)
    net.float()  # the rows, and so what is gathered
    assert net(x).dtype is torch.float32
    nn.functional.cross_entropy(net(x), y).backward()
    torch.testing.assert_close(net.words.weight.grad.to_local().double(), 2 * b)


def test_rows_that_change_their_dtype_and_parameters_that_backward_does_not_need():
    world_here(2).run(moved)


def stale(rank, size):
    net = cut(model(), reshard_after_forward=False)
    rows = list(net.parameters())  # what an optimizer has
    x, y = batch(0, rank, size)
    loss = nn.functional.cross_entropy(net(x), y)
    with torch.no_grad():
        for p in rows:
            p.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert nn.functional.cross_entropy(net(x), y).item() != loss.item()  # gathered anew
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()


def test_parameters_that_change_between_forward_and_backward_are_an_error():
    world_here(2).run(stale)


def errors(rank, size):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4 + rank))
    with pytest.raises(RuntimeError, match=r"\(4, 4\) of .* on rank 0 and .*\(5, 4\).* on rank 1"):
        fully_shard(net)
    with pytest.raises(RuntimeError, match="2 parameters on rank 0 and 1 parameters on rank 1"):
        fully_shard(nn.Linear(4, 4, bias=rank == 0))
    with pytest.raises(ValueError, match="do not implement forward"):
        fully_shard(nn.ModuleList([net]))
    with pytest.raises(NotImplementedError):
        fully_shard([net])
    for options in (
        {"reshard_after_forward": 2},
        {"shard_placement_fn": print},
        {"dp_mesh_dims": 1},
    ):
        with pytest.raises(NotImplementedError):
            fully_shard(net, **options)
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    fully_shard(tied[0])
    with pytest.raises(ValueError, match=r"1.weight is shared with a module that is cut"):
        fully_shard(tied)
    with pytest.raises(RuntimeError, match="cut already"):
        fully_shard(tied[0])
    scalar = nn.Linear(2, 2)
    scalar.gain = nn.Parameter(torch.tensor(1.0))
    with pytest.raises(ValueError, match="gain has no dimension"):
        fully_shard(scalar)


def test_errors():
    world(2).run(errors)


def tied(rank, size):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)).to(HERE)
    net[2].weight = net[0].weight
    fully_shard(net)
    assert net[2].weight is net[0].weight
    net(torch.ones(2, 4, device=HERE)).sum().backward()
    assert net[2].weight is net[0].weight
    state = net.state_dict()
    net.load_state_dict({name: value.full_tensor() for name, value in state.items()})
    return net[0].weight.grad.full_tensor().cpu().numpy()


def test_parameters_in_two_places_of_one_group():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
    net[2].weight = net[0].weight
    net(torch.ones(2, 4)).sum().backward()
    for found in world_here(2).run(tied):
        np.testing.assert_allclose(found, net[0].weight.grad.numpy(), atol=1e-6)
