"""Transforms of transforms over modules and layers, as people compose them, against PyTorch's."""

from __future__ import annotations

import warnings

import torch
from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tests.autograd.against_torch import Failure, same
from tests.func.numbers import filled, normal


def double(lib, *shape, seed=0):
    return normal(lib, *shape, seed=seed).double()


def vmap(lib, function, *args, **options):
    return lib.func.vmap(function, **options)(*args)


def gradients_of_samples(lib, model, xs, arguments=lambda x: (x,)):
    state = {name: p.detach() for name, p in model.named_parameters()}

    def loss(state, x):
        out = lib.func.functional_call(model, state, arguments(x))
        return ((out[0] if isinstance(out, tuple) else out) ** 2).sum()

    return lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0))(state, xs)


def attention(lib):
    return filled(lib, lib.nn.MultiheadAttention(4, 2, batch_first=True))


def encoder(lib, dropout=0.0):
    layer = lib.nn.TransformerEncoderLayer(4, 2, 8, dropout=dropout, batch_first=True)
    return filled(lib, layer)


def words(lib):
    nn = lib.nn
    return filled(lib, nn.Sequential(nn.Embedding(5, 3, padding_idx=1), nn.Linear(3, 2)))


def convolutions(lib, seed=0):
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, groups=2), nn.ReLU(), nn.Conv2d(4, 3, 3, stride=2),
        nn.ConvTranspose2d(3, 2, 2, stride=2),
    )  # fmt: skip
    return filled(lib, model, seed)


def of_masks(lib):
    model = attention(lib)
    masks = lib.tensor([[[False] * 4 + [True], [False] * 5]] * 3)
    xs = normal(lib, 3, 2, 5, 4)
    return vmap(lib, lambda x, mask: model(x, x, x, key_padding_mask=mask)[0], xs, masks)


def product(lib, *args, **options):
    return lib.nn.functional.scaled_dot_product_attention(*args, **options)


def ensemble(lib, models, x):
    parameters, buffers = lib.func.stack_module_state(models)
    buffers = {name: b for name, b in buffers.items() if b.is_floating_point()}

    def call(parameters, buffers, x):
        return lib.func.functional_call(models[0], (parameters, buffers), (x,))

    out = lib.func.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    (out**2).sum().backward()
    return out, {name: p.grad for name, p in parameters.items()}, buffers


def small(lib, seed=0):
    nn = lib.nn
    return filled(lib, nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), seed)


MODULES = [
    ("attention", lambda lib: gradients_of_samples(
        lib, attention(lib), normal(lib, 3, 2, 5, 4), lambda x: (x, x, x))),
    ("attention with masks", of_masks),
    ("encoder", lambda lib: gradients_of_samples(lib, encoder(lib), normal(lib, 3, 2, 5, 4))),
    ("encoder in evaluation", lambda lib: vmap(
        lib, encoder(lib, 0.1).eval(), normal(lib, 3, 2, 5, 4))),
    ("causal", lambda lib: vmap(lib, lambda q, k, v: product(lib, q, k, v, is_causal=True),
        *[normal(lib, 3, 2, 4, 4, seed=i) for i in range(3)])),
    ("shared keys", lambda lib: vmap(lib, lambda q, k, v: product(lib, q, k, v),
        normal(lib, 3, 2, 4, 4), normal(lib, 2, 4, 4), normal(lib, 2, 3, 4, 4),
        in_dims=(0, None, 1))),
    ("embedding", lambda lib: gradients_of_samples(
        lib, words(lib), lib.tensor([[0, 1, 2], [4, 4, 1]]))),
    ("norm in evaluation", lambda lib: gradients_of_samples(
        lib, small(lib).eval(), normal(lib, 3, 2, 3))),
    ("ensemble of convolutions", lambda lib: ensemble(
        lib, [convolutions(lib, seed) for seed in range(3)], normal(lib, 2, 2, 8, 8))),
    ("ensemble of norms", lambda lib: ensemble(
        lib, [small(lib, seed) for seed in range(3)], normal(lib, 4, 3))),
]  # fmt: skip


@parameterized.expand(MODULES)
def test_modules(name, f):
    # The gradient of a bias before a norm is zero: what is compared is the rounding of terms of
    # size 5.
    atol = 5e-6 if name == "ensemble of norms" else 1e-6
    # PyTorch says of its own kernels where it maps them in a loop.
    assert not isinstance(same(f, rtol=1e-4, atol=atol, warned=False), Failure)


RECURRENT = [
    ("LSTM", {"num_layers": 2, "bidirectional": True}, (5, 2, 3)),
    ("GRU", {"batch_first": True}, (2, 5, 3)),
    ("RNN", {"nonlinearity": "relu"}, (5, 3)),
    ("GRUCell", {}, (2, 3)),
    ("LSTMCell", {}, (3,)),
]


