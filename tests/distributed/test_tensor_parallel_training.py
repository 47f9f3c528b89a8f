"""A transformer that is cut over processes trains as the whole one does."""

from __future__ import annotations

import copy

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone import distributed as dist
from tensorflow_lite_clone import nn
from tensorflow_lite_clone.distributed import checkpoint
from tensorflow_lite_clone.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from tensorflow_lite_clone.distributed.device_mesh import DeviceMesh, init_device_mesh
from tensorflow_lite_clone.distributed.fsdp import fully_shard, whole_state_dict
from tensorflow_lite_clone.distributed.tensor.parallel import (
    parallelize_module,
)
from tests.distributed.cut_models import (
    BATCH,
    HIDDEN,
    LENGTH,
    PLANS,
    WORDS,
    Language,
    step,
    worst,
)
from tests.distributed.process_groups import HERE, world_here


def trained(rank, size, plan, grid, hidden):
    """Losses of ten steps of the whole and of the cut model; the differences after them."""
    torch.manual_seed(rank)  # the plan takes the first process's values
    model = Language(hidden).double().to(HERE)
    mesh = init_device_mesh(HERE, grid, mesh_dim_names=("dp", "tp")[-len(grid) :])
    whole = copy.deepcopy(model)
    for value in whole.parameters():
        dist.broadcast(value.data, 0)
    groups = []
    if "dp" in mesh.mesh_dim_names:
        groups = [mesh.get_group("dp")]
        for value in model.parameters():
            dist.broadcast(value.data, 0)
    parallelize_module(model, mesh["tp"], PLANS[plan]())
    torch.manual_seed(5)
    ids = torch.randint(WORDS, (BATCH, LENGTH + 1)).to(HERE)
    rows = BATCH // (mesh.size(0) if groups else 1)
    start = rows * mesh.get_local_rank("dp") if groups else 0
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, whole)]
    cut, expected, gradients = [], [], []
    for _ in range(10):
        cut.append(step(model, optimizers[0], ids[start : start + rows], groups))
        expected.append(step(whole, optimizers[1], ids))
        gradients.append(worst(model, whole, lambda p: p.grad))
    values = worst(model, whole, lambda p: p.data)
    parts = sum([p.numel() for p in model.parameters()])
    return (
        cut,
        expected,
        max(gradients),
        values,
        parts,
        sum([p.numel() for p in whole.parameters()]),
    )


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("grid", [(2,), (4,), (2, 2)])
def test_a_transformer_trains_as_on_one_process(plan, grid):
    size = 4 if grid == (2, 2) else grid[0]
    hidden = 7 if plan == "megatron" and grid == (4,) else HIDDEN  # 2, 2, 2 and 1
    for cut, expected, gradients, values, part, whole in world_here(size).run(
        trained, plan, grid, hidden
    ):
        for here, there in zip(cut, expected):
            assert here == pytest.approx(there, rel=0, abs=1e-10)
        assert gradients < 1e-10
        assert values < 1e-8  # AdamW divides by roots of small numbers
        assert part < 0.8 * whole
        assert expected[-1][0] < expected[0][0]


