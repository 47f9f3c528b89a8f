"""Recurrent networks against torch: text, weights, outputs, states, gradients, packed sequences."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE
from tests.nn.against_torch import raises, same

OPTIONS = {
    "plain": {},
    "no_bias": {"bias": False},
    "batch_first": {"batch_first": True},
    "deep": {"num_layers": 3},
    "both_ways": {"bidirectional": True},
    "deep_both_ways": {"num_layers": 2, "bidirectional": True, "batch_first": True},
    "dropout": {"num_layers": 2, "dropout": 0.5},
}
MODES = ["LSTM", "GRU", "RNN"]
CASES = [*itertools.product(MODES, OPTIONS.items())]
CASES += [
    ("LSTM", ("projected", {"proj_size": 2})),
    ("LSTM", ("projected_deep", {"proj_size": 2, "num_layers": 2, "bidirectional": True})),
    ("LSTM", ("projected_no_bias", {"proj_size": 2, "bias": False})),
    ("RNN", ("relu", {"nonlinearity": "relu", "num_layers": 2})),
]
NAMES = [f"{mode}_{name}" for mode, (name, _) in CASES]


def network(lib, mode, options):
    """A network of 4 inputs and 3 units on the device under test, after seeding."""
    lib.manual_seed(3)
    return getattr(lib.nn, mode)(4, 3, **options).to(DEVICE if lib is tlc else "cpu")


def states_of(net, batch, drawn):
    """First states for a network."""
    cells = net.num_layers * (2 if net.bidirectional else 1)
    h = drawn(cells, *batch, net.proj_size or 3)
    return (h, drawn(cells, *batch, 3)) if net.mode == "LSTM" else h


def run(lib, mode, options, kind, given, dtype="float32"):
    """Everything a network does: initial weights, outputs, states, gradients."""
    net = network(lib, mode, options)
    initial = [p.detach().cpu().numpy().copy() for p in net.parameters()]
    net.to(getattr(lib, dtype))
    rng = np.random.default_rng(1)
    leaves = list(net.parameters())

    def drawn(*shape):
        values = rng.standard_normal(shape)
        device = DEVICE if lib is tlc else "cpu"
        x = lib.tensor(values, dtype=getattr(lib, dtype), device=device, requires_grad=True)
        leaves.append(x)
        return x

    utils = lib.nn.utils.rnn
    batch = () if kind == "single" else (3,)
    x = drawn(5, *batch, 4)
    if kind == "packed":
        x = utils.pack_padded_sequence(x, [2, 5, 2], enforce_sorted=False)
    elif kind == "sorted":
        x = utils.pack_padded_sequence(x, [4, 4, 1])
    elif options.get("batch_first") and batch:
        x = x.transpose(0, 1)
    hx = states_of(net, batch, drawn) if given else None
    lib.manual_seed(11)  # of dropout
    out, last = net(x, hx)
    if kind in ("packed", "sorted"):
        out, lengths = utils.pad_packed_sequence(out)
        assert lengths.tolist() == ([2, 5, 2] if kind == "packed" else [4, 4, 1])
    results = [out, *(last if isinstance(last, tuple) else [last])]
    weights = [
        lib.tensor(rng.standard_normal(r.shape), dtype=r.dtype).to(r.device) for r in results
    ]
    sum((r * w).sum() for r, w in zip(results, weights)).backward()
    values = [*results, *[leaf.grad for leaf in leaves]]
    text = repr(net), list(net.state_dict()), [tuple(w.shape) for w in net.all_weights[-1]]
    return text, initial, [v.detach().cpu().numpy() for v in values]


@pytest.mark.parametrize(("mode", "case"), CASES, ids=NAMES)
@pytest.mark.parametrize("kind", ["padded", "single", "packed", "sorted"])
def test_network(mode, case, kind):
    options = case[1]
    if "dropout" in options and DEVICE == "cuda":
        pytest.skip("the device has random numbers of its own")
    for given in (False, True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about oneDNN
            theirs = run(torch, mode, options, kind, given)
        ours = run(tlc, mode, options, kind, given)
        assert ours[0] == theirs[0]
        for mine, others in zip(ours[1], theirs[1], strict=True):
            np.testing.assert_array_equal(mine, others)
        for mine, others in zip(ours[2], theirs[2], strict=True):
            np.testing.assert_allclose(mine, others, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mode", MODES)
def test_second_gradients(mode):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net = network(tlc, mode, {"bidirectional": True}).double()
    x = tlc.randn(3, 2, 4, dtype=tlc.float64, device=DEVICE, requires_grad=True)
    assert tlc.autograd.gradgradcheck(lambda x: net(x)[0], (x,))


@pytest.mark.parametrize("mode", MODES)
def test_evaluation_has_no_dropout(mode):
    def script(lib):
        net = network(lib, mode, {"num_layers": 2, "dropout": 0.9}).eval()
        x = lib.ones(2, 1, 4, device=DEVICE if lib is tlc else "cpu")
        return bool((net(x)[0] == net(x)[0]).all())

    assert same(script) is True


@pytest.mark.parametrize("mode", MODES)
def test_wrong_input(mode):
    def pair(h):
        return (h, h) if mode == "LSTM" else h

    for call in (
        lambda net, zeros: net(zeros(4)),
        lambda net, zeros: net(zeros(5, 2, 2)),
        lambda net, zeros: net(zeros(5, 2, 4).double()),
        lambda net, zeros: net(zeros(5, 2, 4), pair(zeros(1, 3, 3))),
        lambda net, zeros: net(zeros(5, 2, 4), pair(zeros(1, 2, 2))),
        lambda net, zeros: net(zeros(5, 2, 4), pair(zeros(2, 2, 3))),
        lambda net, zeros: net(zeros(5, 2, 4), pair(zeros(2, 3))),
        lambda net, zeros: net(zeros(5, 4), pair(zeros(1, 1, 3))),
        lambda net, zeros: net(zeros(0, 2, 4)),
    ):

        def script(lib, call=call):
            device = DEVICE if lib is tlc else "cpu"
            call(network(lib, mode, {}), lambda *shape: lib.zeros(*shape, device=device))

        raises(script)


@pytest.mark.parametrize(
    "made",
    [
        "RNN(4, 3, nonlinearity='foo')",
        "RNN('4', 3)",
        "LSTM(4, 3.0)",
        "RNN(-1, 3)",
        "GRU(4, 3, bias=1)",
        "LSTM(4, 3, batch_first='False')",
        "GRU(4, 0)",
        "RNN(4, 3, 0)",
        "LSTM(4, 3, 2, dropout=1.5)",
        "LSTM(4, 3, 2, dropout=True)",
        "RNN(4, 3, proj_size=2)",
        "GRU(4, 3, proj_size=2)",
        "LSTM(4, 3, proj_size=3)",
        "LSTM(4, 3, proj_size=-1)",
        "RNNBase('foo', 4, 3)",
        "RNN(4, 3, foo=1)",
        "LSTM()",
    ],
)
def test_wrong_options(made):
    raises(lambda lib: eval(f"lib.nn.{made}"))


def test_texts():
    for made in (
        "LSTM(4, 3)",
        "RNN(4, 3, 1, 'relu', False)",
        "RNNBase('GRU', 4, 3)",
        "LSTM(4, 3, 2, True, True, 0.5, True, 1)",
        "GRU(4, 3, dropout=0.5)",
    ):
        same(lambda lib, made=made: repr(eval(f"lib.nn.{made}")))


def test_an_autocast_block_takes_other_dtypes():
    net = tlc.nn.LSTM(4, 3)
    with tlc.autocast("cpu"):
        out, (h, _) = net(tlc.randn(5, 2, 4, dtype=tlc.bfloat16))
    assert out.shape == (5, 2, 3) and h.shape == (1, 2, 3)
