"""`FullyShardedDataParallel`: the numbers of one process on the joined batch, and its options."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest
import torch as pytorch
from torch.distributed import fsdp as pytorch_fsdp

import tensorflow_lite_clone as torch
import tensorflow_lite_clone.distributed as dist
import tensorflow_lite_clone.distributed.checkpoint as dcp
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed.fsdp import (
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    MixedPrecision,
    Sharded,
    ShardedParameter,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)
from tensorflow_lite_clone.distributed.fsdp import FullyShardedDataParallel as FSDP
from tensorflow_lite_clone.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from tensorflow_lite_clone.distributed.fsdp.wrap import (
    CustomPolicy,
    ModuleWrapPolicy,
    _or_policy,
    always_wrap_policy,
    enable_wrap,
    lambda_auto_wrap_policy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
    wrap,
    wrap_children,
)
from tests.distributed.process_groups import HERE, world_here
from tests.distributed.sharded_models import Block, batch, model, numbers, train

BLOCKS = ModuleWrapPolicy({Block})


@cache
def alone(**options):
    net = model()
    losses = train(net, **options)
    return losses, numbers(net.state_dict())


def plain(rank, size, strategy, options):
    if strategy == "HYBRID_SHARD":
        rows = [dist.new_group(r) for r in ([0, 1], [2, 3])]
        columns = [dist.new_group(r) for r in ([0, 2], [1, 3])]
        options = {**options, "process_group": (rows[rank // 2], columns[rank % 2])}
    net = FSDP(model(), sharding_strategy=ShardingStrategy[strategy], auto_wrap_policy=BLOCKS,
               **options)  # fmt: skip
    assert len(FSDP.fsdp_modules(net)) == 4
    assert FSDP.fsdp_modules(net, root_only=True) == [net]
    losses = train(net, rank, size)
    assert net.check_is_root()
    assert not net.blocks[0].check_is_root()
    return losses, numbers(net.state_dict())


CASES = {
    "full": (2, "FULL_SHARD", {}),
    "full in four": (4, "FULL_SHARD", {"use_orig_params": True}),
    "gradients": (2, "SHARD_GRAD_OP", {"backward_prefetch": None}),
    "none": (2, "NO_SHARD", {}),
    "hybrid": (4, "HYBRID_SHARD", {}),
    "offloaded": (2, "FULL_SHARD", {"cpu_offload": CPUOffload(offload_params=True)}),
}


@pytest.mark.parametrize("name", CASES)
def test_losses_and_state_are_those_of_one_process(name):
    size, *arguments = CASES[name]
    outcomes = world_here(size).run(plain, *arguments)
    losses, state = alone()
    np.testing.assert_allclose(np.mean([o[0] for o in outcomes], axis=0), losses, atol=1e-10)
    for _, found in outcomes:
        assert list(found) == list(state)
        for name, value in state.items():
            np.testing.assert_allclose(found[name], value, atol=1e-10, err_msg=name)


def different_start(rank, size):
    net = FSDP(model(seed=rank), auto_wrap_policy=BLOCKS, sync_module_states=True)
    return numbers(net.state_dict())


def test_all_start_with_the_first_ones_state():
    expected = numbers(model(seed=0).state_dict())
    for found in world_here(2).run(different_start):
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value)


def mixed(rank, size):
    precision = MixedPrecision(torch.bfloat16, torch.float32, torch.bfloat16)
    net = FSDP(model(dtype=torch.float32), auto_wrap_policy=BLOCKS, mixed_precision=precision)
    assert net.scale.dtype is torch.bfloat16
    losses = train(net, rank, size)
    assert net(batch(0)[0]).dtype is torch.bfloat16
    return losses


def test_mixed_precision_is_within_its_rounding():
    losses = np.mean(world_here(2).run(mixed), axis=0)
    # bfloat16 has 8 bits: a loss near 2, after 20 steps that follow rounded gradients
    np.testing.assert_allclose(losses, alone()[0], atol=0.05)


def clipped(rank, size):
    net = FSDP(model(), auto_wrap_policy=BLOCKS)
    x, y = batch(0, rank, size)
    nn.functional.cross_entropy(net(x), y).backward()
    before = net.clip_grad_norm_(0.1).item()
    return before, net.clip_grad_norm_(0.1).item()


def test_gradients_are_clipped_by_the_norm_of_all():
    net = model()
    x, y = batch(0)
    nn.functional.cross_entropy(net(x), y).backward()
    expected = nn.utils.clip_grad_norm_(net.parameters(), 0.1).item()
    for before, after in world_here(2).run(clipped):
        assert before == pytest.approx(expected, rel=1e-12)
        assert after == pytest.approx(0.1, rel=1e-4)


def unsynchronized(rank, size):
    net = FSDP(model(), auto_wrap_policy=BLOCKS)
    x, y = batch(0, rank, size)
    with net.no_sync():
        nn.functional.cross_entropy(net(x), y).backward()
    assert all(p.grad is None for p in net.parameters())
    nn.functional.cross_entropy(net(x), y).backward()
    return {name: p.grad.full_tensor().cpu().numpy() for name, p in net.named_parameters()}


def test_no_sync_adds_up():
    net = model()
    x, y = batch(0)
    (2 * nn.functional.cross_entropy(net(x), y)).backward()
    for found in world_here(2).run(unsynchronized):
        for name, p in net.named_parameters():
            np.testing.assert_allclose(found[name], p.grad.cpu().numpy(), atol=1e-12)


# -- state ----------------------------------------------------------------------------------------


def states(rank, size, saved, folder):
    net = FSDP(model(seed=4), auto_wrap_policy=BLOCKS)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    if saved is not None:
        parameters, moments = saved
        net.load_state_dict({name: torch.from_numpy(v) for name, v in parameters.items()})
        moments["state"] = {
            name: {key: torch.from_numpy(np.asarray(v)) for key, v in entry.items()}
            for name, entry in moments["state"].items()
        }
        optimizer.load_state_dict(FSDP.optim_state_dict_to_load(net, optimizer, moments))
    train(net, rank, size, steps=3, first=0 if saved is None else 3, optimizer=optimizer)

    with FSDP.state_dict_type(net, StateDictType.SHARDED_STATE_DICT):
        rows = net.state_dict()
        moments = FSDP.optim_state_dict(net, optimizer)
        assert isinstance(rows["head.weight"], Sharded)
        assert isinstance(moments["state"]["blocks.1.outer"]["exp_avg"], Sharded)
        other = FSDP(model(seed=5), auto_wrap_policy=BLOCKS)
        other.load_state_dict(rows)
        again = torch.optim.AdamW(other.parameters(), 1.0)
        FSDP.optim_state_dict_to_load(other, again, moments, load_directly=True)
        assert again.param_groups[0]["lr"] == 1e-2
        for mine, theirs in zip(optimizer.state.values(), again.state.values(), strict=True):
            torch.testing.assert_close(mine["exp_avg"], theirs["exp_avg"], rtol=0, atol=0)
        dcp.save({"model": rows, "moments": moments}, checkpoint_id=folder)
        reader = dcp.FileSystemReader(folder)
        read = dcp.optimizer.load_sharded_optimizer_state_dict(rows, "moments", reader)
        assert list(read) == ["moments"]
        third = torch.optim.AdamW(net.parameters(), 1.0)
        FSDP.optim_state_dict_to_load(net, third, read["moments"], load_directly=True)
        for mine, theirs in zip(optimizer.state.values(), third.state.values(), strict=True):
            torch.testing.assert_close(mine["exp_avg"], theirs["exp_avg"], rtol=0, atol=0)
    with FSDP.state_dict_type(net, StateDictType.LOCAL_STATE_DICT):
        assert net.state_dict()["head.weight"].shape == other.head.weight.shape
        assert not isinstance(net.state_dict()["head.weight"], Sharded)
    first = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    moments_first = FullOptimStateDictConfig(rank0_only=True)
    with FSDP.state_dict_type(net, StateDictType.FULL_STATE_DICT, first, moments_first):
        state, moments = net.state_dict(), FSDP.optim_state_dict(net, optimizer)
        assert bool(state) is bool(moments) is (rank == 0)
    assert FSDP.get_state_dict_type(net).state_dict_config == FullStateDictConfig()
    with pytest.raises(RuntimeError, match="Expected state_dict_config of type"):
        FSDP.set_state_dict_type(net, StateDictType.FULL_STATE_DICT, ShardedStateDictConfig())
    if rank == 0:
        moments["state"] = {
            name: {key: value.numpy() for key, value in entry.items()}
            for name, entry in moments["state"].items()
        }
    return numbers(state), moments


def test_states_go_to_other_numbers_of_processes(tmp_path):
    net = model(seed=4)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)
    train(net, steps=3, optimizer=optimizer)
    parameters, moments = world_here(2).run(states, None, tmp_path)[0]
    names = [name for name, _ in net.named_parameters()]
    assert list(moments["state"]) == moments["param_groups"][0]["params"] == names
    for name, entry in zip(names, optimizer.state.values(), strict=True):
        for key, value in entry.items():
            found = moments["state"][name][key]
            np.testing.assert_allclose(found, value.cpu().numpy(), atol=1e-10)
    train(net, steps=3, first=3, optimizer=optimizer)
    found = world_here(4).run(states, (parameters, moments), tmp_path)[0][0]
    for name, value in numbers(net.state_dict()).items():
        np.testing.assert_allclose(found[name], value, atol=1e-10, err_msg=name)


def summoned(rank, size):
    net = FSDP(model(), auto_wrap_policy=BLOCKS)
    x, y = batch(0, rank, size)
    nn.functional.cross_entropy(net(x), y).backward()
    with FSDP.summon_full_params(net, with_grads=True):
        shapes = {name: tuple(p.shape) for name, p in net.named_parameters()}
        assert all(p.grad.shape == p.shape for p in net.parameters())
        with torch.no_grad():
            net.head.bias.fill_(3.0)
    assert all(isinstance(p, ShardedParameter) for p in net.parameters())
    with FSDP.summon_full_params(net, writeback=False, offload_to_cpu=True):
        assert net.head.bias.is_cpu
        assert net.head.bias.tolist() == [3.0] * 7
        with torch.no_grad():
            net.head.bias.fill_(4.0)
    with FSDP.summon_full_params(net, writeback=False, rank0_only=True):
        assert isinstance(net.head.bias, ShardedParameter) is (rank > 0)
    with pytest.raises(NotImplementedError), FSDP.summon_full_params(net, rank0_only=True):
        pass
    net.apply(lambda module: module.bias.data.zero_() if isinstance(module, nn.Linear) else None)
    assert net.head.bias.full_tensor().tolist() == [0.0] * 7
    return shapes


def test_parameters_can_be_summoned():
    expected = {name: tuple(p.shape) for name, p in model().named_parameters()}
    assert world_here(2).run(summoned) == [expected] * 2


# -- wrapping -------------------------------------------------------------------------------------


class Marked(nn.Module):
    """A wrapper that cuts nothing."""

    def __init__(self, module: Any, **options: Any) -> None:
        super().__init__()
        self.module, self.options = module, options


POLICIES = {
    "always": (always_wrap_policy, 6),
    "modules": (ModuleWrapPolicy([nn.Linear]), 3),
    "transformer": (partial(transformer_auto_wrap_policy, transformer_layer_cls={nn.Linear}), 3),
    "lambda": (partial(lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Tanh)), 2),
    "size": (partial(size_based_auto_wrap_policy, min_num_params=100), 2),
    "all of one size": (partial(size_based_auto_wrap_policy, min_num_params=10**6), 0),
    "or": (
        partial(
            _or_policy,
            policies=[ModuleWrapPolicy([nn.Tanh]), ModuleWrapPolicy([nn.Linear])],
        ),
        5,
    ),
    "custom": (CustomPolicy(lambda m: {"a": 1} if isinstance(m, nn.Tanh) else False), 2),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies(name):
    policy, count = POLICIES[name]
    net = nn.Sequential(
        nn.Linear(20, 20), nn.Tanh(), nn.Sequential(nn.Linear(20, 20), nn.Tanh()), nn.Linear(2, 2)
    )
    wrap_children(net, policy, Marked, set(), {"b": 2})
    found = [module for module in net.modules() if isinstance(module, Marked)]
    assert len(found) == count
    assert all(m.options == ({"a": 1, "b": 2} if name == "custom" else {"b": 2}) for m in found)


def test_a_policy_says_what_it_wraps():
    with pytest.raises(ValueError, match="should return False/True or a kwarg dict"):
        CustomPolicy(lambda m: 3)._run_policy(nn.Linear(1, 1), set(), {})


def test_wrapping_by_hand():
    layer = nn.Linear(1, 1)
    assert wrap(layer) is layer
    with enable_wrap(wrapper_cls=Marked, a=1):
        assert wrap(layer, b=2).options == {"a": 1, "b": 2}
    assert wrap(layer) is layer


def options(rank, size):
    net = model()
    kept = net.head.weight
    wrapped = FSDP(net, ignored_states=[kept, net.blocks[0]])
    assert wrapped.module is net
    assert net.head.weight is kept
    assert not isinstance(net.blocks[0].outer, ShardedParameter)
    assert isinstance(net.blocks[1].outer, ShardedParameter)
    assert wrapped.blocks is net.blocks
    assert FSDP(nn.Sequential(nn.Linear(2, 2)))[0].weight.shape == (1, 2)
    assert [n for n, _ in wrapped.named_buffers()] == ["scale"]
    refused = [
        (NotImplementedError, {"param_init_fn": print}),
        (NotImplementedError, {"mixed_precision": MixedPrecision(keep_low_precision_grads=True)}),
        (ValueError, {"sharding_strategy": ShardingStrategy.HYBRID_SHARD}),
        (ValueError, {"process_group": (dist.group.WORLD, dist.group.WORLD)}),
        (ValueError, {"ignored_modules": [], "ignored_states": []}),
    ]
    for error, given in refused:
        with pytest.raises(error):
            FSDP(nn.Linear(2, 2), **given)
    with pytest.raises(RuntimeError, match="must be the same on all ranks"):
        FSDP(nn.Linear(2 + rank, 2))
    with pytest.raises(NotImplementedError):
        wrapped.register_comm_hook(None, print)


def test_options():
    world_here(2).run(options)


def scaled(rank, size):
    parameter = nn.Parameter(torch.ones(4, device=HERE))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = ShardedGradScaler(HERE, init_scale=4.0, growth_interval=1)
    for bad in (False, True):
        loss = (parameter * (float("inf") if bad and rank == 1 else 1.0)).sum()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return parameter.tolist(), scaler.get_scale()


def test_a_step_is_left_out_where_one_rank_overflows():
    # the scale doubles after the good step, and halves after the bad one
    assert world_here(2).run(scaled) == [([0.0] * 4, 4.0)] * 2


@pytest.mark.filterwarnings("ignore:The `optim_input` argument:FutureWarning")
def test_states_of_optimizers_by_name_and_by_number():
    def script(lib, wrapper):
        net = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Linear(3, 1))
        optimizer = lib.optim.SGD([{"params": net[1].parameters()}, {"params": [net[0].weight]}], 1)
        numbered = {
            "state": {number: {"step": number} for number in range(3)},
            "param_groups": [{"params": [0, 1], "lr": 1}, {"params": [2], "lr": 2}],
        }
        by_name, by_number = wrapper.OptimStateKeyType
        rekeyed = wrapper.FullyShardedDataParallel.rekey_optim_state_dict
        named = rekeyed(numbered, by_name, net, optim=optimizer)
        assert rekeyed(named, by_name, net, optim=optimizer) is named
        with pytest.raises(ValueError, match="Invalid parameter keys"):
            rekeyed({"state": {1: {}, "x": {}}, "param_groups": []}, by_name, net, optim=optimizer)
        groups = [{"params": list(net.parameters())}]
        return (
            named,
            rekeyed(named, by_number, net, optim=optimizer),
            rekeyed(numbered, by_name, net),
            rekeyed(numbered, by_name, net, optim_input=groups),
        )

    assert script(torch, torch.distributed.fsdp) == script(pytorch, pytorch_fsdp)
