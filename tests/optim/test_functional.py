"""Single steps as functions of lists, against torch."""

from __future__ import annotations

import importlib
import inspect

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.optim.cases import CASES, RICHEST, assert_same, plain, values

FUNCTIONS = {name.lower(): name for name in RICHEST if name != "Adafactor"}
PAIRS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}


def function(lib, name):
    return getattr(importlib.import_module(f"{lib.__name__}.optim.{name}"), name)


def keywords_of(name):
    """What must be given by keyword: most of it other than an optimizer's defaults."""
    kind = FUNCTIONS[name]
    longest = max([options for case, options in CASES if case == kind], key=len)
    given = getattr(torch.optim, kind)([torch.nn.Parameter(torch.ones(1))]).defaults
    given = {**given, **longest, **RICHEST[kind]}
    for pair, names in PAIRS.items():
        given.update(zip(names, given.get(pair, ())))
    parameters = inspect.signature(function(torch, name)).parameters.values()
    return {p.name: given[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY}


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
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name, dtype):
    results = []
    for lib in (tlc, torch):
        lists = lists_of(lib, name, dtype)
        has_complex = {} if name == "sgd" else {"has_complex": dtype == "complex64"}
        for number in range(3):
            grads = [lib.tensor(value) for value in values(number, dtype)]
            lists["d_p_list" if name == "sgd" else "grads"] = grads
            function(lib, name)(**lists, **keywords_of(name), **has_complex, foreach=False)
        lists.pop("d_p_list", lists.pop("grads", None))
        results.append(plain(lists))
    assert_same(*results, 3e-6)


def test_counts_that_are_numbers():
    for lib in (tlc, torch):
        lists = {**lists_of(lib, "adam", "float32"), "state_steps": [1, 1, 1, 1]}
        with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of"):
            function(lib, "adam")(**lists, **keywords_of("adam"))
