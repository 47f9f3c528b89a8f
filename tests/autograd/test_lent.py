"""Storages whose array is given up for a while, as those of sharded parameters."""

from __future__ import annotations

import weakref

import pytest

import tensorflow_lite_clone as torch
from tensorflow_lite_clone.autograd import graph
from tensorflow_lite_clone.storage import ReleasableStorage
from tensorflow_lite_clone.tensor import Parameter, new_tensor
from tests.device import DEVICE

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="weak references are to NumPy's arrays")


def lent(values):
    """A Parameter over a copy of values, and a weak reference to its memory."""
    array = values._storage.array.copy()
    parameter = Parameter(new_tensor(ReleasableStorage(array, values._storage.backend)))
    return parameter, weakref.ref(array)


def use(weight, x):
    """A result whose graph saves the weight, views of it, and views of these."""
    first, second = weight.chunk(2)
    y = (x @ weight.t()).tanh() + torch.nn.functional.linear(x, weight)
    z = (x @ first[1:].T).sum() + (x @ second.view(-1).view(3, 4).mT).exp().sum()
    pairs = torch.view_as_complex(weight.view(6, 2, 2))
    return y.sum() + z + (pairs * pairs).abs().sum()


class Squared(torch.autograd.Function):
    """Saves its input by hand."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


@pytest.mark.parametrize("function", [use, lambda weight, x: Squared.apply(weight).sum() + x.sum()])
def test_a_graph_finds_the_values_that_were_put_back(function):
    values = torch.randn(6, 4, dtype=torch.float64)
    plain, other = values.clone().requires_grad_(), torch.randn(3, 4, dtype=torch.float64)
    x, y = other.clone().requires_grad_(), other.clone().requires_grad_()
    function(plain, x).backward()
    weight, memory = lent(values)
    out = function(weight, y)
    assert memory() is not None
    weight._storage.release("elsewhere")
    assert memory() is None  # nobody else has it
    weight._storage.restore(values._storage.array.copy())
    out.backward()
    assert torch.equal(weight.grad, plain.grad)
    assert torch.equal(y.grad, x.grad)


def test_released_storage_refuses_use():
    weight, _ = lent(torch.ones(2, 3))
    row = weight[0]
    out = (weight * weight).sum()
    weight._storage.release("it is elsewhere")
    for use in (
        lambda: weight + 1,
        lambda: row.sum(),
        lambda: weight[0],
        weight.detach().numpy,
        lambda: torch.ones(2, 3) @ weight.t(),
        weight.tolist,
        lambda: out.backward(),
    ):
        with pytest.raises(RuntimeError, match="it is elsewhere"):
            use()
    assert (weight.shape, row.storage_offset()) == ((2, 3), 0)


def test_views_are_where_they_were():
    weight, _ = lent(torch.arange(12.0).view(3, 4))
    with torch.no_grad():
        views = [weight.t()[1:], weight[:, ::2], weight[2, 1:3], weight.view(2, 6).unbind(0)[1]]
        views += [weight.view(torch.int32), weight[1:1], weight.detach(), weight.diagonal()]
    expected = [view.tolist() for view in views]
    assert len(weight._storage.views) >= len(views) - 1  # detach shares the storage itself
    weight._storage.release("elsewhere")
    weight._storage.restore((torch.arange(12.0).view(3, 4))._storage.array.copy())
    assert [view.tolist() for view in views] == expected
    with torch.no_grad():
        weight[1, 1] = 50.0
    assert views[0][0, 1] == 50.0  # they share memory


def test_views_that_have_died_are_forgotten():
    weight, _ = lent(torch.ones(4))
    for _ in range(3):
        weight[1:]
    assert len(weight._storage.views) == 0
    view = weight[1:]
    weight._storage.release("elsewhere")
    del view
    weight._storage.restore(torch.ones(4)._storage.array.copy())
    assert weight.tolist() == [1.0] * 4


def test_hooks_on_saved_tensors_see_it():
    seen = []
    weight, _ = lent(torch.ones(3))
    with graph.saved_tensors_hooks(lambda t: seen.append(t) or t, lambda t: t):
        out = (weight * 2).exp() * weight
    out.sum().backward()
    assert any(t._storage is weight._storage for t in seen)
