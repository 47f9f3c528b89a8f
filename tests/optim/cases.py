"""Every optimizer with every option that changes its numbers."""

from __future__ import annotations

import numpy as np
import torch

SHAPES = [(3, 4), (5,), (), (2, 3, 2)]

CASES = [
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "alpha": 0.5, "t0": 3, "weight_decay": 0.1}),
    ("ASGD", {"maximize": True, "t0": 0}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-4, "weight_decay": 0.1, "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.5, "beta2_decay": -0.5, "eps": (1e-3, 0.1), "d": 1.5}),
    ("Adafactor", {"weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adagrad", {"initial_accumulator_value": 0.5, "eps": 1e-3, "maximize": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-4, "weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True, "betas": (0.0, 0.3)}),
    ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}),
    ("AdamW", {"maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("Adamax", {"maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1}),
    ("NAdam", {"momentum_decay": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("NAdam", {"maximize": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.1, "betas": (0.8, 0.99), "eps": 1e-3, "weight_decay": 0.1}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "centered": True, "weight_decay": 0.1, "eps": 1e-2}),
    ("RMSprop", {"alpha": 0.9, "eps": 1e-4, "momentum": 0.5, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (0.05, 0.2)}),
    ("Rprop", {"maximize": True}),
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
]
#: Each once, with options that bring all of its states to life.
RICHEST = {name: options for name, options in CASES if options.get("maximize") or name == "SGD"}
RICHEST["Adam"] = {"amsgrad": True}
RICHEST["RMSprop"] = {"momentum": 0.9, "centered": True}

#: Every optimizer of PyTorch.
NAMES = sorted(
    name
    for name, kind in vars(torch.optim).items()
    if isinstance(kind, type) and kind is not torch.optim.Optimizer
)


def values(seed, dtype="float32", shapes=SHAPES):
    """An array for each parameter."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    if dtype.startswith("complex"):
        arrays = [array + 1j * rng.standard_normal(array.shape) for array in arrays]
    return [np.asarray(array, dtype) for array in arrays]


def parameters(lib, dtype="float32", shapes=SHAPES):
    return [lib.nn.Parameter(lib.tensor(value)) for value in values(99, dtype, shapes)]


def optimizer_of(lib, params, name, options):
    """An optimizer over the parameters, in two groups."""
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.05}]
    return getattr(lib.optim, name)(groups, **options)


def run(lib, params, optimizer, numbers):
    """Steps with given gradients; the first parameter is left out of the third one."""
    for number in numbers:
        shapes = [tuple(param.shape) for param in params]
        dtype = str(params[0].dtype).removeprefix("torch.")
        for index, (param, g) in enumerate(zip(params, values(number, dtype, shapes), strict=True)):
            param.grad = None if number == 2 and index == 0 else lib.tensor(g)
        optimizer.step()


def plain(value):
    """Nested data with arrays and the names of dtypes in place of tensors."""
    if hasattr(value, "detach"):
        return np.array(value.detach().numpy())
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(entry) for entry in value]
    return value


def assert_same(ours, theirs, rtol, atol=None):
    """Equal structure, dtypes and order of keys; arrays equal to a few roundings."""
    assert type(ours) is type(theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        for key in ours:
            assert_same(ours[key], theirs[key], rtol, atol)
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_same(a, b, rtol, atol)
    elif isinstance(ours, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol if atol is None else atol)
    else:
        assert ours == theirs
