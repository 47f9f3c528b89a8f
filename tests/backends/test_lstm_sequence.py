"""An LSTM as one op against torch: both directions, second derivatives, written outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.dispatch.table import declined, served


@pytest.fixture(autouse=True)
def few_columns(monkeypatch):
    monkeypatch.setattr(tuning, "lstm_columns", 1)


def results(lib, bidirectional, steps=5, twice=False):
    rng = np.random.default_rng(0)
    net = lib.nn.LSTM(3, 4, bidirectional=bidirectional).double()
    with lib.no_grad():
        for param in net.parameters():
            param.copy_(lib.tensor(rng.standard_normal(tuple(param.shape))))
    ways = 1 + bidirectional
    x, h, c = [
        lib.tensor(rng.standard_normal(shape), requires_grad=True)
        for shape in ((steps, 2, 3), (ways, 2, 4), (ways, 2, 4))
    ]
    out, (last_h, last_c) = net(x, (h, c))
    factor = lib.tensor(rng.standard_normal(tuple(out.shape)))
    loss = (out * factor).sum() + (last_c**2).sum() + last_h.sum()
    wanted = [x, h, c, *net.parameters()]
    found = lib.autograd.grad(loss, wanted, create_graph=twice)
    if twice:
        found = [*found, *lib.autograd.grad(sum((g**2).sum() for g in found), wanted)]
    return [t.detach().numpy() for t in (out, last_h, last_c, *found)]


@pytest.mark.parametrize(
    "options", [(False,), (True,), (True, 1), (False, 5, True), (True, 3, True)]
)
def test_lstm_sequence_matches_torch(options):
    before = served["lstm_sequence", "numpy"]
    for ours, theirs in zip(results(tlc, *options), results(torch, *options), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
    assert served["lstm_sequence", "numpy"] == before + 1 + options[0]


def test_lstm_outputs_may_be_written_to():
    def gradient(change):
        tlc.manual_seed(0)
        net = tlc.nn.LSTM(3, 4)
        out = net(tlc.ones(5, 2, 3))[0]
        change(out).sum().backward()
        return net.weight_hh_l0.grad.numpy()

    np.testing.assert_allclose(
        gradient(lambda out: out.mul_(2)), gradient(lambda out: out * 2), rtol=1e-6
    )


@pytest.mark.parametrize("wanted", ["x", "h", "bias"])
def test_lstm_gradients_of_some_inputs_match_torch(wanted):
    def gradient(lib):
        lib.manual_seed(0)
        net = lib.nn.LSTM(3, 4, batch_first=True).double().requires_grad_(False)
        x, h = lib.ones(2, 5, 3).double(), lib.zeros(1, 2, 4).double()
        leaf = {"x": x, "h": h, "bias": net.bias_hh_l0}[wanted].requires_grad_()
        out, (_, last) = net(x, (h, h.detach()))
        return lib.autograd.grad((out**2).sum() + last.sum(), leaf)[0].numpy()

    np.testing.assert_allclose(gradient(tlc), gradient(torch), rtol=1e-9)


def test_lstm_without_biases_for_few_columns_matches_torch(monkeypatch):
    def both(lib):
        lib.manual_seed(1)
        net = lib.nn.LSTM(3, 4, bias=False).double()
        net(lib.ones(1, 7, 3).double())[0].sum().backward()
        return [p.grad.numpy() for p in net.parameters()]

    found = both(tlc)
    monkeypatch.setattr(tuning, "lstm_columns", 8)
    before = declined["lstm_sequence", "numpy"]
    for one, other, true in zip(found, both(tlc), both(torch), strict=True):
        np.testing.assert_allclose(one, true, rtol=1e-9)
        np.testing.assert_allclose(other, true, rtol=1e-9)
    assert declined["lstm_sequence", "numpy"] == before + 1


@pytest.mark.parametrize(
    "dtype, inside", [("bfloat16", True), ("bfloat16", False), ("float16", False)]
)
def test_lstm_of_two_byte_floats_under_autocast_is_one_call(dtype, inside):
    """Inside of autocast, or in the dtype itself: torch's dtypes, and values up to rounding.

    (On many processors PyTorch has no LSTM of float16 under autocast.)
    """

    def found(lib):
        rng = np.random.default_rng(1)
        narrow = getattr(lib, dtype)
        net = lib.nn.LSTM(3, 4, num_layers=2, bidirectional=True)
        with lib.no_grad():
            for param in net.parameters():
                param.copy_(lib.tensor(rng.standard_normal(tuple(param.shape))) / 2)
        x = lib.tensor(rng.standard_normal((5, 2, 3)), dtype=lib.float32, requires_grad=True)
        if inside:
            with lib.autocast("cpu", narrow):
                out, states = net(x)
        else:
            out, states = net.to(narrow)(x.to(narrow))
        out.float().pow(2).sum().backward()
        return [out, *states, x.grad, *[param.grad for param in net.parameters()]]

    before = served["lstm_sequence", "numpy"]
    ours, theirs = found(tlc), found(torch)
    assert served["lstm_sequence", "numpy"] == before + 4
    for mine, other in zip(ours, theirs, strict=True):
        assert str(mine.dtype).rpartition(".")[2] == str(other.dtype).rpartition(".")[2]
        expected = other.detach().double().numpy()
        # PyTorch rounds the states of every step, of which there are five here in two layers.
        np.testing.assert_allclose(
            mine.detach().double().numpy(),
            expected,
            rtol=0,
            atol=8 * torch.finfo(getattr(torch, dtype)).eps * max(1, np.abs(expected).max()),
        )
