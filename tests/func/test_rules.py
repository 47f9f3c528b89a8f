"""Which primitives and ops have rules of batching, and that whole ops are called once for all."""

from __future__ import annotations

import warnings

from parameterized import parameterized

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.dispatch import table
from tensorflow_lite_clone.dispatch.primitives import PRIMITIVES
from tensorflow_lite_clone.func.batching.words import rule_of
from tests.autograd.against_torch import Failure, same
from tests.func.numbers import normal

#: What is called for each sample, as in PyTorch, or used by no op.
WITHOUT = {
    "bincount",
    "diff",
    "fft.fftshift",
    "fft.ifftshift",
    "meshgrid",
    "tensordot",
}


def test_every_primitive_has_a_rule():
    assert {name for name in PRIMITIVES if rule_of(name) is None} <= WITHOUT


def pooled(x):
    return tlc.nn.functional.max_pool2d(x, 2)


def resampled(x):
    return tlc.nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear")


WHOLE = [
    ("max_pool", pooled),
    ("max_pool_backward", tlc.func.grad(lambda x: pooled(x).sum())),
    ("avg_pool", lambda x: tlc.nn.functional.avg_pool2d(x, 2)),
    ("resample", resampled),
    ("softmax", lambda x: x.softmax(1)),
    ("softmax_backward", tlc.func.grad(lambda x: (x.softmax(-1) ** 2).sum())),
    ("log_softmax", lambda x: x.log_softmax(0)),
    ("log_softmax_backward", tlc.func.grad(lambda x: (x.log_softmax(-1) ** 2).sum())),
    ("glu", lambda x: tlc.nn.functional.glu(x, 1)),
    ("layer_norm", lambda x: tlc.nn.functional.layer_norm(x, (4, 4))),
    ("group_norm", lambda x: tlc.nn.functional.group_norm(x, 2)),
    ("matrix_exp", tlc.linalg.matrix_exp),
]


@parameterized.expand(WHOLE)
def test_whole_op(name, f):
    xs = normal(tlc, 3, 2, 4, 4, 4).double()
    before = table.served[name, "batched"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tlc.func.vmap(f)(xs)
    assert table.served[name, "batched"] > before
    assert tlc.allclose(found, tlc.stack([f(x) for x in xs]), rtol=1e-12, atol=1e-12)


LOOPS = [
    ("bincount", lambda lib, x: lib.bincount((x * 0 + 1).long())),
    ("histc", lambda lib, x: lib.histc(x, 4, -1, 1)),
    ("histogram", lambda lib, x: lib.histogram(x, 4, range=(-1.0, 1.0))[0]),
    ("masked_scatter", lambda lib, x: x.masked_scatter(x > 0, x * 2)),
]


@parameterized.expand(LOOPS)
def test_no_samples_cannot_be_looped_over(name, f):
    result = same(
        lambda lib: lib.func.vmap(lambda x: f(lib, x))(lib.ones(0, 3)),
        ["dims of size 0"],
        warned=False,
    )
    assert isinstance(result, Failure)


@parameterized.expand(LOOPS)
def test_a_loop_in_a_loop(name, f):
    xs = normal(tlc, 2, 3, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tlc.func.vmap(tlc.func.vmap(lambda x: f(tlc, x)))(xs)
    rows = [tlc.stack([f(tlc, x) for x in row]) for row in xs]
    assert tlc.equal(found, tlc.stack(rows))


def test_gradients_go_through_a_loop():
    x = normal(tlc, 3, 4).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = tlc.func.vmap(lambda x: x.masked_scatter(x > 0, x * 2))(x)
    (gradient,) = tlc.autograd.grad((y**2).sum(), x)
    expected = tlc.stack(
        [
            tlc.autograd.grad((row.masked_scatter(row > 0, row * 2) ** 2).sum(), row)[0]
            for row in x.detach().clone().requires_grad_().unbind()
        ]
    )
    assert tlc.allclose(gradient, expected)


def test_conditions_of_values_hold_for_all_samples():
    """A sample outside of the range is found, whichever it is."""
    logits = normal(tlc, 3, 2, 4)
    good = tlc.tensor([[0, 1], [2, 3], [1, 1]])
    call = tlc.func.vmap(tlc.nn.functional.multi_margin_loss)
    assert call(logits, good).shape == (3,)
    good[2, 1] = 7
    try:
        call(logits, good)
    except RuntimeError as error:
        assert "out of range" in str(error)
    else:
        raise AssertionError("an error was expected")
