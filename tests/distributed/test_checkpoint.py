"""State dicts by the parameters' names."""

from __future__ import annotations

import warnings

import pytest
import torch

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.distributed.checkpoint  # noqa: F401

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it compiles with what is deprecated
    import torch.distributed.checkpoint.state_dict


def made(lib, kind, steps, **options):
    lib.manual_seed(3)
    model = lib.nn.Sequential(
        lib.nn.Linear(2, 2, bias=False), lib.nn.BatchNorm1d(2), lib.nn.Linear(2, 1)
    )
    model[2].bias.requires_grad_(False)
    groups = [
        {"params": model[:2].parameters()},
        {"params": [model[2].weight], "lr": 0.5, "weight_decay": 0.1},
    ]
    optimizer = getattr(lib.optim, kind)(groups, lr=0.1, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        x = lib.tensor([[1.0, 2.0], [3.0, -1.0], [0.5, 0.0], [-2.0, 4.0]])
        model(x).pow(2).sum().backward()
        optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def numbers(value, name=""):
    """All leaves by their paths; tensors as approximate numbers."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    elif isinstance(value, tlc.Tensor | torch.Tensor):
        values = value.detach().flatten().tolist()
        return {name: (str(value.dtype), pytest.approx(values, rel=1e-4, abs=1e-5))}
    else:
        return {name: value}
    found = {}
    for key, part in parts:
        found.update(numbers(part, f"{name}/{key}"))
    return found


def shown(value):
    """As `numbers`, with exact ones."""
    return {
        key: (item[0], item[1].expected) if isinstance(item, tuple) else item
        for key, item in numbers(value).items()
    }


@pytest.mark.parametrize("kind, options", [("Adam", {}), ("SGD", {"momentum": 0.9})])
@pytest.mark.parametrize("steps", [0, 2])
@pytest.mark.parametrize("flat", [False, True])
def test_state_dict_contents_match_pytorch(kind, options, steps, flat):
    found = []
    for lib in (tlc, torch):
        place = lib.distributed.checkpoint.state_dict
        model, optimizer = made(lib, kind, steps, **options)
        chosen = place.StateDictOptions(
            flatten_optimizer_state_dict=flat, ignore_frozen_params=True, cpu_offload=True
        )
        found.append(place.get_state_dict(model, optimizer, options=chosen))
        assert all(p.grad is None for p in model.parameters())
    assert shown(found[0]) == numbers(found[1])


@pytest.mark.parametrize("flat", [False, True])
def test_there_and_back(flat):
    place = tlc.distributed.checkpoint.state_dict
    options = place.StateDictOptions(flatten_optimizer_state_dict=flat)
    model, optimizer = made(tlc, "Adam", 3)
    optimizer.param_groups[1]["lr"] = 0.25
    weights, state = place.get_state_dict(model, optimizer, options=options)
    other, fresh = made(tlc, "Adam", 0)
    keys = place.set_state_dict(
        other, fresh, model_state_dict=weights, optim_state_dict=state, options=options
    )
    assert str(keys) == "<All keys matched successfully>"
    assert shown(fresh.state_dict()) == shown(optimizer.state_dict())
    assert fresh.param_groups[1]["lr"] == 0.25
    assert shown(dict(other.state_dict())) == shown(dict(model.state_dict()))


def test_wrappers_have_no_name(tmp_path):
    place = tlc.distributed.checkpoint.state_dict
    tlc.distributed.init_process_group("gloo", f"file://{tmp_path}/x", rank=0, world_size=1)
    try:
        model = tlc.nn.Linear(1, 1)
        wrapped = tlc.nn.parallel.DistributedDataParallel(model)
        optimizer = tlc.optim.SGD(wrapped.parameters(), lr=0.1)
        weights, state = place.get_state_dict(wrapped, optimizer)
        assert list(weights) == ["weight", "bias"]
        assert state["param_groups"][0]["params"] == ["weight", "bias"]
        place.set_model_state_dict(wrapped, weights)
    finally:
        tlc.distributed.destroy_process_group()
