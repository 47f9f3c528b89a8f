"""Loss scaling: the scale's course is PyTorch's, and a step with infinities changes nothing."""

from __future__ import annotations

import math

import pytest
import torch

import tensorflow_lite_clone as tlc
from tests.device import DEVICE


def course(lib, device, optimizer, bad_steps, **options):
    """Scales and parameters over ten steps of which some have infinite gradients."""
    scaler = lib.amp.GradScaler(device, init_scale=8.0, growth_interval=3, **options)
    w = lib.ones(3, device=device).requires_grad_()
    optimizer = optimizer(lib, [w])
    seen = []
    for step in range(10):
        optimizer.zero_grad()
        loss = (w * (math.inf if step in bad_steps else step + 1.0)).sum()
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), w.detach().cpu().tolist()))
    return seen, scaler.state_dict()


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
@pytest.mark.parametrize("bad", [(), (0,), (4, 5, 9)])
def test_course(name, bad):
    def make(lib, params):
        return getattr(lib.optim, name)(params, lr=0.1)

    ours, state = course(tlc, DEVICE, make, bad)
    theirs, expected = course(torch, "cpu", make, bad)
    assert [scale for scale, _ in ours] == [scale for scale, _ in theirs]
    for (_, mine), (_, other) in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(other, rel=1e-5, abs=1e-6)
    assert state == expected


def test_disabled():
    def make(lib, params):
        return lib.optim.SGD(params, lr=0.1)

    assert course(tlc, DEVICE, make, (), enabled=False)[1] == {}


def test_misuse():
    w = tlc.ones(3, device=DEVICE, requires_grad=True)
    optimizer = tlc.optim.SGD([w], lr=0.1)
    scaler = tlc.amp.GradScaler(DEVICE)
    with pytest.raises(AssertionError, match="scaler.scale"):
        scaler.update()
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    scaler.update()
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)


def test_state_is_taken_over():
    scaler = tlc.amp.GradScaler(DEVICE, init_scale=4.0)
    scaler.scale(tlc.ones((), device=DEVICE))
    other = tlc.amp.GradScaler(DEVICE)
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 4.0
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})
