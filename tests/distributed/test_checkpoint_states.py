"""State dicts by the parameters' names in worlds of several processes."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.distributed.checkpoint as dcp
from tensorflow_lite_clone.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    checkpoint_wrapper,
)
from tensorflow_lite_clone.distributed.checkpoint import _nested
from tensorflow_lite_clone.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from tensorflow_lite_clone.distributed.fsdp import FullyShardedDataParallel, fully_shard
from tensorflow_lite_clone.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from tests.distributed.process_groups import HERE, world, world_here


def tensor_parallel(model):
    size = tlc.distributed.get_world_size()
    mesh = tlc.distributed.init_device_mesh(model[0].weight.device.type, (size,))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "1": RowwiseParallel()})


def cut_in_place(model):
    for module in (*model, model):
        fully_shard(module)
    return model


WRAPS = {
    None: lambda model: model,
    "replicated": tlc.nn.parallel.DistributedDataParallel,
    "cut in place": cut_in_place,
    "cut": FullyShardedDataParallel,
    "tensor parallel": tensor_parallel,
}


def filled(shape, start):
    count = tlc.zeros(shape).numel()
    return ((tlc.arange(count) + start) * 0.37).sin().reshape(shape)


def made(kind=None, values=True, device="cpu"):
    """A model, wrapped in a way, and its optimizer after a step; or both as they are at first."""
    model = tlc.nn.Sequential(tlc.nn.Linear(3, 5), tlc.nn.Linear(5, 1))
    with tlc.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(filled(parameter.shape, number) * values)
    model = WRAPS[kind](model.to(device))
    optimizer = tlc.optim.Adam(model.parameters(), lr=0.1 if values else 9.0)
    if values:
        model(filled((2, 3), 5).to(device)).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def plain(states):
    """The leaves of a model's and an optimizer's state by their paths, tensors as numbers."""
    leaves = _nested.flattened(dict(zip(("model", "optimizer"), states, strict=True)))
    return {
        name: leaf.value.tolist() if isinstance(leaf.value, tlc.Tensor) else leaf.value
        for name, leaf in leaves.items()
    }


def expect(results):
    """What all processes have is what there would be in one."""
    wanted = plain(get_state_dict(*made()))
    for found in results:
        assert found.keys() == wanted.keys()
        for name, value in found.items():
            if name.startswith("optimizer.param_groups"):
                assert value == wanted[name]
            else:
                a, b = tlc.tensor(value), tlc.tensor(wanted[name])
                tlc.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


FULL = StateDictOptions(full_state_dict=True)


def whole_states(rank, size, kind):
    model, optimizer = made(kind)
    everywhere = plain(get_state_dict(model, optimizer, options=FULL))
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    first = get_state_dict(model, optimizer, options=options)
    assert plain(first) == (everywhere if rank == 0 else {})
    return everywhere


@pytest.mark.parametrize("kind", list(WRAPS)[1:])
def test_whole_states_are_those_of_one_process(kind):
    expect(world(4).run(whole_states, kind))


def states_from_the_first(rank, size, kind):
    weights, states = get_state_dict(*made()) if rank == 0 else ({}, {})
    model, optimizer = made(kind, values=False)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_state_dict(
        model, optimizer, model_state_dict=weights, optim_state_dict=states, options=options
    )
    return plain(get_state_dict(model, optimizer, options=FULL))


@pytest.mark.parametrize("kind", list(WRAPS)[1:])
def test_the_first_process_has_what_all_load(kind):
    expect(world(2).run(states_from_the_first, kind))


def save_states(rank, size, path, kind, offload):
    options = StateDictOptions(cpu_offload=offload)
    model, optimizer = get_state_dict(*made(kind), options=options)
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=path)


def load_states(rank, size, path, kind):
    model, optimizer = made(kind, values=False)
    weights, states = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": states}, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    return plain(get_state_dict(model, optimizer, options=FULL))


@pytest.mark.parametrize(
    "kinds",
    [
        ("cut in place", "cut in place"),
        ("replicated", "cut in place"),
        ("cut in place", "replicated"),
        ("tensor parallel", "cut in place"),
        ("cut in place", "tensor parallel"),
        ("tensor parallel", "tensor parallel"),
        ("cut", "cut"),
    ],
)
def test_checkpoints_of_states_in_another_world(kinds, tmp_path):
    world(4).run(save_states, str(tmp_path), kinds[0], kinds[1] == kinds[0])
    expect(world(2).run(load_states, str(tmp_path), kinds[1]))


def save_module(rank, size, path, kind):
    dcp.save({"model": made(kind)[0]}, checkpoint_id=path)


def load_module(rank, size, path, kind):
    model, optimizer = made(kind, values=False)
    dcp.load({"model": model}, checkpoint_id=path)
    return plain((get_model_state_dict(model, options=FULL), {}))


@pytest.mark.parametrize("kind", ["cut in place", "tensor parallel"])
def test_modules_give_and_take_their_parts(kind, tmp_path):
    world(4).run(save_module, str(tmp_path), kind)
    found = world(2).run(load_module, str(tmp_path), kind)
    wanted = plain(get_state_dict(*made()))
    for name, value in found[0].items():
        assert tlc.tensor(value).allclose(tlc.tensor(wanted[name]), 1e-5, 1e-6)
    assert found[0] == found[1] and len(found[0]) == 4


def save_while_training(rank, size, path, kind):
    model, optimizer = made(kind, device=HERE)
    weights, states = get_state_dict(model, optimizer)
    future = dcp.async_save({"model": weights, "optimizer": states}, checkpoint_id=path)
    for _ in range(3):
        model(filled((2, 3), 7).to(HERE)).sum().backward()
        optimizer.step()
    future.result(60)
    model, optimizer = made(kind, values=False, device=HERE)
    weights, states = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": states}, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    first = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    whole = get_state_dict(model, optimizer, options=FULL)
    model, optimizer = made(kind, values=False, device=HERE)
    weights, states = whole if rank == 0 else ({}, {})
    set_state_dict(
        model, optimizer, model_state_dict=weights, optim_state_dict=states, options=first
    )
    return plain(get_state_dict(model, optimizer, options=FULL))


@pytest.mark.parametrize("kind", list(WRAPS)[1:])
def test_async_saves_of_what_is_trained(kind, tmp_path):
    """With DEVICE=cuda on GPUs, over NCCL."""
    expect(world_here(2).run(save_while_training, str(tmp_path / "saved"), kind))


# A program that goes on where it was killed.


def train(rank, size, folder, kind, killed_at=None):
    """The losses of the steps that this call makes, by their numbers."""
    tlc.manual_seed(rank)
    layers = tlc.nn.Linear(3, 5), tlc.nn.Dropout(0.5), tlc.nn.Linear(5, 1)
    model = WRAPS[kind](tlc.nn.Sequential(*layers))
    optimizer = tlc.optim.Adam(model.parameters(), lr=0.1)
    schedule = tlc.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    def everything(step):
        weights, states = get_state_dict(model, optimizer)
        own = {f"random {rank}": tlc.get_rng_state()}
        return {"model": weights, "optimizer": states, "schedule": schedule, "step": step, **own}

    first, saved = 0, sorted(Path(folder).glob("step*"))
    if saved:
        state = everything(0)
        dcp.load(state, checkpoint_id=saved[-1])
        weights, states = state["model"], state["optimizer"]
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
        tlc.set_rng_state(state[f"random {rank}"])
        first = state["step"]
    losses = {}
    for step in range(first, 7):
        if step == killed_at:
            return losses
        loss = (model(filled((4, 3), step + rank)) - step).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        losses[step] = loss.item()
        if step % 2 == 1:
            dcp.save(everything(step + 1), checkpoint_id=f"{folder}/step{step + 1:03}")
    return losses


@pytest.mark.parametrize("kind", ["replicated", "cut in place"])
def test_a_killed_program_goes_on_with_the_same_losses(kind, tmp_path):
    unharmed = world(2).run(train, str(tmp_path / "unharmed"), kind)
    folder = str(tmp_path / "killed")
    before = world(2).run(train, folder, kind, 5)
    after = world(2).run(train, folder, kind)
    assert [list(losses) for losses in after] == [[4, 5, 6]] * 2
    for rank in range(2):
        assert {**before[rank], **after[rank]} == unharmed[rank]
        assert before[rank][4] == after[rank][4]


def test_names_within_wrappers():
    model, _ = made()
    model[1] = checkpoint_wrapper(model[1])
    model = checkpoint_wrapper(model)
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1)
    weights, states = get_state_dict(model, optimizer)
    names = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert list(weights) == states["param_groups"][0]["params"] == names


def test_states_of_submodules():
    model, _ = made()
    chosen = {"submodules": {model[1]}}
    assert list(get_model_state_dict(model, **chosen)) == ["1.weight", "1.bias"]
    options = StateDictOptions(keep_submodule_prefixes=False)
    assert list(get_model_state_dict(model, **chosen, options=options)) == ["weight", "bias"]


def test_set_state_dict_missing_or_mismatched_raises():
    model, optimizer = made()
    weights, states = get_state_dict(model, optimizer)
    with pytest.raises(RuntimeError, match=r'Missing key\(s\) in state_dict: "0.bias"'):
        set_model_state_dict(model, {k: v for k, v in weights.items() if k != "0.bias"})
    with pytest.raises(RuntimeError, match="size mismatch for 0.bias"):
        set_model_state_dict(model, {**weights, "0.bias": tlc.ones(9)})
    del states["state"]["0.bias"]
    with pytest.raises(RuntimeError, match="Missing optimizer state for parameter '0.bias'"):
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    keys = set_state_dict(
        model,
        optimizer,
        model_state_dict={"more": 1},
        optim_state_dict=states,
        options=StateDictOptions(strict=False),
    )
    assert keys.unexpected_keys == ["more"] and len(keys.missing_keys) == 4
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        set_model_state_dict(model, weights, options=StateDictOptions(broadcast_from_rank0=True))
