"""Every optimizer of PyTorch has a record here, and its functions PyTorch's signatures."""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch.op import TABLE
from tests.optim.cases import CASES, NAMES

FUNCTIONS = sorted(
    name
    for name, value in vars(importlib.import_module("torch.optim._functional")).items()
    if inspect.isfunction(value) and not name.startswith("_")
)


def parameters_of(function):
    """Names, defaults and kinds."""
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.default, p.kind) for p in parameters]


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_has_a_record(name):
    ours, theirs = [getattr(lib.optim, name) for lib in (tlc, torch)]
    record = ours.__dict__["_record"]
    assert parameters_of(ours) == parameters_of(theirs)
    assert set(record.newer.split()) <= set(record.names) == set(record.fields)
    optimizers = [
        getattr(lib.optim, name)([lib.nn.Parameter(lib.ones(2, 2))]) for lib in (tlc, torch)
    ]
    assert list(optimizers[0].defaults.items()) == list(optimizers[1].defaults.items())
    if name not in ("LBFGS", "SparseAdam"):  # which have steps of their own
        assert TABLE[record.step.__name__] is record.step
        assert name in {case for case, _ in CASES} | {"Muon"}


@pytest.mark.parametrize("name", NAMES)
def test_param_groups_of_older_checkpoints_are_completed(name):
    """It comes back in PyTorch's order, with PyTorch's values."""
    found = []
    for lib in (tlc, torch):
        optimizer = getattr(lib.optim, name)([lib.nn.Parameter(lib.ones(2, 2))])
        group = {"params": optimizer.param_groups[0]["params"]}
        state = {**optimizer.__getstate__(), "param_groups": [group]}
        optimizer.__setstate__(state)
        found.append([(key, value) for key, value in group.items() if key != "params"])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_its_signature(name):
    ours, theirs = [
        getattr(importlib.import_module(f"{lib.__name__}.optim._functional"), name)
        for lib in (tlc, torch)
    ]
    signatures = [
        inspect.Signature([p.replace(annotation=p.empty) for p in signature.parameters.values()])
        for signature in (inspect.signature(ours), inspect.signature(theirs))
    ]
    assert signatures[0] == signatures[1]  # to which the order of keywords does not matter
    assert ours.__name__ == name


def test_a_subclass_has_a_constructor_of_its_own():
    class Mine(tlc.optim.Adam):
        def __init__(self, params, rate):
            super().__init__(params, lr=rate, amsgrad=True)

    param = tlc.nn.Parameter(tlc.ones(2))
    optimizer = Mine([param], 0.5)
    assert optimizer.defaults == {**tlc.optim.Adam([param]).defaults, "lr": 0.5, "amsgrad": True}
    param.grad = tlc.ones(2)
    optimizer.step()
    assert param.tolist() == [0.5, 0.5]
    assert list(optimizer.state[param]) == ["step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"]
