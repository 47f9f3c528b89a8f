"""Schedules with drawn combinations of all their arguments, over each library's own optimizers."""

from __future__ import annotations

import inspect
import random
import warnings

import pytest
import torch

import tensorflow_lite_clone as tlc

BOTH = (tlc, torch)
VALUES = {
    "StepLR": {"step_size": [1, 2, 3, 5], "gamma": [0.1, 0.5, 1, 2.0]},
    "MultiStepLR": {"milestones": [[1, 2], [3, 3, 5], [], (2, 4), [5, 1]], "gamma": [0.1, 0.5]},
    "ConstantLR": {"factor": [0, 0.25, 1, 1 / 3], "total_iters": [0, 1, 3, 5]},
    "LinearLR": {
        "start_factor": [0.1, 1, 1 / 3],
        "end_factor": [0, 0.5, 1],
        "total_iters": [0, 1, 3, 5],
    },
    "ExponentialLR": {"gamma": [0.5, 0.9, 1, 1.1, 0]},
    "PolynomialLR": {"total_iters": [0, 1, 3, 5], "power": [0.5, 1, 2, 3.0]},
    "CosineAnnealingLR": {"T_max": [1, 2, 3, 5], "eta_min": [0, 0.01, 0.2]},
    "CosineAnnealingWarmRestarts": {
        "T_0": [1, 2, 3],
        "T_mult": [1, 2, 3],
        "eta_min": [0, 0.01],
    },
    "CyclicLR": {
        "base_lr": [0.01, [0.01, 0.02]],
        "max_lr": [0.1, [0.1, 0.3]],
        "step_size_up": [1, 2, 3],
        "step_size_down": [None, 1, 4],
        "mode": ["triangular", "triangular2", "exp_range"],
        "gamma": [1.0, 0.9],
        "cycle_momentum": [True, False],
        "base_momentum": [0.8, [0.7, 0.6]],
        "max_momentum": [0.9, 0.95],
    },
    "OneCycleLR": {
        "max_lr": [0.1, [0.1, 0.3]],
        "total_steps": [7, 10, 13],
        "pct_start": [0.3, 0.5, 0.1, 0.0, 1.0],
        "anneal_strategy": ["cos", "linear"],
        "cycle_momentum": [True, False],
        "base_momentum": [0.85, 0.5],
        "max_momentum": [0.95, 0.9],
        "div_factor": [25.0, 10.0],
        "final_div_factor": [1e4, 10.0],
        "three_phase": [True, False],
    },
    "ReduceLROnPlateau": {
        "mode": ["min", "max"],
        "factor": [0.1, 0.5],
        "patience": [0, 1, 2],
        "threshold": [1e-4, 0.1],
        "threshold_mode": ["rel", "abs"],
        "cooldown": [0, 1, 2],
        "min_lr": [0, 0.01, [0.01, 0.02]],
        "eps": [1e-8, 0.02],
    },
}
LOSSES = [5, 4, 4, 3.99, 3, 3.5, 3.5, 2, 2]
DRAWS = 12


def optimizer_of(lib, kind, in_tensors):
    rates = [lib.tensor(rate) if in_tensors else rate for rate in (0.1, 0.05)]
    groups = [{"params": [lib.nn.Parameter(lib.ones(1))], "lr": rate} for rate in rates]
    options = {"momentum": 0.9} if kind == "SGD" else {}
    return getattr(lib.optim, kind)(groups, **options)


def plain(value):
    """Comparable data: tensors as short floats, since torch computes some of them in float64."""
    if hasattr(value, "detach"):
        return pytest.approx(value.item(), rel=1e-6, abs=1e-9)
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items() if k != "params" and not callable(v)}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def numbers(value):
    """As `plain`, with floats in place of tensors: the other side of the comparison."""
    if hasattr(value, "detach"):
        return value.item()
    if isinstance(value, dict):
        return {k: numbers(v) for k, v in value.items() if k != "params" and not callable(v)}
    if isinstance(value, (list, tuple)):
        return [numbers(entry) for entry in value]
    return value


def run(lib, name, options, kind, in_tensors, simplify):
    """All rates, groups, states and warnings, up to an error."""
    seen = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            optimizer = optimizer_of(lib, kind, in_tensors)
            scheduler = getattr(lib.optim.lr_scheduler, name)(optimizer, **options)
            for loss in LOSSES:
                now = scheduler.get_last_lr(), optimizer.param_groups, scheduler.state_dict()
                seen.append(simplify(now))
                optimizer.step()
                scheduler.step(*([loss] if name == "ReduceLROnPlateau" else []))
        except (ValueError, ZeroDivisionError) as error:
            seen.append((type(error), str(error)))
    return seen, [(w.category, str(w.message)) for w in caught]


@pytest.mark.parametrize("in_tensors", [False, True])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("name", VALUES)
def test_arguments(name, kind, in_tensors):
    draws = random.Random(name)
    for _ in range(DRAWS):
        options = {key: draws.choice(values) for key, values in VALUES[name].items()}
        ours = run(tlc, name, options, kind, in_tensors, numbers)
        theirs = run(torch, name, options, kind, in_tensors, plain)
        assert ours == theirs, options


@pytest.mark.parametrize("name", torch.optim.lr_scheduler.__all__)
def test_signatures(name):
    ours, theirs = [getattr(lib.optim.lr_scheduler, name) for lib in BOTH]
    for method in ("__init__", "step", "get_lr", "get_last_lr", "state_dict", "load_state_dict"):
        if hasattr(theirs, method):
            mine, yours = [inspect.signature(getattr(x, method)) for x in (ours, theirs)]
            assert [(p.name, p.default, p.kind) for p in mine.parameters.values()] == [
                (p.name, p.default, p.kind) for p in yours.parameters.values()
            ]
