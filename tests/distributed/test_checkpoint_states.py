"""State dicts by the parameters' names in worlds of several processes."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
import tensorflow_lite_clone.distributed.checkpoint as dcp
from tensorflow_lite_clone.distributed.checkpoint import _shards
from tensorflow_lite_clone.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from tests.distributed.worlds import world

ROWS = 5


def show_rows(module, state, prefix, metadata):
    whole = module.weight.dtensor
    state[f"{prefix}weight"] = _shards.Boxes(whole.shape, whole.dtype, _shards.shards_of(whole))


def cut(model, rank, size):
    """Let this process keep some rows of the weight of the first layer; it computes with these."""
    each = -(-ROWS // size)
    own = slice(min(rank * each, ROWS), min((rank + 1) * each, ROWS))
    layer = model[0]
    rows = tlc.nn.Parameter(layer.weight.detach()[own].clone())
    boxes = [((own.start, 0), rows.detach())] if rows.numel() else []
    rows.dtensor = _shards.Boxes((ROWS, 3), tlc.float32, boxes)
    layer.weight = rows
    layer._register_state_dict_hook(show_rows)
    return own


def filled(shape, start):
    count = tlc.zeros(shape).numel()
    return ((tlc.arange(count) + start) * 0.37).sin().reshape(shape)


def made(rank, size, kind=None, values=True):
    """A model, plain, wrapped or cut, and its optimizer after a step."""
    model = tlc.nn.Sequential(tlc.nn.Linear(3, ROWS), tlc.nn.Linear(ROWS, 1))
    with tlc.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(filled(parameter.shape, number) * values)
    grads = [filled(p.shape, 7 * n) for n, p in enumerate(model.parameters())]
    if kind == "cut":
        grads[0] = grads[0][cut(model, rank, size)]
    if kind == "wrapped":
        model = tlc.nn.parallel.DistributedDataParallel(model)
    optimizer = tlc.optim.Adam(model.parameters(), lr=0.1 if values else 9.0)
    if values:
        for parameter, grad in zip(model.parameters(), grads, strict=True):
            parameter.grad = grad
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def plain(value):
    """Nested values with lists of numbers in place of tensors."""
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.tolist() if isinstance(value, tlc.Tensor) else value


def expected():
    return plain(dict(zip(("model", "optimizer"), get_state_dict(*made(0, 1)), strict=True)))


FULL = StateDictOptions(full_state_dict=True)


def whole_states(rank, size, kind):
    model, optimizer = made(rank, size, kind)
    everywhere = get_state_dict(model, optimizer, options=FULL)
    first = get_state_dict(
        model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    assert plain(first) == (plain(everywhere) if rank == 0 else [{}, {}])
    return plain(dict(zip(("model", "optimizer"), everywhere, strict=True)))


@pytest.mark.parametrize("kind", ["wrapped", "cut"])
def test_whole_states_are_those_of_one_process(kind):
    assert world(4).run(whole_states, kind) == [expected()] * 4


def states_from_the_first(rank, size, kind):
    source = get_state_dict(*made(0, 1)) if rank == 0 else ({}, {})
    model, optimizer = made(rank, size, kind, values=False)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_state_dict(
        model, optimizer, model_state_dict=source[0], optim_state_dict=source[1], options=options
    )
    found = get_state_dict(model, optimizer, options=FULL)
    return plain(dict(zip(("model", "optimizer"), found, strict=True)))


@pytest.mark.parametrize("kind", ["wrapped", "cut"])
def test_the_first_process_has_what_all_load(kind):
    assert world(2).run(states_from_the_first, kind) == [expected()] * 2


def save_states(rank, size, path, kind, offload):
    options = StateDictOptions(cpu_offload=offload)
    model, optimizer = get_state_dict(*made(rank, size, kind), options=options)
    dcp.save({"model": model, "optimizer": optimizer}, checkpoint_id=path)


def load_states(rank, size, path, kind):
    model, optimizer = made(rank, size, kind, values=False)
    weights, states = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": states}, checkpoint_id=path)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=states)
    found = get_state_dict(model, optimizer, options=FULL)
    return plain(dict(zip(("model", "optimizer"), found, strict=True)))


@pytest.mark.parametrize("kinds", [("cut", "cut"), ("wrapped", "cut"), ("cut", "wrapped")])
def test_checkpoints_of_states_in_another_world(kinds, tmp_path):
    world(4).run(save_states, str(tmp_path), kinds[0], kinds[0] == "cut")
    assert world(2).run(load_states, str(tmp_path), kinds[1]) == [expected()] * 2


def test_names_within_wrappers():
    wrap = tlc.distributed.algorithms._checkpoint.checkpoint_wrapper.checkpoint_wrapper
    model, _ = made(0, 1)
    model[1] = wrap(model[1])
    model = wrap(model)
    optimizer = tlc.optim.SGD(model.parameters(), lr=0.1)
    weights, states = get_state_dict(model, optimizer)
    names = ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert list(weights) == states["param_groups"][0]["params"] == names


def test_states_of_submodules():
    model, _ = made(0, 1)
    chosen = {"submodules": {model[1]}}
    assert list(get_model_state_dict(model, **chosen)) == ["1.weight", "1.bias"]
    options = StateDictOptions(keep_submodule_prefixes=False)
    assert list(get_model_state_dict(model, **chosen, options=options)) == ["weight", "bias"]


def test_what_is_missing_or_does_not_fit():
    model, optimizer = made(0, 1)
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
