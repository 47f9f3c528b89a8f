"""All optimizers against torch: numbers, states, dtypes, and states that change sides."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.optim.cases import (
    CASES,
    RICHEST,
    assert_same,
    optimizer_of,
    parameters,
    plain,
    run,
    values,
)

# A few roundings in twelve steps that feed on each other.
ROUNDING = {"float32": 3e-6, "float64": 1e-13, "complex64": 3e-6, "complex128": 1e-13}
IDS = [f"{name}-{number}" for number, (name, _) in enumerate(CASES)]
STEPS = 12


def both(make):
    """What a function of the library gives for ours and for torch."""
    return [make(lib) for lib in (tlc, torch)]


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize(("name", "options"), CASES, ids=IDS)
def test_steps(name, options, dtype):
    if name == "Adafactor" and dtype.startswith("complex"):
        pytest.skip("takes no complex parameters")

    def result(lib):
        params = parameters(lib, dtype)
        optimizer = optimizer_of(lib, params, name, options)
        run(lib, params, optimizer, range(STEPS))
        return plain(params), plain(optimizer.state_dict()), repr(optimizer)

    ours, theirs = both(result)
    assert_same(list(ours), list(theirs), ROUNDING[dtype])


def through_a_file(lib, other, value):
    """A value as the other library loads it."""
    file = io.BytesIO()
    lib.save(value, file)
    file.seek(0)
    return other.load(file)


@pytest.mark.parametrize("name", RICHEST)
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_states_go_over_to_torch_and_back(name, dtype):
    """Six steps here and six there are twelve: from torch to us, and from us to torch."""
    if name == "Adafactor" and dtype == "complex64":
        pytest.skip("takes no complex parameters")
    options = RICHEST[name]
    whole = parameters(torch, dtype)
    run(torch, whole, optimizer_of(torch, whole, name, options), range(12))
    for first, second in ((torch, tlc), (tlc, torch)):
        params = parameters(first, dtype)
        optimizer = optimizer_of(first, params, name, options)
        run(first, params, optimizer, range(6))
        state = through_a_file(first, second, optimizer.state_dict())
        params = [second.nn.Parameter(second.tensor(value)) for value in plain(params)]
        optimizer = optimizer_of(second, params, name, options)
        optimizer.load_state_dict(state)
        run(second, params, optimizer, range(6, 12))
        assert_same(plain(params), plain(whole), 3e-6)


@pytest.mark.parametrize("name", [name for name in RICHEST if name != "Adafactor"])
def test_a_checkpoint_with_less(name):
    """Groups without options that came later, and step counts that were numbers."""

    def result(lib):
        params = parameters(lib)
        optimizer = optimizer_of(lib, params, name, {})
        run(lib, params, optimizer, range(3))
        state = copy.deepcopy(optimizer.state_dict())
        for group in state["param_groups"]:
            for key in ("foreach", "maximize", "capturable", "differentiable", "fused", "amsgrad"):
                group.pop(key, None)
        for entries in state["state"].values():
            entries.update({k: v.item() for k, v in entries.items() if k == "step"})
        optimizer.load_state_dict(state)
        run(lib, params, optimizer, range(3, 5))
        return plain(params), plain(optimizer.state_dict())

    ours, theirs = both(result)
    assert_same(list(ours), list(theirs), 3e-6)


@pytest.mark.parametrize("name", RICHEST)
def test_copies_and_pickles(name):
    params = parameters(tlc)
    optimizer = optimizer_of(tlc, params, name, RICHEST[name])
    run(tlc, params, optimizer, range(2))
    twins, twin = pickle.loads(pickle.dumps((params, optimizer)))
    copies, other = copy.deepcopy((params, optimizer))
    for some, one in ((params, optimizer), (twins, twin), (copies, other)):
        run(tlc, some, one, range(2, 4))
    assert_same(plain(twins), plain(params), 0)
    assert_same(plain(copies), plain(params), 0)
    assert_same(plain(twin.state_dict()), plain(optimizer.state_dict()), 0)


@pytest.mark.parametrize("name", sorted({name for name, _ in CASES}))
def test_hyperparameters_in_tensors(name):
    """Beside float32, what a rate of 0.05 is rounded to shows."""

    def result(lib):
        params = parameters(lib)
        options = {"lr": lib.tensor(0.05)}
        if name in ("Adam", "AdamW"):
            options["betas"] = (lib.tensor(0.75), lib.tensor(0.875))
        if name == "SGD":
            options["weight_decay"] = lib.tensor(0.125)
        optimizer = getattr(lib.optim, name)(params, **options)
        run(lib, params, optimizer, range(5))
        optimizer.param_groups[0]["lr"].mul_(0.5)
        run(lib, params, optimizer, range(5, 8))
        return plain(params), plain(list(optimizer.state.values()))

    ours, theirs = both(result)
    assert_same(list(ours), list(theirs), 5e-6)


DIFFERENTIABLE = [row for row in CASES if row[0] != "Adafactor"]
INNER = [(3,), (2, 2)]


def three_steps(lib, name, options, inputs, **differentiable):
    """The sum of squares of two parameters after three steps: the first values, then gradients."""
    params = [x.clone() for x in inputs[:2]]
    optimizer = getattr(lib.optim, name)(params, **options, **differentiable)
    for number in (2, 4, 6):
        for param, g in zip(params, inputs[number : number + 2], strict=True):
            param.grad = g * 1.5
        optimizer.step()
    return sum((param**2).sum() for param in params)


@pytest.mark.parametrize(("name", "options"), DIFFERENTIABLE, ids=str)
def test_differentiable(name, options):
    """The derivative along a random direction is what torch's plain steps say."""
    start, along = [
        [v for number in range(4) for v in values(seed + number, "float64", INNER)]
        for seed in (10, 20)
    ]
    inputs = [tlc.tensor(v, requires_grad=True) for v in start]
    loss = three_steps(tlc, name, options, inputs, differentiable=True)
    grads = tlc.autograd.grad(loss, inputs, allow_unused=True)
    slope = sum((plain(g) * v).sum() for g, v in zip(grads, along, strict=True) if g is not None)
    step = 1e-6
    ends = [
        three_steps(torch, name, options, [torch.tensor(v + h * w) for v, w in zip(start, along)])
        for h in (-step, step)
    ]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]).item() / (2 * step), 1e-5)


