"""The package breathes: under two seconds, for every commit."""

from __future__ import annotations

import pytest

import tensorflow_lite_clone as tlc
from tensorflow_lite_clone import nn, optim

pytestmark = pytest.mark.timeout(2)


def test_gradient() -> None:
    x = tlc.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    assert y.item() == 30.0
    assert x.grad.tolist() == [[2.0, 4.0], [6.0, 8.0]]


def test_second_order_gradient() -> None:
    x = tlc.tensor(2.0, requires_grad=True)
    (g,) = tlc.autograd.grad(x**3, x, create_graph=True)
    (gg,) = tlc.autograd.grad(g, x)
    assert (g.item(), gg.item()) == (12.0, 12.0)


def test_training_step_lowers_the_loss() -> None:
    tlc.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    x, y = tlc.randn(16, 4), tlc.randint(0, 2, (16,))
    losses = []
    for _ in range(5):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_views_share_memory() -> None:
    x = tlc.zeros(2, 3)
    x.t()[1] += 1
    assert x.tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]


def test_a_name_that_is_left_out_says_why() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'numa' \(left out: entry"):
        tlc.numa  # noqa: B018
    with pytest.raises(AttributeError, match=r"no attribute 'no_such_name' \(unknown: not among"):
        tlc.no_such_name  # noqa: B018
    assert not hasattr(tlc, "no_such_name")
