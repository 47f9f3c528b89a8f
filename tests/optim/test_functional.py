"""Single steps as functions of lists, against torch."""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.optim.cases import assert_same, plain, values

RATE = {"lr": 0.1, "weight_decay": 0.1}
MEANS = {"beta1": 0.8, "beta2": 0.9, "eps": 1e-3, **RATE}
CALLS = {
    "sgd": {**RATE, "momentum": 0.9, "dampening": 0.1, "nesterov": False, "maximize": False},
    "adam": {**MEANS, "amsgrad": True, "maximize": True},
    "adamw": {**MEANS, "amsgrad": True, "maximize": False},
    "adagrad": {**RATE, "lr_decay": 0.1, "eps": 1e-3, "maximize": False},
    "rmsprop": {**RATE, "alpha": 0.9, "eps": 1e-2, "momentum": 0.5, "centered": True},
    "adadelta": {**RATE, "rho": 0.9, "eps": 1e-3, "maximize": False},
    "adamax": MEANS,
    "radam": MEANS,
    "nadam": {**MEANS, "momentum_decay": 0.1},
    "asgd": {**RATE, "lambd": 0.1, "alpha": 0.75, "t0": 1},
    "rprop": {"step_size_min": 0.01, "step_size_max": 1, "etaminus": 0.5, "etaplus": 1.2},
}


def function(lib, name):
    return getattr(importlib.import_module(f"{lib.__name__}.optim.{name}"), name)


def lists_of(lib, name, dtype):
    """Parameters, gradients and states, by the names of a function's lists."""
    lists = {}
    names = list(inspect.signature(function(torch, name)).parameters)
    for key in names[: names.index("state_steps") + 1] if "state_steps" in names else names[:3]:
        if key == "state_steps":
            lists[key] = [lib.tensor(0.0) for _ in values(0)]
        elif key in ("mus", "etas", "mu_products"):
            lists[key] = [lib.tensor(1.0) for _ in values(0)]
        elif key == "momentum_buffer_list" and name == "sgd":
            lists[key] = [None for _ in values(0)]
        elif key in ("params", "grads", "d_p_list"):
            lists[key] = [lib.tensor(value) for value in values(len(lists), dtype)]
        else:
            lists[key] = [lib.tensor(value * 0) for value in values(0, dtype)]
    return lists


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", CALLS)
def test_numbers(name, dtype):
    results = []
    for lib in (tlc, torch):
        lists = lists_of(lib, name, dtype)
        has_complex = {} if name == "sgd" else {"has_complex": dtype == "complex64"}
        for number in range(3):
            grads = [lib.tensor(value) for value in values(number, dtype)]
            lists["d_p_list" if name == "sgd" else "grads"] = grads
            function(lib, name)(**lists, **CALLS[name], **has_complex, foreach=False)
        lists.pop("d_p_list", lists.pop("grads", None))
        results.append(plain(lists))
    assert_same(*results, 3e-6)


def test_counts_that_are_numbers():
    for lib in (tlc, torch):
        lists = {**lists_of(lib, "adam", "float32"), "state_steps": [1, 1, 1, 1]}
        with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of"):
            function(lib, "adam")(**lists, **CALLS["adam"])