@parameterized.expand(RECURRENT)
def test_recurrent_layers(kind, options, shape):
    """PyTorch has no rules for them: a loop over the samples judges."""

    def loss(out):
        return ((out[0] if isinstance(out, tuple) else out) ** 2).sum()

    reference = filled(torch, getattr(torch.nn, kind)(3, 4, **options))
    rows = []
    for x in normal(torch, 3, *shape):
        reference.zero_grad()
        loss(reference(x)).backward()
        rows.append([p.grad.clone() for p in reference.parameters()])
    model = filled(tlc, getattr(tlc.nn, kind)(3, 4, **options))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is computed per sample
        found = gradients_of_samples(tlc, model, normal(tlc, 3, *shape))
    for got, column in zip(found.values(), zip(*rows, strict=True), strict=True):
        expected = tlc.tensor(torch.stack(column).numpy())
        assert tlc.allclose(got.cpu(), expected.cpu(), rtol=1e-4, atol=1e-6)


def mixed(lib, x):
    return (x.softmax(0) * x.exp()).sum()


def written(x):
    y = x.clone()
    y[0] = x[1] ** 2
    return (y**2).sum()


def linearized(lib):
    call = lib.nn.functional.layer_norm
    out, push = lib.func.linearize(lambda x: call(x, (3,)).tanh(), double(lib, 2, 3))
    tangents = double(lib, 4, 2, 3, seed=1)
    return out, push(tangents[0]), lib.func.vmap(push)(tangents)


def pairs(lib):
    f = lib.func
    return [a(b(lambda x: mixed(lib, x)))(double(lib, 3))
            for a in (f.jacfwd, f.jacrev) for b in (f.jacfwd, f.jacrev)]  # fmt: skip


def regression(lib):
    model = filled(lib, lib.nn.Linear(2, 2)).double()
    state = {name: p.detach() for name, p in model.named_parameters()}
    x = double(lib, 3, 2)
    return lib.func.hessian(
        lambda state: (lib.func.functional_call(model, state, x).tanh() ** 2).sum()
    )(state)


TRANSFORMS = [
    ("Hessians", lambda lib: lib.func.vmap(lib.func.hessian(
        lambda x: mixed(lib, x)))(double(lib, 2, 3))),
    ("Hessian in four ways", pairs),
    ("Hessian by parameters", regression),
    ("linearized", linearized),
    ("jvp of vmap", lambda lib: lib.func.jvp(
        lib.func.vmap(lambda x: lib.nn.functional.normalize(x, dim=0)),
        (double(lib, 3, 4),), (double(lib, 3, 4, seed=1),))),
    ("vmap of jvp", lambda lib: vmap(
        lib, lambda x, t: lib.func.jvp(lambda x: x.logsumexp(0) * x, (x,), (t,)),
        double(lib, 3, 4), double(lib, 3, 4, seed=1))),
    ("grad of what is written", lambda lib: lib.func.grad(written)(double(lib, 3))),
    ("vmap of grad of what is written", lambda lib: vmap(
        lib, lib.func.grad(written), double(lib, 3, 4))),
    ("jacrev in chunks", lambda lib: lib.func.jacrev(
        lambda x, y: {"a": x.outer(y), "b": (y.sum(),)}, argnums=(0, 1), chunk_size=2)(
            double(lib, 3), double(lib, 2))),
    ("jacrev in chunks with aux", lambda lib: lib.func.jacrev(
        lambda x: (x.outer(x), {"s": x.sum()}), chunk_size=4, has_aux=True)(double(lib, 3))),
    ("vmap in chunks", lambda lib: vmap(
        lib, lambda a, b: (a * b, {"s": a.sum()}), double(lib, 3, 4), double(lib, 3, 4),
        chunk_size=2)),
    ("vmap of argnums", lambda lib: vmap(
        lib, lib.func.grad(lambda a, d: (a * d["b"]).sum() ** 2, argnums=(1, 0)),
        double(lib, 3, 4), {"b": double(lib, 3, 4, seed=1)})),
    ("no output", lambda lib: vmap(
        lib, lambda a: (a * 2, None), double(lib, 3, 4), out_dims=(0, None))),
    ("no output at all", lambda lib: vmap(
        lib, lambda a: None, double(lib, 3, 4), out_dims=None)),
    ("named results", lambda lib: list(vmap(lib, lambda a: a.max(0), double(lib, 3, 4)))),
    ("singular values", lambda lib: lib.func.grad(
        lambda x: vmap(lib, lib.linalg.svdvals, x).sum())(double(lib, 2, 3, 3))),
    ("solutions", lambda lib: lib.func.jacrev(lambda a, b: lib.func.vmap(
        lib.linalg.solve, (None, 0))(a, b), (0, 1))(
            double(lib, 3, 3) + 3 * lib.eye(3), double(lib, 2, 3))),
]  # fmt: skip


@parameterized.expand(TRANSFORMS)
def test_transforms(name, f):
    # PyTorch's forward mode warns of what it compiles.
    assert not isinstance(same(f, warned=False), Failure)


def test_branches():
    """Every sample takes its own."""

    def script(lib):
        def call(x):
            return lib.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.exp(), (x,))

        return lib.func.vmap(call)(double(lib, 5, 3))

    assert not isinstance(same(script, warned=False), Failure)
