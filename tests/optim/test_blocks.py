"""Steps of the CPU in blocks and by several threads: against torch, and the same for any number."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone.backends.numpy.tuning import tuning
from tensorflow_lite_clone.core.flags import flags
from tests.optim.cases import CASES, assert_same, optimizer_of, parameters, plain, run

SHAPES = [(30, 4), (50,), (), (2, 30, 2)]
SERVED = [(name, options) for name, options in CASES if name in ("SGD", "Adam", "AdamW", "RMSprop")]


@pytest.fixture(params=[1, 3])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(tuning, "optimizer_block", 16)
    monkeypatch.setattr(tuning, "optimizer_small", 2)
    monkeypatch.setattr(tuning, "optimizer_per_thread", 32)
    monkeypatch.setattr(flags, "threads", request.param)


def turned(lib, params):
    """The parameters, the first one lying by columns."""
    params[0] = lib.nn.Parameter(params[0].detach().t().contiguous().t())
    return params


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("name", "options"), SERVED)
def test_optimizer_steps_in_blocks_match_torch(name, options):
    def result(lib):
        params = turned(lib, parameters(lib, "float64", SHAPES))
        optimizer = optimizer_of(lib, params, name, options)
        run(lib, params, optimizer, range(5))
        return plain(params), plain(optimizer.state_dict())

    assert_same(list(result(tlc)), list(result(torch)), 1e-13)


def test_optimizer_steps_do_not_write_to_gradients():
    for name, options in SERVED:
        param = tlc.nn.Parameter(tlc.ones(5))
        param.grad = g = tlc.full((5,), 2.0)
        optimizer = getattr(tlc.optim, name)([param], **options)
        for _ in range(2):
            optimizer.step()
        assert param.grad is g
        np.testing.assert_array_equal(g.numpy(), np.full(5, 2, "f4"))


def test_rmsprop_centered_step_of_overflowing_squares_matches_torch():
    for lib in (tlc, torch):
        param = lib.nn.Parameter(lib.ones(5))
        optimizer = lib.optim.RMSprop([param], centered=True)
        for _ in range(3):
            param.grad = lib.full((5,), 1e30)
            optimizer.step()
        assert (param == 1).all()