# Where torch can differentiate several steps, and does not take the first momentum as constant.
# It counts steps in float32 then.
@pytest.mark.parametrize(
    "name", ["ASGD", "Adadelta", "Adagrad", "Adam", "NAdam", "RAdam", "RMSprop"]
)
def test_differentiable_beside_torch(name):
    def result(lib):
        start = [v for number in range(4) for v in values(10 + number, "float64", INNER)]
        inputs = [lib.tensor(v, requires_grad=True) for v in start]
        loss = three_steps(lib, name, {"weight_decay": 0.1}, inputs, differentiable=True)
        return plain(list(lib.autograd.grad(loss, inputs)))

    ours, theirs = both(result)
    assert_same(ours, theirs, 2e-5)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_differentiable_by_the_rate(name):
    def result(lib):
        lr = lib.tensor(0.1, dtype=lib.float64, requires_grad=True)
        w = lib.tensor([1.0, -2.0], dtype=lib.float64).requires_grad_()
        param = w.clone()
        optimizer = getattr(lib.optim, name)([param], lr=lr, differentiable=True)
        for _ in range(3):
            param.grad = lib.tensor([0.5, 0.25], dtype=lib.float64)
            optimizer.step()
        return plain(list(lib.autograd.grad((param**2).sum(), [w, lr])))

    ours, theirs = both(result)
    assert_same(ours, theirs, 2e-5)


def test_differentiable_of_leaves():
    for lib in (tlc, torch):
        param = lib.nn.Parameter(lib.ones(2))
        optimizer = lib.optim.Adam([param], differentiable=True)
        param.grad = lib.ones(2)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used"):
            optimizer.step()


@pytest.mark.parametrize("nesterov", [True, False])
@pytest.mark.parametrize("rule", [None, "original", "match_rms_adamw"])
def test_muon(rule, nesterov):
    """Products of bfloat16 matrices are rounded after sums in another order: 1 in 256."""
    shapes = [(3, 4), (8, 2), (5, 5)]

    def result(lib):
        params = parameters(lib, "float32", shapes)
        optimizer = lib.optim.Muon(params, lr=0.02, adjust_lr_fn=rule, nesterov=nesterov)
        run(lib, params, optimizer, range(10))
        return plain(params), plain(optimizer.state_dict()), repr(optimizer)

    ours, theirs = both(result)
    assert_same(ours[0], theirs[0], 0, 10 * 0.02 / 256)
    assert_same(list(ours[1:]), list(theirs[1:]), 3e-6)


def test_sparse_adam():
    """Beside torch with sparse gradients: rows that are not looked up stay, with their means."""

    def result(lib):
        table = lib.nn.Embedding(6, 3, sparse=True)
        table.weight = lib.nn.Parameter(lib.tensor(values(0, shapes=[(6, 3)])[0]))
        optimizer = lib.optim.SparseAdam(table.parameters(), lr=0.1, betas=(0.8, 0.9), eps=1e-4)
        for step in range(10):
            optimizer.zero_grad()
            rows = lib.tensor([step % 6, (step * step) % 5, 2])
            (table(rows) ** 2).sum().backward()
            optimizer.step()
        return plain([table.weight]), plain(optimizer.state_dict()), repr(optimizer)

    ours, theirs = both(result)
    assert_same(list(ours), list(theirs), 3e-6)
