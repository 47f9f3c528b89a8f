"""Averages of weights and their learning rate, against torch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
import torch.optim.swa_utils

import tensorflow_lite_clone as tlc

BOTH = (tlc, torch)


def model_of(lib):
    lib.manual_seed(0)
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.BatchNorm1d(4), lib.nn.Linear(4, 2))


def train(lib, model, averaged, steps=4):
    """Steps that move parameters and running statistics, each taken into the averages."""
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    for number in range(steps):
        x = np.random.default_rng(number).standard_normal((5, 3)).astype("f4")
        optimizer.zero_grad()
        model(lib.tensor(x)).square().sum().backward()
        optimizer.step()
        averaged.update_parameters(model)


def assert_close(ours, theirs):
    assert list(ours) == list(theirs)
    for key in ours:
        a, b = ours[key].numpy(), theirs[key].numpy()
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, 2e-5, 1e-6, err_msg=key)


AVERAGES = {
    "default": lambda swa: {},
    "buffers": lambda swa: {"use_buffers": True},
    "swa": lambda swa: {"avg_fn": swa.get_swa_avg_fn()},
    "swa buffers": lambda swa: {"avg_fn": swa.get_swa_avg_fn(), "use_buffers": True},
    "multi swa": lambda swa: {"multi_avg_fn": swa.get_swa_multi_avg_fn()},
    "ema": lambda swa: {"avg_fn": swa.get_ema_avg_fn()},
    "ema buffers": lambda swa: {"avg_fn": swa.get_ema_avg_fn(0.9), "use_buffers": True},
    "multi ema": lambda swa: {"multi_avg_fn": swa.get_ema_multi_avg_fn(0.9)},
    "multi ema buffers": lambda swa: {
        "multi_avg_fn": swa.get_ema_multi_avg_fn(0.5),
        "use_buffers": True,
    },
    "own": lambda swa: {"avg_fn": lambda mean, current, n: mean + current * n},
    "own multi": lambda swa: {
        "multi_avg_fn": lambda means, currents, n: [
            mean.add_(current) for mean, current in zip(means, currents, strict=True)
        ]
    },
    "device": lambda swa: {"device": "cpu"},
}


@pytest.mark.parametrize("kind", AVERAGES)
def test_averages(kind):
    states, outputs, texts = [], [], []
    for lib in BOTH:
        model = model_of(lib)
        averaged = lib.optim.swa_utils.AveragedModel(model, **AVERAGES[kind](lib.optim.swa_utils))
        train(lib, model, averaged)
        states.append(averaged.state_dict())
        averaged.eval()
        outputs.append(averaged(lib.ones(2, 3)).detach().numpy())
        texts.append(repr(averaged))
        assert all(param.requires_grad for param in averaged.parameters())
    assert_close(*states)
    np.testing.assert_allclose(*outputs, 1e-4, 1e-5)
    assert texts[0] == texts[1]


def test_avg_fn_arguments_match_pytorch():
    seen = []
    for lib in BOTH:
        calls = []

        def note(mean, current, n, calls=calls, lib=lib):
            calls.append((mean.requires_grad, current.requires_grad, n.item(), str(n.dtype)))
            return mean

        model = model_of(lib)
        averaged = lib.optim.swa_utils.AveragedModel(model, avg_fn=note)
        train(lib, model, averaged, 3)
        seen.append(calls)
    assert seen[0] == seen[1]
    assert len(seen[0]) == 12


REFUSED = [
    lambda swa, lib: swa.AveragedModel(model_of(lib), avg_fn=max, multi_avg_fn=max),
    lambda swa, lib: swa.get_ema_avg_fn(-0.1),
    lambda swa, lib: swa.get_ema_multi_avg_fn(1.1),
    lambda swa, lib: swa.SWALR(flat(lib), 0.1, anneal_strategy="x"),
    lambda swa, lib: swa.SWALR(flat(lib), 0.1, anneal_epochs=-1),
    lambda swa, lib: swa.SWALR(flat(lib), 0.1, anneal_epochs=1.5),
    lambda swa, lib: swa.SWALR(flat(lib), [0.1]),
    lambda swa, lib: swa.SWALR(flat(lib), 0.1, last_epoch=3),
    lambda swa, lib: swa.SWALR(5, 0.1),
]


@pytest.mark.parametrize("make", REFUSED)
def test_refused(make):
    seen = []
    for lib in BOTH:
        with pytest.raises(Exception) as caught:  # noqa: B017 (the types are compared below)
            make(lib.optim.swa_utils, lib)
        seen.append((caught.type, str(caught.value)))
    assert seen[0] == seen[1]


@pytest.mark.parametrize("kind", ["tensors", "pairs", "lists", "device"])
def test_update_bn(kind):
    states = []
    for lib in BOTH:
        model = model_of(lib).eval()
        batches = [
            lib.tensor(np.random.default_rng(i).standard_normal((4, 3)).astype("f4"))
            for i in range(3)
        ]
        loader = {"pairs": [(x, 1) for x in batches], "lists": [[x] for x in batches]}
        options = {"device": "cpu"} if kind == "device" else {}
        lib.optim.swa_utils.update_bn(loader.get(kind, batches), model, **options)
        assert not model.training
        assert model[1].momentum == 0.1
        states.append(model.state_dict())
    assert_close(*states)


def test_update_bn_of_a_model_without():
    tlc.optim.swa_utils.update_bn(iter(lambda: pytest.fail("nothing to do"), 0), tlc.nn.Tanh())


def flat(lib):
    groups = [{"params": [lib.ones(1)]}, {"params": [lib.ones(1)], "lr": 0.3}]
    return lib.optim.SGD(groups, lr=0.1)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("epochs", [0, 1, 3, 10])
@pytest.mark.parametrize("rate", [0.05, [0.05, 0.5]])
def test_rates(strategy, epochs, rate):
    """Over all epochs, resumed from the other library's state, and to a given epoch."""
    seen = []
    for lib in BOTH:
        optimizer = flat(lib)
        scheduler = lib.optim.swa_utils.SWALR(optimizer, rate, epochs, strategy)
        rates = [scheduler.get_last_lr()]
        for _ in range(6):
            optimizer.step()
            scheduler.step()
            rates.append(scheduler.get_last_lr())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rates.append(scheduler.get_lr())
            scheduler.step(2)
            rates.append(scheduler.get_last_lr())
        messages = [str(w.message) for w in caught]
        keys = list(optimizer.param_groups[0])
        seen.append((rates, scheduler.state_dict(), messages, keys))
    np.testing.assert_allclose(seen[0][0], seen[1][0], rtol=1e-12)
    ours, theirs = seen[0][1], seen[1][1]
    assert list(ours) == list(theirs)
    assert {k: v for k, v in ours.items() if k != "_last_lr"} == {
        k: v for k, v in theirs.items() if k != "_last_lr"
    }
    assert seen[0][2:] == seen[1][2:]
    other = flat(tlc)
    resumed = tlc.optim.swa_utils.SWALR(other, 0.05, 7, "cos")
    resumed.load_state_dict(theirs)
    other.step()
    resumed.step()
    assert resumed.last_epoch == 3