def over_data(rank, size, plan, wrapper):
    """Losses and norms of a model that is cut, under a wrapper over the data, and of the whole."""
    torch.manual_seed(0)
    model = Language().double().to(HERE)
    whole = copy.deepcopy(model)
    mesh = init_device_mesh(HERE, (2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], PLANS[plan]())
    if wrapper == "ddp":
        model = nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group("dp"))
    else:
        for module in (*model.blocks, model):
            fully_shard(module, mesh=mesh["dp"])
    torch.manual_seed(5)
    ids = torch.randint(WORDS, (BATCH, LENGTH + 1)).to(HERE)
    own = ids.chunk(2)[mesh.get_local_rank("dp")]
    optimizers = [torch.optim.AdamW(m.parameters(), lr=0.01) for m in (model, whole)]
    found = []
    for _ in range(5):
        loss, norm = step(model, optimizers[0], own)
        mean = torch.tensor(loss, device=HERE, dtype=torch.float64)
        dist.all_reduce(mean, dist.ReduceOp.AVG, mesh.get_group("dp"))
        found.append(((mean.item(), norm), step(whole, optimizers[1], ids)))
    if wrapper == "ddp":
        return found, None
    state, expected = whole_state_dict(model), whole.state_dict()
    same = [torch.allclose(state[name], expected[name], rtol=0, atol=1e-8) for name in expected]
    boxes = {name: value.__shards__() for name, value in model.state_dict().items()}
    covered = torch.zeros(expected["blocks.0.down.weight"].shape, device=HERE)
    shape, own = boxes["blocks.0.down.weight"]
    for (row, column), part in own:
        covered[row : row + part.shape[0], column : column + part.shape[1]] += 1
    dist.all_reduce(covered)
    with torch.no_grad():
        for value in model.parameters():
            value.zero_()
    model.load_state_dict(expected)
    logits = model(ids[:, :-1]) - whole(ids[:, :-1])
    return found, (
        all(same),
        shape == covered.shape,
        covered.unique().tolist(),
        logits.abs().max().item(),
    )


@pytest.mark.parametrize("plan", ["megatron", "along_the_sequence"])
@pytest.mark.parametrize("wrapper", ["ddp", "fsdp"])
def test_under_wrappers_over_the_data(plan, wrapper):
    for steps, states in world_here(4).run(over_data, plan, wrapper):
        for here, there in steps:
            assert here == pytest.approx(there, rel=0, abs=1e-10)
        if states is not None:
            same, shape, times, difference = states
            assert same and shape and times == [1.0] and difference < 1e-10


def captured(rank, size, device, plan):
    """Losses of steps that run one by one, and of the same steps captured and replayed."""
    group = dist.group.WORLD
    if device == "tape":  # captures without a GPU, but cannot communicate meanwhile
        import tests.tape_backend  # noqa: F401

        group = [dist.new_group([each], backend="cpu:gloo,tape:gloo") for each in range(size)][rank]
    mesh = DeviceMesh.from_group(group, device, mesh_dim_names=("tp",))
    results = []
    for capture in (False, True):
        torch.manual_seed(0)
        model = parallelize_module(Language().to(device), mesh, PLANS[plan]())
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def run(ids, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            logits = model(ids[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            return loss.detach()

        call = torch.compile(run, fullgraph=True) if capture else run
        torch.manual_seed(1)
        batches = torch.randint(WORDS, (6, BATCH, LENGTH + 1)).to(device)
        results.append([call(ids).item() for ids in batches])
    return results


@pytest.mark.parametrize("plan", PLANS)
def test_a_captured_step_equals_an_eager_one(plan):
    device = HERE if HERE == "cuda" else "tape"
    for eager, replayed in world_here(2).run(captured, device, plan):
        assert replayed == pytest.approx(eager, rel=1e-4)


def continued(rank, size, folder, plan, saves):
    """Losses and norms of steps after a checkpoint, which this world writes or reads."""
    torch.manual_seed(rank)
    model = Language().double().to(HERE)
    if plan is not None:
        parallelize_module(model, init_device_mesh(HERE, (size,)), PLANS[plan]())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    torch.manual_seed(5)
    ids = torch.randint(WORDS, (BATCH, LENGTH + 1)).to(HERE)
    if saves:
        step(model, optimizer, ids)
    weights, moments = get_state_dict(model, optimizer)
    if saves:
        checkpoint.save({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    else:
        checkpoint.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    return [step(model, optimizer, ids) for _ in range(3)]


def test_a_checkpoint_is_read_by_other_numbers_of_processes(tmp_path):
    folder = str(tmp_path)
    expected = world_here(2).run(continued, folder, "along_the_sequence", True)[0]
    for size, plan in ((2, None), (4, "megatron")):
        for found in world_here(size).run(continued, folder, plan, False):
            for here, there in zip(found, expected):
                assert here == pytest.approx(there, rel=0, abs=1e-10)
